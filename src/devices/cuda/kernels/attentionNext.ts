// The next token of every row: q and k with their norms and rotary positions, k and v into the store, and attention over the
// row's context, in one kernel. What rows have in common of their contexts is read once for all of them.
//
// qkv bf16 [rows, heads + 2·kvHeads, D], out bf16 [rows, heads, D]; the KV store as in kernels/common.ts, the ranges and positions
// of a layout. `work` (made by ../sharing.ts) cuts the contexts into jobs: some ranges in a row, or a split of them, and the rows
// that see them, up to 16 queries. A warp has a job and a kv head, all by itself: its queries are the rows of a tensor core's
// tile, its keys come 16 at a time. All but the newest key of a context lies there since an earlier launch, and is on its way
// before the kernel before this one has ended. A second kernel adds the parts of each row up in order.
//
// partials: float [rows, heads, MOST_PARTS, D + 4] (sums, highest score, sum of weights). Macros: D (64 or 128), TOGETHER (heads on
// a kv head).
import { HEADER, JOB, JOB_ROWS, MOST_PARTS } from "../sharing.ts";

export const nextKernel = (suffix: string): string => `
#define STEPS (D / 32)
#define HALVES (D / 64)
#define LOG2E 1.4426950408889634f
#define NONE -1e30f

/* A head of a row, normed and turned, as a lane's share of a tile's row: eight dims of every 32. */
__device__ __forceinline__ void turnHead(const bf16* from, const float* scale, const float* angles, float eps, bool isThere, uint4* to) {
  const int at = (threadIdx.x & 3) * 8;
  float f[STEPS][8], squares = 0.0f;
#pragma unroll
  for (int s = 0; s < STEPS; s++) {
#pragma unroll
    for (int j = 0; j < 8; j++) f[s][j] = 0.0f;
    if (isThere) load8(from + 32 * s + at, f[s]);
#pragma unroll
    for (int j = 0; j < 8; j++) squares += f[s][j] * f[s][j];
  }
  if (scale) {
    squares += __shfl_xor_sync(0xffffffffu, squares, 1);
    squares += __shfl_xor_sync(0xffffffffu, squares, 2);
    const float r = 1.0f / sqrtf(squares / D + eps);
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
      float w[8];
      load8(scale + 32 * s + at, w);
#pragma unroll
      for (int j = 0; j < 8; j++) f[s][j] *= r * w[j];
    }
  }
#pragma unroll
  for (int s = 0; s < STEPS / 2; s++) {
    float cosine[8], sine[8];
    load8(angles + 32 * s + at, cosine);
    load8(angles + D / 2 + 32 * s + at, sine);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const float a = f[s][j], b = f[s + STEPS / 2][j];
      f[s][j] = a * cosine[j] - b * sine[j];
      f[s + STEPS / 2][j] = b * cosine[j] + a * sine[j];
    }
  }
#pragma unroll
  for (int s = 0; s < STEPS; s++)
    to[s] = make_uint4(packBf16(f[s][0], f[s][1]), packBf16(f[s][2], f[s][3]), packBf16(f[s][4], f[s][5]), packBf16(f[s][6], f[s][7]));
}

/* Where keys lie: a lane walks along the ranges with key lane % 16 of each tile, lanes from 16 on with its value. */
struct Walk {
  int range, from, to, cap;
  unsigned base;
};
__device__ __forceinline__ unsigned placeOf(Walk& w, const int* ranges, int key, int kv) {
  while (key >= w.to) {
    w.range++;
    w.from = w.to;
    w.to += ranges[3 * w.range + 2];
    w.cap = ranges[3 * w.range + 1];
    w.base = (unsigned)ranges[3 * w.range] / 8 + (unsigned)(2 * kv + (threadIdx.x >> 4 & 1)) * w.cap * (D / 8);
  }
  return w.base + (unsigned)(key - w.from) * (D / 8);
}
__device__ __forceinline__ void loadKeys(uint4 (&keys)[2][STEPS], const uint4* store, unsigned place) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < 2; n++) {
    const uint4* key = store + __shfl_sync(0xffffffffu, place, 8 * n + (lane >> 2)) + (lane & 3);
#pragma unroll
    for (int s = 0; s < STEPS; s++) keys[n][s] = key[4 * s];
  }
}
/* Rows 2c, 2c + 1, 2c + 8 and 2c + 9 of the values, c = lane % 4; eight dims of every 64. */
__device__ __forceinline__ void loadValues(uint4 (&values)[HALVES][4], const uint4* store, unsigned place) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const uint4* value = store + __shfl_sync(0xffffffffu, place, 16 + 2 * (lane & 3) + (k & 1) + 8 * (k >> 1)) + (lane >> 2);
#pragma unroll
    for (int h = 0; h < HALVES; h++) values[h][k] = value[8 * h];
  }
}
/* Sums of eight dims of each lane: pairs of rows next to each other, as the tensor core wants them. */
__device__ __forceinline__ void gather2(float* low, float* high, const unsigned* p, unsigned v0, unsigned v1, unsigned v2, unsigned v3) {
  mma(low, p[0], p[1], p[2], p[3], __byte_perm(v0, v1, 0x5410), __byte_perm(v2, v3, 0x5410));
  mma(high, p[0], p[1], p[2], p[3], __byte_perm(v0, v1, 0x7632), __byte_perm(v2, v3, 0x7632));
}

extern "C" __global__ void __launch_bounds__(32) attention_next_${suffix}(
    const bf16* qkv, bf16* store, bf16* out, float* partials, const int* work, const int* ranges, const int* positions,
    const float* cosSin, const float* qScale, const float* kScale, int rows, int heads, int kvHeads, float scale, float eps) {
  LET_NEXT_START();
  const int kv = blockIdx.x, lane = threadIdx.x, width = heads + 2 * kvHeads;
  const float factor = scale * LOG2E;
  const int* partsOf = work + ${HEADER};
  const uint4* wide = (const uint4*)store;
  const int jobs = work[0];
  for (int number = blockIdx.y; number < jobs; number += gridDim.y) {
    const int* job = work + ${HEADER} + rows + number * ${JOB};
    const int first = job[0], count = job[1], split = job[2], splits = job[3], jobRows = job[4];
    const bool grows = job[5] != 0;
    /* Queries lane / 4 and that + 8: their rows, with their part, and positions. */
    int member[2], position[2];
    bool isThere[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int which = ((lane >> 2) + 8 * i) / TOGETHER;
      isThere[i] = which < jobRows;
      member[i] = job[${JOB - JOB_ROWS} + (isThere[i] ? which : 0)];
      position[i] = positions[member[i] & 0xffff];
    }
    int total = 0;
    for (int i = lane; i < count; i += 32) total += ranges[3 * (first + i) + 2];
    for (int step = 16; step > 0; step >>= 1) total += __shfl_xor_sync(0xffffffffu, total, step);
    const int size = ((total + splits - 1) / splits + 15) / 16 * 16;
    const int begin = split * size, end = min(total, begin + size);
    const bool hasNew = grows && begin < total && end == total; /* the newest key */
    int base = begin;

    Walk walk = {first - 1, 0, 0, 0, 0};
    uint4 keys[2][STEPS], values[HALVES][4];
    const bool isAhead = base < end && !(hasNew && base + 16 >= end);
    if (isAhead) {
      const unsigned place = placeOf(walk, ranges, min(base + (lane & 15), end - 1), kv);
      loadKeys(keys, wide, place);
      loadValues(values, wide, place);
    }
    AFTER_PREVIOUS();
    if (hasNew) {
      const int row = job[${JOB - JOB_ROWS}] & 0xffff, last = 3 * (first + count - 1);
      bf16* key = store + ranges[last] + (long long)2 * kv * ranges[last + 1] * D + (long long)(ranges[last + 2] - 1) * D;
      const bf16* from = qkv + ((long long)row * width + heads + kv) * D;
      uint4 turned[STEPS];
      turnHead(from, kScale, cosSin + (long long)positions[row] * D, eps, true, turned);
      if (lane < 4) {
#pragma unroll
        for (int s = 0; s < STEPS; s++) *(uint4*)(key + 32 * s + 8 * lane) = turned[s];
      }
      if (lane < D / 8) *(uint4*)(key + (long long)ranges[last + 1] * D + 8 * lane) = *(const uint4*)(from + (long long)kvHeads * D + 8 * lane);
      __syncwarp();
    }
    uint4 low[STEPS], high[STEPS];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const long long row = member[i] & 0xffff;
      const bf16* from = qkv + (row * width + kv * TOGETHER + ((lane >> 2) + 8 * i) % TOGETHER) * D;
      turnHead(from, qScale, cosSin + (long long)position[i] * D, eps, isThere[i], i == 0 ? low : high);
    }
    if (base < end && !isAhead) {
      const unsigned place = placeOf(walk, ranges, min(base + (lane & 15), end - 1), kv);
      loadKeys(keys, wide, place);
      loadValues(values, wide, place);
    }

    float r[HALVES][8][4], top[2] = {NONE, NONE}, sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int h = 0; h < HALVES; h++)
#pragma unroll
      for (int j = 0; j < 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) r[h][j][i] = 0.0f;
    while (base < end) {
      float scores[2][4];
#pragma unroll
      for (int n = 0; n < 2; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) scores[n][i] = 0.0f;
#pragma unroll
        for (int s = 0; s < STEPS; s++) multiply32(scores[n], low[s], high[s], keys[n][s]);
      }
      const int next = base + 16;
      unsigned place = 0;
      if (next < end) {
        place = placeOf(walk, ranges, min(next + (lane & 15), end - 1), kv);
        loadKeys(keys, wide, place);
      }
      unsigned p[4];
#pragma unroll
      for (int i = 0; i < 2; i++) { /* queries lane / 4, then that + 8 */
        float highest = top[i];
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
          for (int k = 0; k < 2; k++) {
            if (base + 8 * n + 2 * (lane & 3) + k >= end) scores[n][2 * i + k] = NONE;
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
          sum[i] += a + b;
          p[2 * n + i] = packBf16(a, b);
        }
#pragma unroll
        for (int h = 0; h < HALVES; h++)
#pragma unroll
          for (int j = 0; j < 8; j++) {
            r[h][j][2 * i] *= shrink;
            r[h][j][2 * i + 1] *= shrink;
          }
      }
#pragma unroll
      for (int h = 0; h < HALVES; h++) {
        const uint4 *a = &values[h][0], *b = &values[h][1], *c = &values[h][2], *d = &values[h][3];
        gather2(r[h][0], r[h][1], p, a->x, b->x, c->x, d->x);
        gather2(r[h][2], r[h][3], p, a->y, b->y, c->y, d->y);
        gather2(r[h][4], r[h][5], p, a->z, b->z, c->z, d->z);
        gather2(r[h][6], r[h][7], p, a->w, b->w, c->w, d->w);
      }
      if (next < end) loadValues(values, wide, place);
      base = next;
    }

    /* Of a tile's 8 columns, column n stands for dim 8n + j: a lane has 16 dims in a row of every 64. */
#pragma unroll
    for (int i = 0; i < 2; i++) {
      sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
      sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
      if (!isThere[i]) continue;
      const long long row = member[i] & 0xffff;
      const long long at = row * heads + kv * TOGETHER + ((lane >> 2) + 8 * i) % TOGETHER;
      const bool isWhole = partsOf[row] == 1;
      float* to = partials + (at * ${MOST_PARTS} + (member[i] >> 16)) * (D + 4);
#pragma unroll
      for (int h = 0; h < HALVES; h++)
#pragma unroll
        for (int k = 0; k < 2; k++) {
          const int dim = 64 * h + 16 * (lane & 3) + 8 * k;
          float v[8];
#pragma unroll
          for (int j = 0; j < 8; j++) v[j] = isWhole ? r[h][j][2 * i + k] / sum[i] : r[h][j][2 * i + k];
          if (isWhole) store8(out + at * D + dim, v);
          else store8(to + dim, v);
        }
      if (!isWhole && (lane & 3) == 0) *(float2*)(to + D) = make_float2(top[i], sum[i]);
    }
  }
}

/* A warp adds up the parts of a head of a row: a lane has four of its dims, and the statistics of a part. */
extern "C" __global__ void __launch_bounds__(128) attention_next_${suffix}_merge(
    const float* partials, bf16* out, const int* work, int rows, int heads, float scale) {
  LET_NEXT_START();
  const int lane = threadIdx.x & 31, at = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (at >= rows * heads) return;
  const int parts = work[${HEADER} + at / heads];
  const float* from = partials + (long long)at * ${MOST_PARTS} * (D + 4);
  AFTER_PREVIOUS();
  if (parts == 1) return;
  const float2 its = lane < parts ? *(const float2*)(from + lane * (D + 4) + D) : make_float2(NONE, 0.0f);
  const float share = exp2f((its.x - warpMax(its.x)) * scale * LOG2E);
  const float weight = warpSum(its.y * share);
  const bool isThere = 4 * lane < D;
  float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 8
  for (int part = 0; part < parts; part++) {
    const float factor = __shfl_sync(0xffffffffu, share, part);
    float x[4];
    if (isThere) load4(from + part * (D + 4) + 4 * lane, x);
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] += isThere ? x[i] * factor : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) v[i] /= weight;
  if (isThere) store4(out + (long long)at * D + 4 * lane, v);
}
`;
