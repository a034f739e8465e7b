// Building blocks of the attention kernels: tiles of rows in shared memory and two matmuls on them, per instruction
// set.
//
// A block owns ROWS = 16·WARPS rows (queries, or keys in backward). A warp owns 16 of them and keeps its results in the
// layout of a tensor core: of a 16×N result, a lane holds r[n][0..3] = rows lane/4 (twice) and lane/4 + 8 (twice),
// columns 8n + 2(lane%4) + {0, 1}.
//
//   WAY_FLOAT   fp32 on plain multiply-adds, any GPU                     row stride D + 4
//   WAY_MMA     bf16, mma.sync of one warp, from compute capability 8.0   panels of 64 columns, 16-byte pieces xor row%8
//   WAY_WGMMA   bf16, wgmma of four warps on shared memory, 9.0a only     the same panels: the layout "128-byte swizzle"
//
// Macros: WAY (the instruction set), D (head size, a multiple of 8), WARPS, TILE (rows of the streamed tiles), STAGES
// (tiles in flight).

import { COPIES, WGMMA, wgmma } from "./hopper.ts";

export type InstructionSet = "float" | "mma" | "wgmma";

/** CUDA source of the primitives (copy, wait, multiply) that PARTS calls, for one instruction set. */
export function instructions(instructionSet: InstructionSet, headDim: number, tile: number): string {
  const columns = (headDim + 15) & ~15;
  return `
#ifdef EMULATED /* the test emulator's */
#include EMULATED
#else
${COPIES}
/* One float, likewise. */
__device__ __forceinline__ void copy4(float* to, const float* from, bool there) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\\n" ::"r"(sharedAddress(to)), "l"(from), "r"(there ? 4 : 0));
#else
  *to = there ? *from : 0.0f;
#endif
}
/* Waits until all but the last N commits of every thread of the block have arrived; also a block barrier. */
template <int N> __device__ __forceinline__ void waitFor() {
  waitForCopies<N>();
#if WAY == WAY_WGMMA
  asm volatile("fence.proxy.async.shared::cta;\\n");
#endif
  __syncthreads();
}
__device__ __forceinline__ float exp2Fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#if WAY == WAY_MMA
__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], const T* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\\n"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(sharedAddress(p)));
}
__device__ __forceinline__ void ldmatrixTransposed(unsigned (&r)[4], const T* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\\n"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(sharedAddress(p)));
}
__device__ __forceinline__ void mma(float (&r)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\\n"
    : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
#if WAY == WAY_WGMMA
${WGMMA}
__device__ __forceinline__ void barrierInit(unsigned long long* b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\\n" ::"r"(sharedAddress(b)), "r"(count) : "memory");
}
__device__ __forceinline__ void barrierArrive(unsigned long long* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\\n" ::"r"(sharedAddress(b)) : "memory");
}
__device__ __forceinline__ void barrierWait(unsigned long long* b, int parity) {
  asm volatile("{\\n.reg .pred p;\\nagain:\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n@!p bra again;\\n}\\n" ::"r"(sharedAddress(b)), "r"(parity) : "memory");
}
/* Waits for this thread's own copies but the last N commits; they are visible to wgmma, too. */
template <int N> __device__ __forceinline__ void waitOwn() {
  asm volatile("cp.async.wait_group %0;\\nfence.proxy.async.shared::cta;\\n" ::"n"(N) : "memory");
}
/* Keeps the compiler from reading a result before the wait for it. */
__device__ __forceinline__ void pin(float& x) { asm volatile("" : "+f"(x)::"memory"); }
${instructionSet === "wgmma" ? wgmma("wgmmaScores", tile, "shared", 0) + wgmma("wgmmaGather", columns, "registers", 1) : ""}
#endif
#endif
`;
}

/** CUDA source of tiles and matmuls, built on these primitives. */
export const PARTS = `
#define COLUMNS ((D + 15) / 16 * 16)
#define PANELS ((D + 63) / 64)
#define ROWS (16 * WARPS)
#define THREADS (32 * WARPS)
#if WAY == WAY_WGMMA
#define AHEAD (STAGES - 2) /* tiles in flight while one is processed */
#else
#define AHEAD (STAGES > 1 ? STAGES - 1 : 1)
#endif
#define PIECES (D * (int)sizeof(T) / 16)
#define LANE (threadIdx.x & 31)
#define WARP (threadIdx.x >> 5)
#define LOG2E 1.4426950408889634f
#if WAY == WAY_FLOAT
#define NC (D / 8)
#define TILE_ELEMENTS(rows) ((rows) * (D + 4))
#else
#define NC (COLUMNS / 8)
#define TILE_ELEMENTS(rows) ((rows) * 64 * PANELS)
#endif
#if WAY == WAY_WGMMA
#define UNIT 64 /* rows that advance together */
#else
#define UNIT 16
#endif

/* Offset of an element in a tile of N rows. */
template <int N> __device__ __forceinline__ int tileOffset(int row, int column) {
#if WAY == WAY_FLOAT
  return row * (D + 4) + column;
#else
  return (column >> 6) * (N * 64) + row * 64 + ((((column >> 3) & 7) ^ (row & 7)) << 3) + (column & 7);
#endif
}

/* If D is not a multiple of 16, the padding of a tile must not be NaN. */
__device__ __forceinline__ void clearShared(char* shared, int bytes) {
#if D % 16 != 0 && WAY != WAY_FLOAT
  for (int i = threadIdx.x * 16; i < bytes; i += THREADS * 16) *(uint4*)(shared + i) = make_uint4(0, 0, 0, 0);
  __syncthreads();
#endif
}

template <int N> __device__ __forceinline__ void clear(float (&r)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; n++) r[n][0] = r[n][1] = r[n][2] = r[n][3] = 0.0f;
}

#if WAY == WAY_FLOAT

/* r[16, TILE] = own rows (from row on) · tileᵀ */
__device__ __forceinline__ void scores(float (&r)[TILE / 8][4], const T* own, int row, const T* tile) {
  clear(r);
  const T* a = own + (row + (LANE >> 2)) * (D + 4);
  const T* b = tile + 2 * (LANE & 3) * (D + 4);
#pragma unroll 2
  for (int k = 0; k < D; k += 4) {
    const float4 x = *(const float4*)(a + k), y = *(const float4*)(a + 8 * (D + 4) + k);
#pragma unroll
    for (int n = 0; n < TILE / 8; n++) {
      const float4 u = *(const float4*)(b + n * 8 * (D + 4) + k), v = *(const float4*)(b + (n * 8 + 1) * (D + 4) + k);
      r[n][0] += x.x * u.x + x.y * u.y + x.z * u.z + x.w * u.w;
      r[n][1] += x.x * v.x + x.y * v.y + x.z * v.z + x.w * v.w;
      r[n][2] += y.x * u.x + y.y * u.y + y.z * u.z + y.w * u.w;
      r[n][3] += y.x * v.x + y.y * v.y + y.z * v.z + y.w * v.w;
    }
  }
}

/* r[16, D] += p[16, TILE] · tile */
__device__ __forceinline__ void gather(float (&r)[NC][4], const float (&p)[TILE / 8][4], const T* tile) {
  const T* b = tile + 2 * (LANE & 3);
#pragma unroll
  for (int k = 0; k < TILE; k++) {
    const int from = (LANE & ~3) | ((k & 7) >> 1);
    const float x = __shfl_sync(0xffffffffu, p[k >> 3][k & 1], from);
    const float y = __shfl_sync(0xffffffffu, p[k >> 3][2 + (k & 1)], from);
#pragma unroll
    for (int n = 0; n < NC; n++) {
      const float2 v = *(const float2*)(b + k * (D + 4) + n * 8);
      r[n][0] += x * v.x;
      r[n][1] += x * v.y;
      r[n][2] += y * v.x;
      r[n][3] += y * v.y;
    }
  }
}
template <int PENDING, int N> __device__ __forceinline__ void settle(float (&r)[N][4]) {}

#elif WAY == WAY_MMA

__device__ __forceinline__ void scores(float (&r)[TILE / 8][4], const T* own, int row, const T* tile) {
  clear(r);
#pragma unroll
  for (int k = 0; k < COLUMNS; k += 16) {
    unsigned a[4];
    ldmatrix(a, own + tileOffset<ROWS>(row + (LANE & 15), k + ((LANE >> 4) << 3)));
#pragma unroll
    for (int n = 0; n < TILE / 8; n += 2) {
      unsigned b[4];
      ldmatrix(b, tile + tileOffset<TILE>(n * 8 + (LANE & 7) + ((LANE >> 4) << 3), k + ((LANE >> 3) & 1) * 8));
      mma(r[n], a, b[0], b[1]);
      mma(r[n + 1], a, b[2], b[3]);
    }
  }
}

__device__ __forceinline__ void gather(float (&r)[NC][4], const float (&p)[TILE / 8][4], const T* tile) {
#pragma unroll
  for (int k = 0; k < TILE / 16; k++) {
    const unsigned a[4] = {packBf16(p[2 * k][0], p[2 * k][1]), packBf16(p[2 * k][2], p[2 * k][3]),
                           packBf16(p[2 * k + 1][0], p[2 * k + 1][1]), packBf16(p[2 * k + 1][2], p[2 * k + 1][3])};
#pragma unroll
    for (int n = 0; n < NC; n += 2) {
      unsigned b[4];
      ldmatrixTransposed(b, tile + tileOffset<TILE>(k * 16 + (LANE & 15), n * 8 + ((LANE >> 4) << 3)));
      mma(r[n], a, b[0], b[1]);
      mma(r[n + 1], a, b[2], b[3]);
    }
  }
}
template <int PENDING, int N> __device__ __forceinline__ void settle(float (&r)[N][4]) {}

#else

/* Own rows stay in shared memory: held in registers over the loop, ptxas 13.0 lets others overwrite them (seen with D = 64).
   Queued, gather too: a result is ready after settle with as many matmuls PENDING as were queued after it. */
__device__ __forceinline__ void scores(float (&r)[TILE / 8][4], const T* own, int row, const T* tile) {
  const T* a = own + (row & ~63) * 64;
  wgmmaFence();
#pragma unroll
  for (int k = 0; k < COLUMNS; k += 16) {
    wgmmaScores(r, descriptor(a + (k >> 6) * (ROWS * 64) + (k & 63), 0), descriptor(tile + (k >> 6) * (TILE * 64) + (k & 63), 0), k != 0);
  }
  wgmmaCommit();
}

__device__ __forceinline__ void gather(float (&r)[NC][4], const float (&p)[TILE / 8][4], const T* tile) {
  unsigned a[TILE / 16][4];
#pragma unroll
  for (int k = 0; k < TILE / 16; k++) {
    a[k][0] = packBf16(p[2 * k][0], p[2 * k][1]);
    a[k][1] = packBf16(p[2 * k][2], p[2 * k][3]);
    a[k][2] = packBf16(p[2 * k + 1][0], p[2 * k + 1][1]);
    a[k][3] = packBf16(p[2 * k + 1][2], p[2 * k + 1][3]);
  }
  wgmmaFence();
#pragma unroll
  for (int k = 0; k < TILE / 16; k++) {
    wgmmaGather(r, a[k], descriptor(tile + k * 16 * 64, TILE * 128), 1);
  }
  wgmmaCommit();
}
template <int PENDING, int N> __device__ __forceinline__ void settle(float (&r)[N][4]) {
  wgmmaWait<PENDING>();
#pragma unroll
  for (int n = 0; n < N; n++) {
    pin(r[n][0]);
    pin(r[n][1]);
    pin(r[n][2]);
    pin(r[n][3]);
  }
}
#endif

/* Synchronizes reads and overwrites of tiles. Every warp loads its share of each tile and reads all of it. */
struct Pipe {
#if WAY == WAY_WGMMA
  /* Barriers of each stage, so that one warpgroup can compute the softmax while the other multiplies. */
  unsigned long long* barriers;
  __device__ __forceinline__ Pipe(void* at) : barriers((unsigned long long*)at) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < 2 * STAGES; i++) barrierInit(barriers + i, WARPS);
    }
    __syncthreads();
  }
  /* After the first copies: the block's own rows have arrived. */
  __device__ __forceinline__ void start() {
    waitFor<AHEAD - 1>();
    if (LANE == 0) barrierArrive(barriers);
  }
  /* Waits until tile i may be read. */
  __device__ __forceinline__ void read(int i) {
    waitOwn<AHEAD - 2>(); /* including this warp's share of the next tile */
    __syncwarp();
    if (LANE == 0) barrierArrive(barriers + (i + 1) % STAGES);
    barrierWait(barriers + i % STAGES, i / STAGES & 1);
  }
  /* Waits until the tile AHEAD after i may be overwritten. */
  __device__ __forceinline__ void write(int i) {
    const int tile = i + AHEAD;
    if (tile >= STAGES) barrierWait(barriers + STAGES + tile % STAGES, tile / STAGES + 1 & 1);
  }
  __device__ __forceinline__ void done(int i) {
    __syncwarp();
    if (LANE == 0) barrierArrive(barriers + STAGES + i % STAGES);
  }
#else
  __device__ __forceinline__ Pipe(void*) {}
  __device__ __forceinline__ void start() { waitFor<AHEAD - 1>(); }
  __device__ __forceinline__ void read(int i) { waitFor<AHEAD - 1>(); }
  __device__ __forceinline__ void write(int i) {}
  __device__ __forceinline__ void done(int i) {}
#endif
};

/* Finds keys by absolute position: which range of a context holds position j. Positions must ascend. */
struct Context {
  const int* ranges;
  int range, begin, end, cap;
  long long block;
  __device__ __forceinline__ Context(const int* table, int first) : ranges(table), range(first - 1), begin(0), end(0), cap(0), block(0) {}
  __device__ __forceinline__ const T* key(const T* kvCache, int kv, int j) {
    while (j >= end) {
      range++;
      begin = end;
      end += ranges[3 * range + 2];
      cap = ranges[3 * range + 1];
      block = ranges[3 * range];
    }
    return kvCache + block + ((long long)kv * 2 * cap + (j - begin)) * D;
  }
};

/* Keys and values at positions first … first + TILE of a context into tiles; zeros from limit on. */
__device__ __forceinline__ void loadContext(T* keys, T* values, const T* kvCache, Context& context, int kv, int first, int limit) {
#pragma unroll
  for (int step = 0; step < (TILE * PIECES + THREADS - 1) / THREADS; step++) {
    const int i = step * THREADS + threadIdx.x;
    if (TILE * PIECES % THREADS != 0 && i >= TILE * PIECES) break;
    const int row = i / PIECES, column = i % PIECES * (16 / (int)sizeof(T));
    const bool there = first + row < limit;
    const T* from = there ? context.key(kvCache, kv, first + row) + column : kvCache;
    copy16(keys + tileOffset<TILE>(row, column), from, there);
    copy16(values + tileOffset<TILE>(row, column), there ? from + (long long)context.cap * D : kvCache, there);
  }
}

/* Stores \`count\` of a warp's 16 rows of results, scaled by \`upper\` and \`lower\`, through its own rows of a tile. */
__device__ __forceinline__ void storeRows(const float (&r)[NC][4], float upper, float lower, T* tile, int row, T* to, long long stride, int count) {
  const int mine = row + (LANE >> 2), column = 2 * (LANE & 3);
  __syncwarp();
#pragma unroll
  for (int n = 0; n < NC; n++) {
#if WAY == WAY_FLOAT
    *(float2*)(tile + tileOffset<ROWS>(mine, n * 8 + column)) = make_float2(r[n][0] * upper, r[n][1] * upper);
    *(float2*)(tile + tileOffset<ROWS>(mine + 8, n * 8 + column)) = make_float2(r[n][2] * lower, r[n][3] * lower);
#else
    *(unsigned*)(tile + tileOffset<ROWS>(mine, n * 8 + column)) = packBf16(r[n][0] * upper, r[n][1] * upper);
    *(unsigned*)(tile + tileOffset<ROWS>(mine + 8, n * 8 + column)) = packBf16(r[n][2] * lower, r[n][3] * lower);
#endif
  }
  __syncwarp();
  for (int i = LANE; i < 16 * PIECES; i += 32) {
    const int at = i / PIECES, from = i % PIECES * (16 / (int)sizeof(T));
    if (at < count) *(uint4*)(to + at * stride + from) = *(const uint4*)(tile + tileOffset<ROWS>(row + at, from));
  }
}
`;
