// Enough of CUDA to run a kernel on a CPU: a fiber for each thread of a block, blocks one after the other. Threads switch only
// where they synchronize, so races stay undetected, but wrong indices, masks and fragments show.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

using std::max;
using std::min;

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) alignas(n)

struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct Index { unsigned x, y, z; };

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline float __uint_as_float(unsigned x) {
  float y;
  memcpy(&y, &x, 4);
  return y;
}
inline unsigned __float_as_uint(float x) {
  unsigned y;
  memcpy(&y, &x, 4);
  return y;
}
inline float __int_as_float(int x) { return __uint_as_float((unsigned)x); }

/* Dynamic shared memory of the one block that runs. */
alignas(1024) char shared[256 << 10];

namespace emulator {
struct Fiber {
  ucontext_t context; /* to begin with; from then on jumps, which need no system call */
  jmp_buf at;
  std::vector<char> stack;
  unsigned thread;
  bool begun, done;
};
struct Barrier {
  int arrived = 0, phase = 0;
};

std::vector<Fiber> fibers(1024);
Fiber* now;
jmp_buf home;
Index block, threads, grid;
Barrier whole, warps[32], groups[8];
std::function<void()> kernel;
alignas(16) char slots[1024][64]; /* what a thread exchanges with others */

inline void yield() {
  if (_setjmp(now->at) == 0) _longjmp(home, 1);
}
inline void go(Fiber& fiber) {
  now = &fiber;
  if (_setjmp(home) != 0) return;
  if (fiber.begun) _longjmp(fiber.at, 1);
  fiber.begun = true;
  setcontext(&fiber.context);
}

inline void wait(Barrier& barrier, int count) {
  const int phase = barrier.phase;
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    barrier.phase++;
    return;
  }
  while (barrier.phase == phase) yield();
}
inline void waitWarp() { wait(warps[now->thread / 32], 32); }
inline void waitGroup() { wait(groups[now->thread / 128], 128); }

template <typename V> V& shown(unsigned thread) { return *(V*)slots[thread]; }

inline void enter() {
  kernel();
  now->done = true;
  yield();
}

inline void runBlock(int count) {
  memset(shared, 0xff, sizeof shared); /* NaN, so that reading uninitialized memory shows */
  whole = Barrier();
  std::fill(warps, warps + 32, Barrier());
  std::fill(groups, groups + 8, Barrier());
  for (int i = 0; i < count; i++) {
    Fiber& fiber = fibers[i];
    fiber.thread = i;
    fiber.begun = fiber.done = false;
    fiber.stack.resize(256 << 10);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    makecontext(&fiber.context, enter, 0);
  }
  for (int left = count; left > 0;) {
    left = 0;
    for (int i = 0; i < count; i++) {
      if (fibers[i].done) continue;
      go(fibers[i]);
      left += !fibers[i].done;
    }
  }
}

inline void launch(Index blocks, unsigned count, std::function<void()> work) {
  kernel = work;
  grid = blocks;
  threads = {count, 1, 1};
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        block = {x, y, z};
        runBlock(count);
      }
}
}  // namespace emulator

#define threadIdx (Index{emulator::now->thread, 0, 0})
#define blockIdx (emulator::block)
#define blockDim (emulator::threads)
#define gridDim (emulator::grid)

inline void __syncthreads() { emulator::wait(emulator::whole, emulator::threads.x); }
inline void __syncwarp() { emulator::waitWarp(); }

template <typename V> V __shfl_sync(unsigned, V x, int lane) {
  const unsigned thread = emulator::now->thread;
  emulator::shown<V>(thread) = x;
  emulator::waitWarp();
  const V y = emulator::shown<V>((thread & ~31u) | (lane & 31));
  emulator::waitWarp();
  return y;
}
template <typename V> V __shfl_xor_sync(unsigned mask, V x, int step) { return __shfl_sync(mask, x, (emulator::now->thread & 31) ^ step); }
inline bool __any_sync(unsigned, bool x) {
  const unsigned thread = emulator::now->thread;
  emulator::shown<bool>(thread) = x;
  emulator::waitWarp();
  bool any = false;
  for (unsigned lane = 0; lane < 32; lane++) any |= emulator::shown<bool>((thread & ~31u) | lane);
  emulator::waitWarp();
  return any;
}
inline int atomicAdd(int* to, int x) {
  const int before = *to;
  *to += x;
  return before;
}
