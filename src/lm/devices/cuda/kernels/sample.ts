// Samples a token from each row of logits, in two launches: the first sums parts of the vocabulary in parallel; the
// second picks a part and scans it, with one block per row. Sums have a fixed order.
//
// logits T [rows, stride]; temperatures, uniforms float [rows]; tokens i32 and logp float [rows]. The token is the
// first whose running sum of exp((x − highest) / temperature) exceeds uniform · total; at temperature 0, the first of
// the highest. logp is its log-prob under the whole distribution at that temperature (at 0: at temperature 1). Scratch:
// float [3, rows, parts] (the third holds the index of each part's highest logit, as i32), with parts = ⌈vocabulary /
// SAMPLE_PART⌉.

/** Logits per block. */
export const SAMPLE_PART = 4096;

export const SAMPLE = `
#define PART ${SAMPLE_PART}
#define THREADS 256
#define EACH (PART / THREADS)
#define LOG2E 1.4426950408889634f
#define LOWEST (-__uint_as_float(0x7f800000u)) /* −∞, without a header */
#define NOWHERE 0x7fffffff

__device__ __forceinline__ float inverseOf(float temperature) { return temperature == 0.0f ? 1.0f : 1.0f / temperature; }

template <typename T> __device__ __forceinline__ void sampleParts(const T* logits, long long stride, int vocabulary, const float* temperatures, float* scratch) {
  __shared__ float warpTop[8];
  __shared__ int warpAt[8];
  const int part = blockIdx.x, row = blockIdx.y;
  const T* x = logits + row * stride;
  const float factor = inverseOf(temperatures[row]) * LOG2E;
  float values[EACH], top = LOWEST;
  int at = NOWHERE;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int j = part * PART + i * THREADS + threadIdx.x;
    values[i] = j < vocabulary ? toFloat(x[j]) : LOWEST;
    if (values[i] > top) {
      top = values[i];
      at = j;
    }
  }
  for (int step = 16; step > 0; step >>= 1) {
    const float other = __shfl_xor_sync(0xffffffffu, top, step);
    const int where = __shfl_xor_sync(0xffffffffu, at, step);
    if (other > top || (other == top && where < at)) {
      top = other;
      at = where;
    }
  }
  if (threadIdx.x % 32 == 0) {
    warpTop[threadIdx.x / 32] = top;
    warpAt[threadIdx.x / 32] = at;
  }
  __syncthreads();
  top = warpTop[0];
  at = warpAt[0];
  for (int w = 1; w < THREADS / 32; w++) {
    if (warpTop[w] > top || (warpTop[w] == top && warpAt[w] < at)) {
      top = warpTop[w];
      at = warpAt[w];
    }
  }
  float sum = 0.0f;
  if (top > LOWEST) {
#pragma unroll
    for (int i = 0; i < EACH; i++) sum += exp2f((values[i] - top) * factor);
  }
  sum = blockSum(sum);
  if (threadIdx.x == 0) {
    const int parts = gridDim.x, rows = gridDim.y;
    scratch[row * parts + part] = top;
    scratch[(rows + row) * parts + part] = sum;
    ((int*)scratch)[(2 * rows + row) * parts + part] = at;
  }
}

template <typename T> __device__ __forceinline__ void samplePick(const T* logits, long long stride, int vocabulary, const float* temperatures,
    const float* uniforms, const float* scratch, int parts, int* tokens, float* logp) {
  __shared__ float before, wanted, total, top;
  __shared__ int chosen, found, lastSeen, highestAt;
  __shared__ float warpSums[8];
  const int row = blockIdx.x, rows = gridDim.x;
  const T* x = logits + row * stride;
  const float temperature = temperatures[row], factor = inverseOf(temperature) * LOG2E;
  const float *tops = scratch + row * parts, *sums = scratch + (rows + row) * parts;
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x;
    float highest = LOWEST;
    for (int p = lane; p < parts; p += 32) highest = fmaxf(highest, tops[p]);
    highest = warpMax(highest);
    float sum = 0.0f, goal = 0.0f, start = 0.0f;
    int pick = -1, some = 0;
    for (int round = 0; round < 2; round++) { /* the sum of all parts, then the part that passes the target */
      sum = 0.0f;
      for (int first = 0; first < parts && pick < 0; first += 32) {
        const int p = first + lane;
        const float share = p < parts && tops[p] > LOWEST ? sums[p] * exp2f((tops[p] - highest) * factor) : 0.0f;
        float running = share; /* inclusive prefix sum over lanes */
        for (int step = 1; step < 32; step <<= 1) {
          const float below = __shfl_up_sync(0xffffffffu, running, step);
          if (lane >= step) running += below;
        }
        const unsigned any = __ballot_sync(0xffffffffu, share > 0.0f);
        const unsigned passed = __ballot_sync(0xffffffffu, share > 0.0f && sum + running > goal);
        if (round == 1 && any != 0) {
          /* The first to pass; else the last with any probability, in case rounding passes the end. */
          const int at = passed != 0 ? __ffs(passed) - 1 : 31 - __clz(any);
          const float below = __shfl_sync(0xffffffffu, running, at > 0 ? at - 1 : 0);
          start = sum + (at > 0 ? below : 0.0f);
          some = first + at;
          if (passed != 0) pick = some;
        }
        sum += __shfl_sync(0xffffffffu, running, 31);
      }
      if (round == 0) {
        goal = uniforms[row] * sum;
        if (lane == 0) total = sum;
      }
    }
    if (lane == 0) {
      wanted = goal;
      chosen = some;
      before = start;
      top = highest;
    }
    if (threadIdx.x == 0) {
      found = NOWHERE;
      lastSeen = -1;
      highestAt = 0;
      for (int p = parts - 1; p >= 0; p--) if (tops[p] == highest) highestAt = ((const int*)scratch)[(2 * rows + row) * parts + p];
      if (highestAt >= vocabulary) highestAt = 0; /* all NaN */
    }
  }
  __syncthreads();
  int token = highestAt;
  if (temperature != 0.0f) {
    float weights[EACH], sum = 0.0f;
    const int first = chosen * PART + threadIdx.x * EACH;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      weights[i] = first + i < vocabulary ? exp2f((toFloat(x[first + i]) - top) * factor) : 0.0f;
      sum += weights[i];
    }
    float running = sum; /* inclusive prefix sum within the warp */
    for (int step = 1; step < 32; step <<= 1) {
      const float below = __shfl_up_sync(0xffffffffu, running, step);
      if ((int)(threadIdx.x % 32) >= step) running += below;
    }
    if (threadIdx.x % 32 == 31) warpSums[threadIdx.x / 32] = running;
    __syncthreads();
    float at = before;
    for (int w = 0; w < (int)threadIdx.x / 32; w++) at += warpSums[w];
    const float left = __shfl_up_sync(0xffffffffu, running, 1);
    if (threadIdx.x % 32 != 0) at += left;
    int here = NOWHERE, seen = -1;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      at += weights[i];
      if (weights[i] > 0.0f) {
        seen = first + i;
        if (here == NOWHERE && at > wanted) here = first + i;
      }
    }
    if (here != NOWHERE) atomicMin(&found, here);
    if (seen >= 0) atomicMax(&lastSeen, seen);
    __syncthreads();
    token = found != NOWHERE ? found : lastSeen >= 0 ? lastSeen : highestAt;
  }
  if (threadIdx.x == 0) {
    tokens[row] = token;
    logp[row] = (toFloat(x[token]) - top) * inverseOf(temperature) - logf(total);
  }
}

#define KERNELS(T) \\
  extern "C" __global__ void __launch_bounds__(THREADS) sample_parts_##T(const T* logits, long long stride, int vocabulary, const float* temperatures, float* scratch) { \\
    CHAINED(); sampleParts<T>(logits, stride, vocabulary, temperatures, scratch); \\
  } \\
  extern "C" __global__ void __launch_bounds__(THREADS) sample_pick_##T(const T* logits, long long stride, int vocabulary, const float* temperatures, \\
      const float* uniforms, const float* scratch, int parts, int* tokens, float* logp) { \\
    CHAINED(); samplePick<T>(logits, stride, vocabulary, temperatures, uniforms, scratch, parts, tokens, logp); \\
  }
typedef float f32;
KERNELS(f32)
KERNELS(bf16)
`;
