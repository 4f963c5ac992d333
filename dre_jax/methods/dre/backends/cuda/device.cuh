// The instructions of the GPU that the other files use. `tests/methods/dre/backends/cuda/emulate.h` has the same on a
// CPU.

#define DEVICE __device__ __forceinline__
#define SHARED_MEMORY(name) extern __shared__ __align__(128) char name[]

DEVICE unsigned bits(float x) { return __float_as_uint(x); }
DEVICE float number(unsigned x) { return __uint_as_float(x); }
DEVICE float quick_div(float a, float b) { return __fdividef(a, b); }

DEVICE float quick_sqrt(float v) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
  return root;
}

// c += a @ b for 16 x 8 and 8 x 8 numbers of 11 bits.
DEVICE void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Start a copy from global to shared memory; `await_copies` waits for the thread's own.
DEVICE void copy_16_bytes(float* to, const float* from) {
  const unsigned address = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
template <class T>
DEVICE void copy_4_bytes(T* to, const T* from) {
  const unsigned address = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}
DEVICE void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Numbers that blocks exchange pass by the cache of their multiprocessor.
DEVICE void store_for_all(float* to, float x) { __stcg(to, x); }
DEVICE float load_of_all(const float* from) { return __ldcg(from); }
DEVICE unsigned load_of_all(const unsigned* from) { return *(volatile const unsigned*)from; }
DEVICE void pause() { __nanosleep(100); }
