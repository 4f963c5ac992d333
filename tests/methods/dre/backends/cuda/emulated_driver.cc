// The part of the CUDA driver that launch.cc calls. A "cubin" is the path of a library of the emulated kernel.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

using Function = void (*)(const void* arguments, unsigned blocks, unsigned threads, size_t shared_bytes);

namespace {
// What the devices have, by CUdevice_attribute: an H100, a part of one, an A100.
const std::map<int, int> devices[] = {{{16, 132}, {75, 9}, {76, 0}, {81, 233472}, {97, 232448}},
                                      {{16, 60}, {75, 9}, {76, 0}, {81, 233472}, {97, 232448}},
                                      {{16, 108}, {75, 8}, {76, 0}, {81, 167936}, {97, 166912}}};
// The number of an error that a function is to return: EMULATED_CUDA_ERROR is "cuLaunchKernel 719", for example.
int error_of(const char* function) {
  const char* text = getenv("EMULATED_CUDA_ERROR");
  const size_t length = strlen(function);
  return text && !strncmp(text, function, length) && text[length] == ' ' ? atoi(text + length) : 0;
}
thread_local std::vector<void*> contexts;
std::map<void*, unsigned> allowed;  // shared memory, by function
}  // namespace

extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13020, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal > 2 ? 101 : 0; }
int cuDeviceGetAttribute(int* value, int number, int device) { return *value = devices[device].at(number), 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = reinterpret_cast<void*>(1), 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuGetErrorName(int number, const char** name) {
  *name = number == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : number == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : nullptr;
  return *name ? 0 : 1;
}
int cuStreamGetCtx(void*, void** context) { return *context = reinterpret_cast<void*>(1), 0; }
int cuCtxPushCurrent_v2(void* context) { return contexts.push_back(context), 0; }
int cuCtxPopCurrent_v2(void** context) { return *context = contexts.back(), contexts.pop_back(), 0; }
int cuModuleLoadData(void** module, const void* path) {
  if (contexts.empty()) return 201;
  if (int error = error_of("cuModuleLoadData")) return error;
  *module = dlopen(static_cast<const char*>(path), RTLD_NOW | RTLD_LOCAL);
  return *module ? 0 : 200;
}
int cuModuleGetFunction(void** function, void* module, const char*) {
  *function = dlsym(module, "take_steps_on_host");
  return *function ? 0 : 500;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute == 8) allowed[function] = value;
  return attribute == 8 && value > 232448;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t shared_bytes) {
  return *blocks = shared_bytes <= 232448, 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void*) {
  memset(reinterpret_cast<void*>(to), value, n);
  return 0;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned shared_bytes, void*, void** parameters, void**) {
  if (int error = error_of("cuLaunchKernel")) return error;
  if (shared_bytes > allowed[function]) return 1;
  reinterpret_cast<Function>(function)(parameters[0], blocks, threads, shared_bytes);
  return 0;
}
}
