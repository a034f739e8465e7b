// A decoding step for all rows in one kernel: biases of q, k and v; norms and rotary embedding of q and k; writing k
// and v to the KV cache; and attention over each row's context. A prefix that several rows share is read once for all
// of them.
//
// qkv bf16 [rows, heads + 2·kvHeads, D], out bf16 [rows, heads, D]; the KV cache is as in kernels/common.ts, ranges and
// positions as in a layout. `work` (built by ../prefix-sharing.ts) gives each thread block a tile of up to 16 queries,
// from rows that are neighbours in the tree of contexts, and gives each warp its jobs: pieces of context that some of
// those rows see. A warp streams 16 keys at a time through its own ring in shared memory. The tile's queries are the
// rows of a tensor-core tile; queries that do not see a job's keys are masked. At the end the warps' sums are added up;
// if a tile has several blocks, the last one to finish does it. All keys of a context but the newest were written by
// earlier launches, so the first keys are prefetched before the previous kernel has ended. A context must not contain
// NaN, which would reach all rows of a tile.
//
// partials: float [tiles · splits, kvHeads, 16, D + 4] (sums, highest score, softmax denominator), for tiles with
// several blocks; counters: i32 [tiles, kvHeads], initially 0. Macros: D (64 or 128), TOGETHER (heads per kv head).
import {
  HEADER,
  JOB,
  NEXT_WARPS,
  SPLITS_MOST,
  TASK,
  TASK_JOBS,
  TASK_RANGES,
  TASK_ROWS,
  TILE_QUERIES,
} from "../prefix-sharing.ts";

/**
 * Number of tiles of keys and values in a warp's ring. With three, the next kernel's blocks would not fit beside this
 * one's.
 */
const STAGES = 2;

/** Bytes of shared memory per block, for rings and queries. */
export function nextShared(headDim: number): number {
  return NEXT_WARPS * STAGES * 64 * headDim + 2 * TILE_QUERIES * headDim;
}

export const nextKernel = (suffix: string): string => `
#define WARPS ${NEXT_WARPS}
#define STAGES ${STAGES}
#define QUERIES ${TILE_QUERIES}
#define MOST ${Math.max(NEXT_WARPS, SPLITS_MOST)} /* sums to add up */
#define STEPS (D / 32)
#define HALVES (D / 64)
#define PIECES (D / 8) /* of 16 bytes, per row */
#define TILE (16 * D) /* numbers of a tile of keys, or of values */
#define MINE (D / 32) /* dims of a lane */
#define LOG2E 1.4426950408889634f
#define NONE -1e30f
#define LOWEST -1e29f /* above NONE, so that masked keys get probability 0 */

/* Eight bf16 numbers with eight floats added. */
__device__ __forceinline__ unsigned plus(unsigned pair, float low, float high) {
  return packBf16(__uint_as_float(pair << 16) + low, __uint_as_float(pair & 0xffff0000u) + high);
}
__device__ __forceinline__ uint4 plus(uint4 eight, const float* bias) {
  float b[8];
  load8(bias, b);
  return make_uint4(plus(eight.x, b[0], b[1]), plus(eight.y, b[2], b[3]), plus(eight.z, b[4], b[5]), plus(eight.w, b[6], b[7]));
}

/* A head of a row, normed and rotated by one warp: a lane has MINE consecutive dims. All but the inputs is known in advance. */
struct Head {
  const bf16* from;
  bf16* to;
  const bf16* values; /* for a head of keys: the values to store beside it; else 0 */
  bf16* valuesTo;
  const float *bias, *valuesBias; /* 0: none. Read again with the inputs, which is cheaper than keeping them in registers. */
  float scale[MINE], cosine[MINE], sine[MINE];

  __device__ __forceinline__ void aim(const float* scales, const float* angles) {
    const int lane = threadIdx.x & 31, angle = MINE * (lane & 15);
#pragma unroll
    for (int j = 0; j < MINE; j++) {
      scale[j] = scales ? scales[MINE * lane + j] : 1.0f;
      cosine[j] = angles[angle + j];
      sine[j] = lane < 16 ? -angles[D / 2 + angle + j] : angles[D / 2 + angle + j];
    }
  }
  __device__ __forceinline__ void rotate(bool isNormed, float eps) const {
    const int lane = threadIdx.x & 31, dim = MINE * lane;
    float v[MINE], squares = 0.0f;
#pragma unroll
    for (int j = 0; j < MINE; j += 2) {
      const unsigned pair = *(const unsigned*)(from + dim + j);
      v[j] = __uint_as_float(pair << 16);
      v[j + 1] = __uint_as_float(pair & 0xffff0000u);
    }
    if (values && lane < PIECES) {
      uint4 eight = ((const uint4*)values)[lane];
      if (bias) eight = plus(eight, valuesBias + 8 * lane);
      ((uint4*)valuesTo)[lane] = eight;
    }
    if (bias) {
#pragma unroll
      for (int j = 0; j < MINE; j++) v[j] += bias[dim + j];
    }
#pragma unroll
    for (int j = 0; j < MINE; j++) squares += v[j] * v[j];
    const float r = isNormed ? 1.0f / sqrtf(warpSum(squares) / D + eps) : 1.0f;
#pragma unroll
    for (int j = 0; j < MINE; j++) v[j] *= r * scale[j];
#pragma unroll
    for (int j = 0; j < MINE; j++) {
      const float other = __shfl_xor_sync(0xffffffffu, v[j], 16);
      v[j] = v[j] * cosine[j] + other * sine[j];
    }
#pragma unroll
    for (int j = 0; j < MINE; j += 2) *(unsigned*)(to + dim + j) = packBf16(v[j], v[j + 1]);
  }
};

/* Where a warp reads next: 16 tokens of its job at a time. Lane l loads a row of token l % 16: its key if l < 16, else its value. */
struct Feed {
  const int *jobs, *ranges;
  int left, key, length, mask, from, to, next, cap, kv;
  bool isOpen;
  unsigned base;

  __device__ __forceinline__ void start() {
    const int4 a = *(const int4*)jobs, b = *(const int4*)(jobs + 4);
    key = 0;
    from = -a.z;
    to = a.w;
    next = b.x;
    isOpen = b.z >= 0;
    length = b.y + (isOpen ? ranges[3 * b.z + 2] : 0);
    mask = b.w;
    enter(a.x, a.y);
  }
  __device__ __forceinline__ void enter(int block, int capacity) {
    cap = capacity;
    base = (unsigned)block / 8 + (unsigned)(2 * kv + (threadIdx.x >> 4 & 1)) * cap * PIECES;
  }
  __device__ __forceinline__ bool isDone() const { return left == 0; }
  __device__ __forceinline__ bool hasNewest() const { return isOpen && key + 16 >= length; }
  __device__ __forceinline__ void advance() {
    key += 16;
    if (key < length) return;
    left--;
    jobs += ${JOB};
    if (left > 0) start();
  }
  /* Offset of the key or value that this lane loads, in pieces of 16 bytes. */
  __device__ __forceinline__ unsigned rowOffset() {
    const int mine = min(key + ((int)threadIdx.x & 15), length - 1);
    while (mine >= to) {
      from = to;
      to += ranges[3 * next + 2];
      enter(ranges[3 * next], ranges[3 * next + 1]);
      next++;
    }
    return base + (unsigned)(mine - from) * PIECES;
  }
};

/* Swizzle of a tile's pieces: the lanes of a quarter warp never conflict in a bank. */
__device__ __forceinline__ int keyPiece(int row, int piece) { return row * PIECES + (piece ^ ((row & 1) << 2)); }
__device__ __forceinline__ int valuePiece(int row, int piece) { return row * PIECES + (piece ^ (row & 6)); }

/* Starts copying the next tile into a stage of the ring: keys, then values. */
__device__ __forceinline__ void bring(Feed& feed, uint4* stage, const uint4* kvCache, int2* about) {
  const int lane = threadIdx.x & 31;
  const unsigned offset = feed.rowOffset();
#pragma unroll
  for (int i = 0; i < PIECES / 2; i++) {
    const int row = (32 * i + lane) / PIECES, piece = (32 * i + lane) % PIECES;
    const unsigned key = __shfl_sync(0xffffffffu, offset, row), value = __shfl_sync(0xffffffffu, offset, 16 + row);
    copy16(stage + keyPiece(row, piece), kvCache + key + piece, true);
    copy16(stage + TILE / 8 + valuePiece(row, piece), kvCache + value + piece, true);
  }
  if (lane == 0) *about = make_int2(min(16, feed.length - feed.key), feed.mask);
  feed.advance();
}

/* Accumulates eight dims of each lane: adjacent rows are paired, as the tensor core expects. */
__device__ __forceinline__ void gather2(float* low, float* high, const unsigned* p, unsigned v0, unsigned v1, unsigned v2, unsigned v3) {
  mma(low, p[0], p[1], p[2], p[3], __byte_perm(v0, v1, 0x5410), __byte_perm(v2, v3, 0x5410));
  mma(high, p[0], p[1], p[2], p[3], __byte_perm(v0, v1, 0x7632), __byte_perm(v2, v3, 0x7632));
}

/* Rescaling factors (shares) for merging partial sums of warps or blocks; returns the highest score and the total denominator. */
template <int N> __device__ __forceinline__ float2 mergeShares(const float2* stats, int count, float factor, float (&shares)[N]) {
  float2 all = make_float2(LOWEST, 0.0f);
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i < count) all.x = fmaxf(all.x, stats[i].x);
#pragma unroll
  for (int i = 0; i < N; i++) {
    shares[i] = i < count ? exp2f((stats[i].x - all.x) * factor) : 0.0f;
    if (i < count) all.y += stats[i].y * shares[i];
  }
  return all;
}

#ifndef EMULATED_MMA
extern __shared__ char shared[];
#endif

static_assert(STAGES * TILE >= QUERIES * (D + 4), "a warp's sums reuse its ring");

extern "C" __global__ void __launch_bounds__(32 * WARPS) attention_next_${suffix}(
    const bf16* qkv, bf16* kvCache, bf16* out, float* partials, int* counters, const int* work, const int* ranges, const int* positions,
    const float* cosSin, const float* qScale, const float* kScale, const float* bias, int heads, int kvHeads, int splits, float scale, float eps) {
  __shared__ int2 about[WARPS][STAGES];
  __shared__ float2 stats[QUERIES][MOST];
  __shared__ int isLast;
  LET_NEXT_START();
  const int kv = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, width = heads + 2 * kvHeads;
  const float factor = scale * LOG2E;
  const int* task = work + ${HEADER} + blockIdx.y * ${TASK};
  const int rows = task[0], used = task[1];
  if (blockIdx.y == gridDim.y - 1 && work[1] > 0) { /* rows that pad the batch: their outputs are ignored, but must be finite */
    AFTER_PREVIOUS();
    const int* copies = work + work[2];
    for (int i = threadIdx.x; i < work[1] * TOGETHER * PIECES; i += 32 * WARPS) {
      const long long row = copies[i / (TOGETHER * PIECES)];
      *((uint4*)(out + (row * heads + kv * TOGETHER) * D) + i % (TOGETHER * PIECES)) = make_uint4(0, 0, 0, 0);
    }
  }
  if (rows == 0) return;
  uint4* ring = (uint4*)shared + warp * (STAGES * TILE / 4);
  bf16* queries = (bf16*)(shared + WARPS * STAGES * TILE * 4);

  Feed feed;
  const int first = task[${TASK_JOBS} + warp];
  feed.left = task[${TASK_JOBS} + warp + 1] - first;
  feed.jobs = work + ${HEADER} + gridDim.y * ${TASK} + first * ${JOB};
  feed.ranges = ranges;
  feed.kv = kv;
  if (!feed.isDone()) feed.start();
  int ahead = 0;
  for (; ahead < STAGES && !feed.isDone() && !feed.hasNewest(); ahead++) {
    bring(feed, ring + ahead * (TILE / 4), (const uint4*)kvCache, &about[warp][ahead]);
    commit();
  }
  /* The tile's queries and newest keys, one head at a time. */
  const int items = rows * (TOGETHER + 1);
  const auto headOf = [&](int item) {
    const int which = item / (TOGETHER + 1), number = item % (TOGETHER + 1), row = task[${TASK_ROWS} + which];
    const bf16* of = qkv + (long long)row * width * D;
    Head head;
    if (number < TOGETHER) {
      head.from = of + (kv * TOGETHER + number) * D;
      head.to = queries + (which * TOGETHER + number) * D;
      head.values = 0;
      head.bias = bias ? bias + (kv * TOGETHER + number) * D : 0;
    } else {
      const int last = 3 * task[${TASK_RANGES} + which], cap = ranges[last + 1];
      head.from = of + (heads + kv) * D;
      head.to = kvCache + ranges[last] + (long long)2 * kv * cap * D + (long long)(ranges[last + 2] - 1) * D;
      head.values = head.from + (long long)kvHeads * D;
      head.bias = bias ? bias + (heads + kv) * D : 0;
      head.valuesBias = head.bias + kvHeads * D;
      head.valuesTo = head.to + (long long)cap * D;
    }
    head.aim(number < TOGETHER ? qScale : kScale, cosSin + (long long)positions[row] * D);
    return head;
  };
  Head firsts[2];
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (warp + i * WARPS < items) firsts[i] = headOf(warp + i * WARPS);
  for (int i = rows * TOGETHER * PIECES + threadIdx.x; i < QUERIES * PIECES; i += 32 * WARPS) ((uint4*)queries)[i] = make_uint4(0, 0, 0, 0);
  AFTER_PREVIOUS();

#pragma unroll
  for (int i = 0; i < 2; i++)
    if (warp + i * WARPS < items) firsts[i].rotate(qScale != 0, eps);
  for (int item = warp + 2 * WARPS; item < items; item += WARPS) headOf(item).rotate(qScale != 0, eps);
  __syncthreads();
  for (; ahead < STAGES; ahead++) {
    if (!feed.isDone()) bring(feed, ring + ahead * (TILE / 4), (const uint4*)kvCache, &about[warp][ahead]);
    else if (lane == 0) about[warp][ahead] = make_int2(0, 0);
    commit();
  }

  const int at = (lane & 3) * 8;
  uint4 low[STEPS], high[STEPS];
#pragma unroll
  for (int s = 0; s < STEPS; s++) {
    low[s] = *(const uint4*)(queries + (lane >> 2) * D + 32 * s + at);
    high[s] = *(const uint4*)(queries + ((lane >> 2) + 8) * D + 32 * s + at);
  }
  float r[HALVES][8][4], top[2] = {LOWEST, LOWEST}, sum[2] = {0.0f, 0.0f};
#pragma unroll
  for (int h = 0; h < HALVES; h++)
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) r[h][j][i] = 0.0f;

  for (int slot = 0;; slot = slot + 1 == STAGES ? 0 : slot + 1) {
    waitForCopies<STAGES - 1>();
    __syncwarp();
    const int2 its = about[warp][slot];
    if (its.x == 0) break;
    uint4* stage = ring + slot * (TILE / 4);
    float scores[2][4];
#pragma unroll
    for (int n = 0; n < 2; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) scores[n][i] = 0.0f;
#pragma unroll
      for (int s = 0; s < STEPS; s++) multiply32(scores[n], low[s], high[s], stage[keyPiece(8 * n + (lane >> 2), 4 * s + (lane & 3))]);
    }
    unsigned p[4];
#pragma unroll
    for (int i = 0; i < 2; i++) { /* queries lane / 4, then that + 8 */
      const bool sees = its.y >> ((lane >> 2) + 8 * i) / TOGETHER & 1;
      float highest = top[i];
#pragma unroll
      for (int n = 0; n < 2; n++)
#pragma unroll
        for (int k = 0; k < 2; k++) {
          if (!sees || 8 * n + 2 * (lane & 3) + k >= its.x) scores[n][2 * i + k] = NONE;
          highest = fmaxf(highest, scores[n][2 * i + k]);
        }
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
      const float shrink = exp2f((top[i] - highest) * factor);
      top[i] = highest;
      sum[i] *= shrink;
#pragma unroll
      for (int n = 0; n < 2; n++) {
        const float a = exp2f((scores[n][2 * i] - highest) * factor), b = exp2f((scores[n][2 * i + 1] - highest) * factor);
        p[2 * n + i] = packBf16(a, b);
        sum[i] += __uint_as_float(p[2 * n + i] << 16) + __uint_as_float(p[2 * n + i] & 0xffff0000u); /* as rounded for the matmul */
      }
#pragma unroll
      for (int h = 0; h < HALVES; h++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
          r[h][j][2 * i] *= shrink;
          r[h][j][2 * i + 1] *= shrink;
        }
    }
    /* Rows 2c, 2c + 1, 2c + 8 and 2c + 9 of the values, c = lane % 4; eight dims of every 64. */
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
      uint4 v[4];
#pragma unroll
      for (int k = 0; k < 4; k++) v[k] = stage[TILE / 8 + valuePiece(2 * (lane & 3) + (k & 1) + 8 * (k >> 1), (lane >> 2) + 8 * h)];
      gather2(r[h][0], r[h][1], p, v[0].x, v[1].x, v[2].x, v[3].x);
      gather2(r[h][2], r[h][3], p, v[0].y, v[1].y, v[2].y, v[3].y);
      gather2(r[h][4], r[h][5], p, v[0].z, v[1].z, v[2].z, v[3].z);
      gather2(r[h][6], r[h][7], p, v[0].w, v[1].w, v[2].w, v[3].w);
    }
    __syncwarp();
    if (!feed.isDone()) bring(feed, stage, (const uint4*)kvCache, &about[warp][slot]);
    else if (lane == 0) about[warp][slot] = make_int2(0, 0);
    commit();
  }
  waitForCopies<0>();
  __syncwarp();

  /* A warp's sums reuse its ring. Column n of a tile's 8 is dim 8n + j: a lane has 16 consecutive dims of every 64. */
  float* sums = (float*)ring;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int query = (lane >> 2) + 8 * i;
    sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
    sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
    if ((lane & 3) == 0) stats[query][warp] = make_float2(top[i], sum[i]);
#pragma unroll
    for (int h = 0; h < HALVES; h++)
#pragma unroll
      for (int k = 0; k < 2; k++) {
        float v[8];
#pragma unroll
        for (int j = 0; j < 8; j++) v[j] = r[h][j][2 * i + k];
        store8(sums + query * (D + 4) + 64 * h + 16 * (lane & 3) + 8 * k, v);
      }
  }
  __syncthreads();
  float* mine = partials + ((long long)blockIdx.y * kvHeads + kv) * QUERIES * (D + 4);
  const int pieces = rows * TOGETHER * (D / 4);
  for (int piece = threadIdx.x; piece < pieces; piece += 32 * WARPS) {
    const int query = piece / (D / 4), dim = piece % (D / 4) * 4;
    float v[4] = {0.0f, 0.0f, 0.0f, 0.0f}, shares[WARPS];
    const float2 all = mergeShares(stats[query], WARPS, factor, shares);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      float x[4];
      load4((const float*)shared + w * (STAGES * TILE) + query * (D + 4) + dim, x);
#pragma unroll
      for (int j = 0; j < 4; j++) v[j] += x[j] * shares[w];
    }
    if (used > 1) {
      store4(mine + query * (D + 4) + dim, v);
      if (dim == 0) *(float2*)(mine + query * (D + 4) + D) = all;
      continue;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] /= all.y;
    const long long row = task[${TASK_ROWS} + query / TOGETHER];
    store4(out + (row * heads + kv * TOGETHER + query % TOGETHER) * D + dim, v);
  }
  if (used == 1) return;

  __threadfence();
  __syncthreads();
  const int tile = blockIdx.y / splits;
  int* counter = counters + tile * kvHeads + kv;
  if (threadIdx.x == 0) isLast = atomicAdd(counter, 1) == used - 1;
  __syncthreads();
  if (!isLast) return;
  __threadfence();
  if (threadIdx.x == 0) *counter = 0;
  const long long apart = (long long)kvHeads * QUERIES * (D + 4);
  const float* parts = partials + ((long long)tile * splits * kvHeads + kv) * QUERIES * (D + 4);
  for (int i = threadIdx.x; i < rows * TOGETHER * used; i += 32 * WARPS) {
    const int query = i / used, part = i % used;
    stats[query][part] = __ldcg((const float2*)(parts + part * apart + query * (D + 4) + D));
  }
  __syncthreads();
  for (int piece = threadIdx.x; piece < pieces; piece += 32 * WARPS) {
    const int query = piece / (D / 4), dim = piece % (D / 4) * 4;
    float v[4] = {0.0f, 0.0f, 0.0f, 0.0f}, shares[MOST];
    const float2 all = mergeShares(stats[query], used, factor, shares);
#pragma unroll
    for (int part = 0; part < MOST; part++) {
      if (part >= used) break;
      const float4 x = __ldcg((const float4*)(parts + part * apart + query * (D + 4) + dim));
      v[0] += x.x * shares[part]; v[1] += x.y * shares[part]; v[2] += x.z * shares[part]; v[3] += x.w * shares[part];
    }
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] /= all.y;
    const long long row = task[${TASK_ROWS} + query / TOGETHER];
    store4(out + (row * heads + kv * TOGETHER + query % TOGETHER) * D + dim, v);
  }
}
`;
