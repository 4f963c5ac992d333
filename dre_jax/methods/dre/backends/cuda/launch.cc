// What XLA calls to launch the kernel: the handler of the custom call of steps.py. Needs no CUDA headers.
#include <dlfcn.h>

#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace {
namespace ffi = xla::ffi;

// The functions of the driver that are used here, as cuda.h declares them; a result of 0 is success.
struct Driver {
  int (*cuInit)(unsigned);
  int (*cuDriverGetVersion)(int*);
  int (*cuDeviceGet)(int*, int);
  int (*cuDeviceGetAttribute)(int*, int, int);
  int (*cuDevicePrimaryCtxRetain)(void**, int);
  int (*cuDevicePrimaryCtxRelease)(int);
  int (*cuGetErrorName)(int, const char**);
  int (*cuStreamGetCtx)(void*, void**);
  int (*cuCtxPushCurrent)(void*);
  int (*cuCtxPopCurrent)(void**);
  int (*cuModuleLoadData)(void**, const void*);
  int (*cuModuleGetFunction)(void**, void*, const char*);
  int (*cuFuncSetAttribute)(void*, int, int);
  int (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int*, void*, int, size_t);
  int (*cuMemsetD8Async)(uint64_t, unsigned char, size_t, void*);
  int (*cuLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                        void**);
};

// CUfunction_attribute
constexpr int MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, PREFERRED_SHARED_MEMORY_CARVEOUT = 9;

struct Kernel {
  std::string cubin;
  unsigned threads = 0, shared_bytes = 0;
  std::map<void*, void*> functions;  // by context
};

Driver driver{};
std::map<int64_t, Kernel> kernels;
std::mutex mutex;

// As `Args` of block.cuh.
struct Args {
  const float *params, *first, *second, *x;
  const int* support;
  const float* support_response;
  const int *n_support, *query;
  const uint32_t* bounds;
  const float* weight;
  const int* n_query;
  const float *size, *floor;
  float *new_params, *new_first, *new_second, *losses, *scratch;
  long long rows;
  unsigned has_runs;
  int runs, steps, members, lists, own_lists, multiprocessors;
};

void check(const char* call, int status) {
  if (!status) return;
  const char* name = nullptr;
  if (driver.cuGetErrorName(status, &name) || !name) name = "an unknown error";
  throw std::runtime_error(std::string(call) + " returned " + name + " (" + std::to_string(status) + ")");
}

// The context is this thread's while the object lives: XLA may call from any thread.
class CurrentContext {
 public:
  explicit CurrentContext(void* context) { check("cuCtxPushCurrent", driver.cuCtxPushCurrent(context)); }
  ~CurrentContext() {
    void* popped = nullptr;
    driver.cuCtxPopCurrent(&popped);
  }
};

void* context_of(void* stream) {
  void* context = nullptr;
  check("cuStreamGetCtx", driver.cuStreamGetCtx(stream, &context));
  return context;
}

// The context of a device that XLA computes in; as long as XLA has it, it stays when this object ends.
class PrimaryContext {
 public:
  explicit PrimaryContext(int ordinal) {
    check("cuDeviceGet", driver.cuDeviceGet(&device_, ordinal));
    check("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(&context_, device_));
  }
  ~PrimaryContext() { driver.cuDevicePrimaryCtxRelease(device_); }
  void* get() const { return context_; }

 private:
  int device_ = 0;
  void* context_ = nullptr;
};

Kernel& kernel_of(int64_t number) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto entry = kernels.find(number);
  if (entry == kernels.end())
    throw std::runtime_error("this process has not compiled the CUDA kernel of the program: trace the program here");
  return entry->second;
}

// The kernel's function in the current context, which it is loaded into at the first call. Raises an error where no
// block of it would fit on a multiprocessor.
void* function_of(Kernel& kernel, void* context) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (void* known = kernel.functions[context]) return known;
  void *module = nullptr, *function = nullptr;
  check("cuModuleLoadData", driver.cuModuleLoadData(&module, kernel.cubin.data()));
  check("cuModuleGetFunction", driver.cuModuleGetFunction(&function, module, "take_steps"));
  const int bytes = static_cast<int>(kernel.shared_bytes);
  check("cuFuncSetAttribute", driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
  // All of a multiprocessor's cache that can be shared memory is, so that two blocks fit; in percent.
  check("cuFuncSetAttribute", driver.cuFuncSetAttribute(function, PREFERRED_SHARED_MEMORY_CARVEOUT, 100));
  int blocks = 0;
  check("cuOccupancyMaxActiveBlocksPerMultiprocessor",
        driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, static_cast<int>(kernel.threads),
                                                           kernel.shared_bytes));
  if (blocks == 0) throw std::runtime_error("a block of the kernel does not fit on a multiprocessor");
  return kernel.functions[context] = function;
}

template <class Buffer>
auto data_or_null(Buffer& buffer) {
  return buffer.element_count() ? buffer.typed_data() : nullptr;
}

using F32 = ffi::Buffer<ffi::F32>;
using S32 = ffi::Buffer<ffi::S32>;
using U32 = ffi::Buffer<ffi::U32>;
using Result = ffi::ResultBuffer<ffi::F32>;

ffi::Error launch(void* stream, F32 params, F32 first, F32 second, F32 x, S32 support, F32 support_response,
                  S32 n_support, S32 query, U32 bounds, F32 weight, S32 n_query, F32 size, F32 floor, Result new_params,
                  Result new_first, Result new_second, Result losses, Result scratch, int64_t kernel, int64_t group,
                  int64_t multiprocessors, bool zeroed) {
  const auto lists = query.dimensions();  // [runs, steps, members or 1, lists, slots]
  const int runs = static_cast<int>(new_params->dimensions()[0]);
  Args args{params.typed_data(),
            data_or_null(first),
            data_or_null(second),
            x.typed_data(),
            data_or_null(support),
            data_or_null(support_response),
            n_support.typed_data(),
            query.typed_data(),
            bounds.typed_data(),
            weight.typed_data(),
            n_query.typed_data(),
            size.typed_data(),
            floor.typed_data(),
            new_params->typed_data(),
            data_or_null(*new_first),
            data_or_null(*new_second),
            data_or_null(*losses),
            scratch->typed_data(),
            x.dimensions()[1],
            0,
            runs,
            static_cast<int>(lists[1]),
            static_cast<int>(params.dimensions()[1]),
            static_cast<int>(lists[3]),
            lists[2] != 1,
            static_cast<int>(multiprocessors)};
  const int64_t axes[] = {params.dimensions()[0],    first.dimensions()[0],   second.dimensions()[0],
                          x.dimensions()[0],         support.dimensions()[0], support_response.dimensions()[0],
                          n_support.dimensions()[0], query.dimensions()[0],   bounds.dimensions()[0],
                          weight.dimensions()[0],    n_query.dimensions()[0], size.dimensions()[0],
                          floor.dimensions()[0]};
  for (unsigned i = 0; i < sizeof(axes) / sizeof(*axes); ++i) args.has_runs |= static_cast<unsigned>(axes[i] != 1) << i;
  try {
    void* const context = context_of(stream);
    const CurrentContext current(context);
    Kernel& compiled = kernel_of(kernel);
    void* function = function_of(compiled, context);
    if (zeroed) {
      const auto address = reinterpret_cast<uint64_t>(args.scratch);
      check("cuMemsetD8Async", driver.cuMemsetD8Async(address, 0, scratch->size_bytes(), stream));
    }
    void* parameters[] = {&args};
    const unsigned blocks = static_cast<unsigned>(runs * args.members * group);
    check("cuLaunchKernel", driver.cuLaunchKernel(function, blocks, 1, 1, compiled.threads, 1, 1, compiled.shared_bytes,
                                                  stream, parameters, nullptr));
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, std::string("the CUDA kernel of training steps failed: ") +
                                                     error.what() + "; DRE_JAX_CUDA=0 computes without it");
  }
}

#ifdef WITHOUT_STREAM  // on a CPU, with a driver that emulates a GPU, XLA has no stream
template <class Function>
struct WithoutStream;
template <class... A>
struct WithoutStream<ffi::Error (*)(void*, A...)> {
  static ffi::Error call(A... arguments) { return launch(nullptr, arguments...); }
};
#define BINDING ffi::Ffi::Bind()
#define HANDLER WithoutStream<decltype(&launch)>::call
#else
#define BINDING ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>()
#define HANDLER launch
#endif

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(DreJaxCudaSteps, HANDLER,
                              BINDING.Arg<F32>()
                                  .Arg<F32>()
                                  .Arg<F32>()
                                  .Arg<F32>()
                                  .Arg<S32>()
                                  .Arg<F32>()
                                  .Arg<S32>()
                                  .Arg<S32>()
                                  .Arg<U32>()
                                  .Arg<F32>()
                                  .Arg<S32>()
                                  .Arg<F32>()
                                  .Arg<F32>()
                                  .Ret<F32>()
                                  .Ret<F32>()
                                  .Ret<F32>()
                                  .Ret<F32>()
                                  .Ret<F32>()
                                  .Attr<int64_t>("kernel")
                                  .Attr<int64_t>("group")
                                  .Attr<int64_t>("multiprocessors")
                                  .Attr<bool>("zeroed"));

// Opens the driver; returns the name of what it lacks, or null.
extern "C" const char* dre_jax_open_driver(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return path;
  const std::pair<void*, const char*> functions[] = {
      {&driver.cuInit, "cuInit"},
      {&driver.cuDriverGetVersion, "cuDriverGetVersion"},
      {&driver.cuDeviceGet, "cuDeviceGet"},
      {&driver.cuDeviceGetAttribute, "cuDeviceGetAttribute"},
      {&driver.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"},
      {&driver.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2"},
      {&driver.cuGetErrorName, "cuGetErrorName"},
      {&driver.cuStreamGetCtx, "cuStreamGetCtx"},
      {&driver.cuCtxPushCurrent, "cuCtxPushCurrent_v2"},
      {&driver.cuCtxPopCurrent, "cuCtxPopCurrent_v2"},
      {&driver.cuModuleLoadData, "cuModuleLoadData"},
      {&driver.cuModuleGetFunction, "cuModuleGetFunction"},
      {&driver.cuFuncSetAttribute, "cuFuncSetAttribute"},
      {&driver.cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor"},
      {&driver.cuMemsetD8Async, "cuMemsetD8Async"},
      {&driver.cuLaunchKernel, "cuLaunchKernel"},
  };
  for (const auto& [place, name] : functions) {
    void* symbol = dlsym(library, name);
    if (!symbol) return name;
    *static_cast<void**>(place) = symbol;
  }
  return driver.cuInit(0) ? "cuInit" : nullptr;
}

// Returns an attribute of a device, -1 if the driver does not tell.
extern "C" int dre_jax_device_attribute(int attribute, int ordinal) {
  int device = 0, value = 0;
  if (driver.cuDeviceGet(&device, ordinal) || driver.cuDeviceGetAttribute(&value, attribute, device)) return -1;
  return value;
}

// Returns the newest CUDA that the driver supports, 13020 for 13.2; 0 if it does not tell.
extern "C" int dre_jax_driver_version() {
  int version = 0;
  return driver.cuDriverGetVersion(&version) ? 0 : version;
}

// Keeps a compiled kernel for calls with this number.
extern "C" void dre_jax_add_kernel(int64_t number, const char* cubin, uint64_t size, unsigned threads,
                                   unsigned shared_bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  kernels.try_emplace(number, Kernel{std::string(cubin, size), threads, shared_bytes, {}});
}

// Loads a kernel into the context of a device; returns what failed, or null. Another call may change the text.
extern "C" const char* dre_jax_load_kernel(int64_t number, int ordinal) {
  static thread_local std::string text;
  try {
    const PrimaryContext context(ordinal);
    const CurrentContext current(context.get());
    function_of(kernel_of(number), context.get());
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
    return text.c_str();
  }
}
