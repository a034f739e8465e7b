// Attention for one new token per sequence over its cached context. It is bound by reading keys and values once, so it
// uses no tensor cores.
//
// q, out [rows, heads, D]; the KV cache and the tables are as in kernels/attention.ts. A span has one row here, or
// none; then it is skipped, so that a captured launch serves any number of sequences up to its grid. Everything that
// changes between steps is read from the tables. A block processes TOGETHER heads of one kv head over one split of the
// context; splits depend only on the context's length. The last block of a row to finish (found by a counter, which it
// resets to 0) adds up the splits in order.
//
// partials: float [rows, heads, splits, D + 2] (weighted sums of values, highest score, softmax denominator); counters:
// i32 [rows, heads / TOGETHER], initially 0. Macros: D (a multiple of 8, at most 256), TOGETHER (heads per block),
// LANES (lanes per key: D / 8 rounded up to a power of two).

/** Maximum number of splits. */
export const DECODE_SPLITS = 16;

export const decodeKernel = (suffix: string): string => `
#define WARPS 4
#define KEYS (32 / LANES) /* that a warp reads at once */
#define AHEAD 4 /* such reads in flight */
#define STEP (WARPS * AHEAD * KEYS)
#define LOG2E 1.4426950408889634f
#define NONE -1e30f
#define MOST ${DECODE_SPLITS} /* splits */

struct Eight { uint4 parts[sizeof(T) / 2]; };
__device__ __forceinline__ void unpack(const Eight& raw, float* v) { load8((const T*)raw.parts, v); }
__device__ __forceinline__ void fetch(Eight& raw, const T* from) {
#pragma unroll
  for (int i = 0; i < (int)sizeof(T) / 2; i++) raw.parts[i] = ((const uint4*)from)[i];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) attention_decode_${suffix}(
    const T* q, const T* kvCache, T* out, float* partials, int* counters, const int* spans, const int* ranges, int heads, int kvHeads, float scale) {
  __shared__ float sums[WARPS][TOGETHER][D];
  __shared__ float tops[WARPS][TOGETHER], weights[WARPS][TOGETHER];
  __shared__ int last;
  CHAINED();
  const int* span = spans + 4 * blockIdx.z;
  if (span[1] == 0) return;
  const int split = blockIdx.y, splits = gridDim.y;
  const int head = blockIdx.x * TOGETHER, kv = head / (heads / kvHeads);
  const int context = span[2] + 1;
  const int size = ((context + splits - 1) / splits + STEP - 1) / STEP * STEP;
  const int begin = split * size, end = min(context, begin + size);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int column = (lane & (LANES - 1)) * 8;
  const bool there = column < D;
  const float factor = scale * LOG2E;
  const long long row = span[0];

  float query[TOGETHER][8], r[TOGETHER][8], top[TOGETHER], sum[TOGETHER];
#pragma unroll
  for (int h = 0; h < TOGETHER; h++) {
    top[h] = NONE;
    sum[h] = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) query[h][i] = r[h][i] = 0.0f;
    if (there) load8(q + (row * heads + head + h) * D + column, query[h]);
  }
  int range = span[3] - 1, from = 0, to = 0, cap = 0;
  const T* block = kvCache;
  for (int j = begin; j < end; j += STEP) {
    Eight keys[AHEAD], values[AHEAD];
    bool seen[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int at = j + (warp * AHEAD + u) * KEYS + lane / LANES;
      seen[u] = at < end;
#pragma unroll
      for (int i = 0; i < (int)sizeof(T) / 2; i++) keys[u].parts[i] = values[u].parts[i] = make_uint4(0, 0, 0, 0);
      if (!seen[u] || !there) continue;
      while (at >= to) {
        range++;
        from = to;
        to += ranges[3 * range + 2];
        cap = ranges[3 * range + 1];
        block = kvCache + ranges[3 * range] + (long long)kv * 2 * cap * D + column;
      }
      const T* key = block + (long long)(at - from) * D;
      fetch(keys[u], key);
      fetch(values[u], key + (long long)cap * D);
    }
    float scores[AHEAD][TOGETHER];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      float k[8];
      unpack(keys[u], k);
#pragma unroll
      for (int h = 0; h < TOGETHER; h++) {
        float x = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++) x += query[h][i] * k[i];
#pragma unroll
        for (int step = LANES / 2; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
        scores[u][h] = seen[u] ? x : NONE;
      }
    }
#pragma unroll
    for (int h = 0; h < TOGETHER; h++) {
      float highest = top[h];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) highest = fmaxf(highest, scores[u][h]);
      const float shrink = exp2f((top[h] - highest) * factor);
      top[h] = highest;
      sum[h] *= shrink;
#pragma unroll
      for (int i = 0; i < 8; i++) r[h][i] *= shrink;
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        scores[u][h] = seen[u] ? exp2f((scores[u][h] - highest) * factor) : 0.0f;
        sum[h] += scores[u][h];
      }
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      float v[8];
      unpack(values[u], v);
#pragma unroll
      for (int h = 0; h < TOGETHER; h++)
#pragma unroll
        for (int i = 0; i < 8; i++) r[h][i] += scores[u][h] * v[i];
    }
  }

  /* Reduces over the keys of a warp, then the warps, then the splits. */
#pragma unroll
  for (int h = 0; h < TOGETHER; h++) {
#pragma unroll
    for (int step = LANES; step < 32; step <<= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, top[h], step);
      const float highest = fmaxf(top[h], other);
      const float mine = exp2f((top[h] - highest) * factor), its = exp2f((other - highest) * factor);
      sum[h] = sum[h] * mine + __shfl_xor_sync(0xffffffffu, sum[h], step) * its;
#pragma unroll
      for (int i = 0; i < 8; i++) r[h][i] = r[h][i] * mine + __shfl_xor_sync(0xffffffffu, r[h][i], step) * its;
      top[h] = highest;
    }
    if (lane < LANES && there) {
#pragma unroll
      for (int i = 0; i < 8; i++) sums[warp][h][column + i] = r[h][i];
    }
    if (lane == 0) {
      tops[warp][h] = top[h];
      weights[warp][h] = sum[h];
    }
  }
  __syncthreads();
  float* mine = partials + ((row * heads + head) * splits + split) * (D + 2);
  for (int at = threadIdx.x; at < TOGETHER * D; at += 32 * WARPS) {
    const int h = at / D, i = at % D;
    float highest = tops[0][h], total = 0.0f, weight = 0.0f;
    for (int w = 1; w < WARPS; w++) highest = fmaxf(highest, tops[w][h]);
    for (int w = 0; w < WARPS; w++) {
      const float share = exp2f((tops[w][h] - highest) * factor);
      total += sums[w][h][i] * share;
      weight += weights[w][h] * share;
    }
    if (splits == 1) {
      out[(row * heads + head + h) * D + i] = fromFloat<T>(total / weight);
    } else {
      float* to = mine + (long long)h * splits * (D + 2);
      to[i] = total;
      if (i == 0) {
        to[D] = highest;
        to[D + 1] = weight;
      }
    }
  }
  if (splits == 1) return;
  __threadfence();
  __syncthreads();
  int* counter = counters + row * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0) last = atomicAdd(counter, 1) == splits - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0) *counter = 0;
  const float* parts = partials + (row * heads + head) * splits * (D + 2);
  __shared__ float splitTop[TOGETHER * MOST], splitWeight[TOGETHER * MOST];
  for (int at = threadIdx.x; at < TOGETHER * splits; at += 32 * WARPS) {
    splitTop[at] = __ldcg(parts + at * (D + 2) + D);
    splitWeight[at] = __ldcg(parts + at * (D + 2) + D + 1);
  }
  __syncthreads();
  for (int at = threadIdx.x; at < TOGETHER * D; at += 32 * WARPS) {
    const int h = at / D, i = at % D;
    float highest = NONE, total = 0.0f, weight = 0.0f;
    for (int s = 0; s < splits; s++) highest = fmaxf(highest, splitTop[h * splits + s]);
#pragma unroll 8
    for (int s = 0; s < splits; s++) {
      const float share = exp2f((splitTop[h * splits + s] - highest) * factor);
      total += __ldcg(parts + (h * splits + s) * (D + 2) + i) * share;
      weight += splitWeight[h * splits + s] * share;
    }
    out[(row * heads + head + h) * D + i] = fromFloat<T>(total / weight);
  }
}
`;
