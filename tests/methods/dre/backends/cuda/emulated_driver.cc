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
// What an H100 has, by CUdevice_attribute.
int attribute(int number) {
  switch (number) {
    case 16:
      return 132;
    case 75:
      return 9;
    case 76:
      return 0;
    case 81:
      return 233472;
    case 97:
      return 232448;
  }
  return 0;
}
int failing() {  // the number of an error that every launch is to have
  const char* text = getenv("EMULATED_CUDA_ERROR");
  return text ? atoi(text) : 0;
}
thread_local std::vector<void*> contexts;
std::map<void*, unsigned> allowed;  // shared memory, by function
}  // namespace

extern "C" {
int cuInit(unsigned) { return 0; }
int cuDeviceGet(int* device, int) { return *device = 0; }
int cuDeviceGetAttribute(int* value, int number, int) { return *value = attribute(number), 0; }
int cuStreamGetCtx(void*, void** context) { return *context = reinterpret_cast<void*>(1), 0; }
int cuCtxPushCurrent_v2(void* context) { return contexts.push_back(context), 0; }
int cuCtxPopCurrent_v2(void** context) { return *context = contexts.back(), contexts.pop_back(), 0; }
int cuModuleLoadData(void** module, const void* path) {
  if (contexts.empty()) return 201;
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
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void*) {
  memset(reinterpret_cast<void*>(to), value, n);
  return 0;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned shared_bytes, void*, void** parameters, void**) {
  if (failing()) return failing();
  if (shared_bytes > allowed[function]) return 1;
  reinterpret_cast<Function>(function)(parameters[0], blocks, threads, shared_bytes);
  return 0;
}
}
