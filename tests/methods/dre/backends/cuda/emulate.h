// Runs the kernel on a CPU: each thread of a block is a fiber, in place of device.cuh. Warps continue in random order,
// and one gets ahead of the others, which exposes missing barriers. Several blocks run side by side, which wait for
// each other.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define DEVICE inline __attribute__((always_inline))
#define __global__
#define __launch_bounds__(...)
#define SHARED_MEMORY(name) char* name = emu::now->block->shared
using std::min;

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace emu {
constexpr int STACK = 256 * 1024;
struct Warp {
  uint32_t in[2][32][8];
  int arrived = 0, generation = 0;
};
struct Block;
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  Block* block;
  int thread, collectives = 0;
  bool done = false;
};
struct Block {
  int number, arrived = 0, generation = 0;
  char* shared;
  std::vector<char> memory;
  std::vector<Warp> warps;
  std::vector<std::unique_ptr<Fiber>> fibers;
};
inline ucontext_t main_context;
inline Fiber* now;
inline std::function<void()> body;
inline long progress;

inline void yield() { swapcontext(&now->context, &main_context); }
inline void entry() {
  body();
  now->done = true;
  ++progress;
  yield();
}
inline Warp& warp() { return now->block->warps[now->thread / 32]; }
inline void warp_barrier() {
  Warp& w = warp();
  const int mine = w.generation;
  if (++w.arrived == 32)
    w.arrived = 0, ++w.generation, ++progress;
  else
    while (w.generation == mine) yield();
}
// Lets a warp read what its lanes have.
template <class T>
inline Warp& exchange(const T* values, int n, int& parity) {
  Warp& w = warp();
  parity = now->collectives++ & 1;
  memcpy(w.in[parity][now->thread % 32], values, n * sizeof(T));
  warp_barrier();
  return w;
}

inline std::unique_ptr<Block> start(int number, int threads, size_t shared_bytes) {
  auto block = std::make_unique<Block>();
  block->number = number;
  block->memory.assign(shared_bytes + 128, 0x7f);  // nearly infinite numbers, where nothing was written
  block->shared = (char*)(((uintptr_t)block->memory.data() + 127) & ~(uintptr_t)127);
  block->warps.resize(threads / 32);
  for (int i = 0; i < threads; ++i) {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack.resize(STACK), fiber->block = block.get(), fiber->thread = i;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.data(), fiber->context.uc_stack.ss_size = STACK;
    fiber->context.uc_link = &main_context;
    makecontext(&fiber->context, entry, 0);
    block->fibers.push_back(std::move(fiber));
  }
  return block;
}

// All blocks of a grid, `side_by_side` of them at a time. Ends the process if none can go on.
inline void launch(int blocks, int threads, size_t shared_bytes, int side_by_side, std::function<void()> f) {
  body = f;
  std::vector<std::unique_ptr<Block>> running;
  long idle = 0;
  for (int next = 0; next < blocks || !running.empty();) {
    while (next < blocks && (int)running.size() < side_by_side) running.push_back(start(next++, threads, shared_bytes));
    Block& block = *running[rand() % running.size()];
    const int warp_number = rand() % (threads / 32), turns = 1 + rand() % 64;
    const long before = progress;
    for (long turn = 0, last = -1; turn < turns && progress != last; ++turn) {  // until the warp waits for another one
      last = progress;
      for (int lane = 0; lane < 32; ++lane) {
        Fiber& fiber = *block.fibers[warp_number * 32 + lane];
        if (!fiber.done) now = &fiber, swapcontext(&main_context, &fiber.context);
      }
    }
    idle = progress == before ? idle + 1 : 0;
    if (idle > 1000000) fprintf(stderr, "the emulated blocks wait for each other for ever\n"), abort();
    running.erase(std::remove_if(running.begin(), running.end(),
                                 [](const auto& b) {
                                   return std::all_of(b->fibers.begin(), b->fibers.end(),
                                                      [](const auto& f) { return f->done; });
                                 }),
                  running.end());
  }
}
struct Index {
  int x;
};
}  // namespace emu

#define threadIdx (emu::Index{emu::now->thread})
#define blockIdx (emu::Index{emu::now->block->number})

inline void __syncthreads() {
  emu::Block& block = *emu::now->block;
  const int mine = block.generation;
  if (++block.arrived == (int)block.fibers.size())
    block.arrived = 0, ++block.generation, ++emu::progress;
  else
    while (block.generation == mine) emu::yield();
}
inline void __syncwarp() { emu::warp_barrier(); }
inline void __threadfence() {}
template <class T>
inline T atomicAdd(T* to, T value) {
  const T before = *to;
  *to += value;
  return before;
}
inline float shuffle(float x, int from) {
  int parity;
  emu::Warp& w = emu::exchange(&x, 1, parity);
  float r;
  memcpy(&r, w.in[parity][from], 4);
  return r;
}
inline int lane_of_thread() { return emu::now->thread & 31; }
inline float __shfl_xor_sync(unsigned, float x, int h) { return shuffle(x, lane_of_thread() ^ h); }
inline float __shfl_down_sync(unsigned, float x, int h) {
  const int l = lane_of_thread();
  return shuffle(x, l + h < 32 ? l + h : l);
}
inline float __shfl_up_sync(unsigned, float x, int h) {
  const int l = lane_of_thread();
  return shuffle(x, l >= h ? l - h : l);
}
inline unsigned bits(float x) {
  unsigned u;
  memcpy(&u, &x, 4);
  return u;
}
inline float number(unsigned u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}
inline float quick_sqrt(float v) { return sqrtf(v); }
inline float quick_div(float a, float b) { return a / b; }
inline void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  unsigned v[6] = {a[0], a[1], a[2], a[3], b0, b1};
  for (unsigned& u : v) u &= 0xffffe000u;
  int parity;
  emu::Warp& w = emu::exchange(v, 6, parity);
  const int lane = lane_of_thread(), g = lane >> 2, t = lane & 3;
  for (int i = 0; i < 4; ++i) {
    const int row = g + (i >= 2 ? 8 : 0), col = 2 * t + (i & 1);
    double sum = 0;
    for (int k = 0; k < 8; ++k)
      sum += double(number(w.in[parity][(row & 7) * 4 + (k & 3)][(row >> 3) + 2 * (k >> 2)])) *
             number(w.in[parity][col * 4 + (k & 3)][4 + (k >> 2)]);
    c[i] = float(c[i] + sum);
  }
}
// A copy arrives only when the thread waits for it.
struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};
inline std::vector<Copy>& pending_copies() {
  static std::vector<std::vector<Copy>> all(1024 * 64);
  return all[(emu::now->block->number % 64) * 1024 + emu::now->thread];
}
inline void copy_16_bytes(float* to, const float* from) { pending_copies().push_back({to, from, 16}); }
template <class T>
inline void copy_4_bytes(T* to, const T* from) {
  pending_copies().push_back({to, from, 4});
}
inline void await_copies() {
  for (const Copy& copy : pending_copies()) memcpy(copy.to, copy.from, copy.bytes);
  pending_copies().clear();
}
inline void store_for_all(float* to, float x) { *to = x; }
template <class T>
inline T load_of_all(const T* from) {
  return *from;
}
inline void pause() { emu::yield(); }
