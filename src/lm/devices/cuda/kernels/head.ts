// Computes the target's log-prob, entropy and log-sum-exp of rows of logits, and the gradient of the logits.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

/** Threads per row. */
export const HEAD_THREADS = 512;

export const HEAD: KernelSource = {
  name: "head",
  code: `${COMMON}
/* Of some logits z/temperature: the highest, Σ e^(z − highest) and Σ (z − highest)·e^(z − highest). */
struct Sums { float top, sum, weighted; };

__device__ __forceinline__ Sums both(Sums a, Sums b) {
  if (b.top > a.top || a.top != a.top) { const Sums c = a; a = b; b = c; } /* a NaN propagates */
  const float gap = b.top - a.top;
  const float f = b.sum == 0.0f ? 0.0f : expf(gap);
  if (b.sum != 0.0f) {
    a.weighted += f * (b.weighted + gap * b.sum);
    a.sum += f * b.sum;
  }
  return a;
}

__device__ Sums summarize(const float* row, int vocabulary, float inverse) {
  __shared__ Sums parts[32];
  Sums s = {-3.0e38f, 0.0f, 0.0f};
  const int whole = vocabulary & ~3;
  for (int i = threadIdx.x * 4; i < vocabulary; i += blockDim.x * 4) {
    float v[4];
    if (i < whole) load4(row + i, v);
    else for (int j = 0; j < 4; j++) v[j] = i + j < vocabulary ? row[i + j] : -INF;
    float top = -INF;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      v[j] *= inverse;
      top = fmaxf(top, v[j]);
    }
    if (top > s.top) {
      const float gap = s.top - top, f = expf(gap);
      s.weighted = s.sum == 0.0f ? 0.0f : f * (s.weighted + gap * s.sum);
      s.sum *= f;
      s.top = top;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (v[j] == -INF) continue;
      const float z = v[j] - s.top, e = expf(z);
      s.sum += e;
      s.weighted += z * e;
    }
  }
  for (int step = 16; step > 0; step >>= 1) {
    const Sums other = {__shfl_xor_sync(0xffffffffu, s.top, step), __shfl_xor_sync(0xffffffffu, s.sum, step),
      __shfl_xor_sync(0xffffffffu, s.weighted, step)};
    s = both(s, other);
  }
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = s;
  __syncthreads();
  Sums all = parts[0];
  for (int w = 1; w < blockDim.x / 32; w++) all = both(all, parts[w]);
  return all;
}

extern "C" __global__ void logProb(
  const float* logits, const int* targets, float* logp, float* entropy, float* lse, int vocabulary, int stride, float inverse) {
  const float* row = logits + (long long)blockIdx.x * stride;
  const Sums s = summarize(row, vocabulary, inverse);
  if (threadIdx.x != 0) return;
  const float logSum = logf(s.sum);
  lse[blockIdx.x] = s.top + logSum;
  entropy[blockIdx.x] = logSum - s.weighted / s.sum;
  logp[blockIdx.x] = row[targets[blockIdx.x]] * inverse - s.top - logSum;
}

/* dz = (dlogp (δ − p) − dH p (log p + H)) / temperature; may overwrite the logits. Padding becomes 0. */
template <typename A>
__device__ void logProbBackward(
  const float* logits, A* out, const int* targets, const float* entropy, const float* lse, const float* dLogp, const float* dEntropy,
  int vocabulary, int stride, float inverse) {
  const int t = blockIdx.x, target = targets[t];
  const long long at = (long long)t * stride;
  const float l = lse[t], h = entropy[t], dl = dLogp[t], dh = dEntropy[t];
  for (int i = threadIdx.x * 8; i < stride; i += blockDim.x * 8) {
    float v[8];
    load8(logits + at + i, v);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const float logP = v[j] * inverse - l;
      const float p = expf(logP);
      float g = -p * (dl + dh * (logP + h));
      if (i + j == target) g += dl;
      v[j] = i + j < vocabulary ? g * inverse : 0.0f;
    }
    store8(out + at + i, v);
  }
}

extern "C" __global__ void logProbBackward_f32(
  const float* logits, float* out, const int* targets, const float* entropy, const float* lse, const float* dLogp, const float* dEntropy,
  int vocabulary, int stride, float inverse) {
  logProbBackward<float>(logits, out, targets, entropy, lse, dLogp, dEntropy, vocabulary, stride, inverse);
}
extern "C" __global__ void logProbBackward_bf16(
  const float* logits, bf16* out, const int* targets, const float* entropy, const float* lse, const float* dLogp, const float* dEntropy,
  int vocabulary, int stride, float inverse) {
  logProbBackward<bf16>(logits, out, targets, entropy, lse, dLogp, dEntropy, vocabulary, stride, inverse);
}
`,
};
