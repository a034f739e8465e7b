// Bias, norms and rotary embedding of heads, writing k and v to the KV cache, and the backward of all this. A group of
// threads handles one head of a token; each thread has eight dims of the first half (four if eight does not divide
// evenly) and their partners in the second.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

/** Threads per block. */
export const ROTARY_THREADS = 256;

export const ROTARY: KernelSource = {
  name: "rotary",
  code: `${COMMON}
__device__ __forceinline__ float groupSum(float x, int lanes) {
  for (int step = lanes >> 1; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
template <int V, typename A> __device__ __forceinline__ void loadV(const A* p, float* v) {
  if (V == 8) load8(p, v); else load4(p, v);
}
template <int V, typename A> __device__ __forceinline__ void storeV(A* p, const float* v) {
  if (V == 8) store8(p, v); else store4(p, v);
}

template <typename A, int V>
__device__ void rotate(
  const A* qkv, A* q, A* kvCache, const int* blocks, const int* caps, const int* indices, const int* positions,
  const float* cosSin, const float* qScale, const float* kScale, const float* bias, float* rstd, int rows, int heads, int kvHeads, int d,
  float eps, int lanes) {
  const int width = heads + 2 * kvHeads, half = d >> 1, items = rows * width;
  const int item = (blockIdx.x * blockDim.x + threadIdx.x) / lanes, lane = threadIdx.x % lanes, i = V * lane;
  const bool isIn = item < items && i < half;
  const int t = isIn ? item / width : 0, h = isIn ? item - t * width : 0;
  const bool isKey = h >= heads, isValue = h >= heads + kvHeads;
  float a[V], b[V], c[V], s[V];
#pragma unroll
  for (int j = 0; j < V; j++) a[j] = b[j] = 0.0f;
  if (isIn) {
    loadV<V>(qkv + (long long)item * d + i, a);
    loadV<V>(qkv + (long long)item * d + half + i, b);
    if (bias) {
      float ba[V], bb[V];
      loadV<V>(bias + h * d + i, ba);
      loadV<V>(bias + h * d + half + i, bb);
#pragma unroll
      for (int j = 0; j < V; j++) {
        a[j] += ba[j];
        b[j] += bb[j];
      }
    }
    if (!isValue) {
      const float* table = cosSin + (long long)positions[t] * d;
      loadV<V>(table + i, c);
      loadV<V>(table + half + i, s);
    }
  }
  float squares = 0.0f;
#pragma unroll
  for (int j = 0; j < V; j++) squares += a[j] * a[j] + b[j] * b[j];
  squares = groupSum(squares, lanes);
  if (!isIn) return;
  if (!isValue) {
    const float* scale = isKey ? kScale : qScale;
    float r = 1.0f;
    if (scale) {
      r = 1.0f / sqrtf(squares / d + eps);
      float sa[V], sb[V];
      loadV<V>(scale + i, sa);
      loadV<V>(scale + half + i, sb);
#pragma unroll
      for (int j = 0; j < V; j++) {
        a[j] *= r * sa[j];
        b[j] *= r * sb[j];
      }
    }
    if (lane == 0) rstd[t * (heads + kvHeads) + h] = r;
#pragma unroll
    for (int j = 0; j < V; j++) {
      const float rotated = a[j] * c[j] - b[j] * s[j];
      b[j] = b[j] * c[j] + a[j] * s[j];
      a[j] = rotated;
    }
  }
  A* out;
  if (!isKey) {
    out = q + ((long long)t * heads + h) * d;
  } else {
    const long long cap = caps[t];
    const int kv = isValue ? h - heads - kvHeads : h - heads;
    out = kvCache + blocks[t] + (2 * kv + (isValue ? 1 : 0)) * cap * d + (long long)indices[t] * d;
  }
  storeV<V>(out + i, a);
  storeV<V>(out + half + i, b);
}

/* In place: gradients of rotated q and k to those of the rows of qkv; each block's part of the scales' gradients, [q | k], to parts. */
template <typename A, int V>
__device__ void rotateBackward(
  A* dqkv, const A* qkv, const float* rstd, const int* positions, const float* cosSin, const float* qScale, const float* kScale,
  float* parts, int rows, int heads, int kvHeads, int d, int lanes) {
  extern __shared__ float sums[]; /* [groups][2][d] */
  const int rotated = heads + kvHeads, width = heads + 2 * kvHeads, half = d >> 1;
  const int groups = blockDim.x / lanes, group = threadIdx.x / lanes, lane = threadIdx.x % lanes, i = V * lane;
  const bool hasDims = i < half;
  float dw[2][2 * V];
#pragma unroll
  for (int k = 0; k < 2; k++)
#pragma unroll
    for (int j = 0; j < 2 * V; j++) dw[k][j] = 0.0f;
  /* Every group of a warp loops equally often, since shuffles involve whole warps. */
  const int items = rows * rotated, step = gridDim.x * groups;
  for (int first = blockIdx.x * groups; first < items; first += step) {
    const int item = first + group;
    const bool isIn = item < items && hasDims;
    const int t = isIn ? item / rotated : 0, h = isIn ? item - t * rotated : 0;
    const long long at = ((long long)t * width + h) * d + i;
    float a[V], b[V], xa[V], xb[V], c[V], s[V], r = 0.0f;
#pragma unroll
    for (int j = 0; j < V; j++) a[j] = b[j] = xa[j] = xb[j] = c[j] = s[j] = 0.0f;
    if (isIn) {
      loadV<V>(dqkv + at, a);
      loadV<V>(dqkv + at + half, b);
      if (qScale) {
        r = rstd[t * rotated + h];
        loadV<V>(qkv + at, xa);
        loadV<V>(qkv + at + half, xb);
      }
      const float* table = cosSin + (long long)positions[t] * d;
      loadV<V>(table + i, c);
      loadV<V>(table + half + i, s);
    }
#pragma unroll
    for (int j = 0; j < V; j++) {
      const float back = a[j] * c[j] + b[j] * s[j];
      b[j] = b[j] * c[j] - a[j] * s[j];
      a[j] = back;
    }
    if (qScale) {
      const float* scale = h < heads ? qScale : kScale;
      const float isQuery = h < heads ? 1.0f : 0.0f;
      float dot = 0.0f;
#pragma unroll
      for (int j = 0; j < V; j++) {
        const float ga = a[j] * xa[j] * r, gb = b[j] * xb[j] * r;
        dw[0][j] += ga * isQuery;
        dw[0][V + j] += gb * isQuery;
        dw[1][j] += ga * (1.0f - isQuery);
        dw[1][V + j] += gb * (1.0f - isQuery);
      }
      if (hasDims) {
        loadV<V>(scale + i, c);
        loadV<V>(scale + half + i, s);
      }
#pragma unroll
      for (int j = 0; j < V; j++) {
        a[j] *= c[j];
        b[j] *= s[j];
        dot += a[j] * xa[j] + b[j] * xb[j];
      }
      const float k = -groupSum(dot, lanes) * r * r * r / d;
#pragma unroll
      for (int j = 0; j < V; j++) {
        a[j] = a[j] * r + xa[j] * k;
        b[j] = b[j] * r + xb[j] * k;
      }
    }
    if (isIn) {
      storeV<V>(dqkv + at, a);
      storeV<V>(dqkv + at + half, b);
    }
  }
  if (!qScale) return;
  if (hasDims) {
#pragma unroll
    for (int k = 0; k < 2; k++) {
      storeV<V>(sums + (group * 2 + k) * d + i, dw[k]);
      storeV<V>(sums + (group * 2 + k) * d + half + i, dw[k] + V);
    }
  }
  __syncthreads();
  for (int j = threadIdx.x; j < 2 * d; j += blockDim.x) {
    float sum = 0.0f;
    for (int g = 0; g < groups; g++) sum += sums[g * 2 * d + j];
    parts[(long long)blockIdx.x * 2 * d + j] = sum;
  }
}

#define KERNELS(T, A, V) \\
  extern "C" __global__ void rotate_##T##_##V( \\
    const A* qkv, A* q, A* kvCache, const int* blocks, const int* caps, const int* indices, const int* positions, const float* cosSin, \\
    const float* qScale, const float* kScale, const float* bias, float* rstd, int rows, int heads, int kvHeads, int d, float eps, int lanes) { \\
    CHAINED(); \\
    rotate<A, V>(qkv, q, kvCache, blocks, caps, indices, positions, cosSin, qScale, kScale, bias, rstd, rows, heads, kvHeads, d, eps, lanes); \\
  } \\
  extern "C" __global__ void rotateBackward_##T##_##V( \\
    A* dqkv, const A* qkv, const float* rstd, const int* positions, const float* cosSin, const float* qScale, const float* kScale, \\
    float* parts, int rows, int heads, int kvHeads, int d, int lanes) { \\
    rotateBackward<A, V>(dqkv, qkv, rstd, positions, cosSin, qScale, kScale, parts, rows, heads, kvHeads, d, lanes); \\
  }
KERNELS(f32, float, 4)
KERNELS(f32, float, 8)
KERNELS(bf16, bf16, 4)
KERNELS(bf16, bf16, 8)
`,
};
