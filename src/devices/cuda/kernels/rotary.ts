// q and k with their norms and rotary positions, k and v into the KV store; and the way back. A group of 16 or 32 threads has a
// head of a token; each thread has four dims of the first half and the four that turn with them.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

/** Threads a block. */
export const ROTARY_THREADS = 256;

/** Heads a group of threads takes on the way forward. */
export const ROTARY_ITEMS = 2;

export const ROTARY: KernelSource = {
  name: "rotary",
  code: `${COMMON}
#define ITEMS ${ROTARY_ITEMS}

__device__ __forceinline__ float groupSum(float x, int lanes) {
  for (int step = lanes >> 1; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

template <typename A>
__device__ void rotate(
  const A* qkv, A* q, A* store, const int* blocks, const int* caps, const int* indices, const int* positions,
  const float* cosSin, const float* qScale, const float* kScale, float* rstd, int rows, int heads, int kvHeads, int d, float eps, int lanes) {
  const int width = heads + 2 * kvHeads, half = d >> 1, items = rows * width;
  const int groups = gridDim.x * (blockDim.x / lanes), group = (blockIdx.x * blockDim.x + threadIdx.x) / lanes;
  const int lane = threadIdx.x % lanes, i = 4 * lane;
  /* All a thread reads is on its way before any of it is used. */
  float a[ITEMS][4], b[ITEMS][4], c[ITEMS][4], s[ITEMS][4];
  int token[ITEMS], head[ITEMS];
  bool isIn[ITEMS];
#pragma unroll
  for (int n = 0; n < ITEMS; n++) {
    const int item = group + n * groups;
    isIn[n] = item < items && i < half;
    token[n] = isIn[n] ? item / width : 0;
    head[n] = isIn[n] ? item - token[n] * width : 0;
#pragma unroll
    for (int j = 0; j < 4; j++) a[n][j] = b[n][j] = 0.0f;
    if (!isIn[n]) continue;
    load4(qkv + (long long)item * d + i, a[n]);
    load4(qkv + (long long)item * d + half + i, b[n]);
  }
#pragma unroll
  for (int n = 0; n < ITEMS; n++) {
    if (i >= half) break;
    const float* table = cosSin + (long long)positions[token[n]] * d;
    load4(table + i, c[n]);
    load4(table + half + i, s[n]);
  }
#pragma unroll
  for (int n = 0; n < ITEMS; n++) {
    const int t = token[n], h = head[n];
    const bool isKey = h >= heads, isValue = h >= heads + kvHeads;
    const float* scale = isKey ? kScale : qScale;
    float squares = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) squares += a[n][j] * a[n][j] + b[n][j] * b[n][j];
    squares = groupSum(squares, lanes);
    if (!isIn[n]) continue;
    if (!isValue) {
      float r = 1.0f;
      if (scale) {
        r = 1.0f / sqrtf(squares / d + eps);
        float sa[4], sb[4];
        load4(scale + i, sa);
        load4(scale + half + i, sb);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          a[n][j] *= r * sa[j];
          b[n][j] *= r * sb[j];
        }
      }
      if (lane == 0) rstd[t * (heads + kvHeads) + h] = r;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float turned = a[n][j] * c[n][j] - b[n][j] * s[n][j];
        b[n][j] = b[n][j] * c[n][j] + a[n][j] * s[n][j];
        a[n][j] = turned;
      }
    }
    A* out;
    if (!isKey) {
      out = q + ((long long)t * heads + h) * d;
    } else {
      const long long cap = caps[t];
      const int kv = isValue ? h - heads - kvHeads : h - heads;
      out = store + blocks[t] + (2 * kv + (isValue ? 1 : 0)) * cap * d + (long long)indices[t] * d;
    }
    store4(out + i, a[n]);
    store4(out + half + i, b[n]);
  }
}

/* In place: gradients of turned q and k to those of the rows of qkv; each block's part of the scales' gradients, [q | k], to parts. */
template <typename A>
__device__ void rotateBackward(
  A* dqkv, const A* qkv, const float* rstd, const int* positions, const float* cosSin, const float* qScale, const float* kScale,
  float* parts, int rows, int heads, int kvHeads, int d, int lanes) {
  extern __shared__ float sums[]; /* [groups][2][d] */
  const int turned = heads + kvHeads, width = heads + 2 * kvHeads, half = d >> 1;
  const int groups = blockDim.x / lanes, group = threadIdx.x / lanes, lane = threadIdx.x % lanes, i = 4 * lane;
  const bool hasDims = i < half;
  float dw[2][8];
#pragma unroll
  for (int k = 0; k < 2; k++)
#pragma unroll
    for (int j = 0; j < 8; j++) dw[k][j] = 0.0f;
  /* Every group of a warp goes round as often, since sums are over whole warps. */
  const int items = rows * turned, step = gridDim.x * groups;
  for (int first = blockIdx.x * groups; first < items; first += step) {
    const int item = first + group;
    const bool isIn = item < items && hasDims;
    const int t = isIn ? item / turned : 0, h = isIn ? item - t * turned : 0;
    const long long at = ((long long)t * width + h) * d + i;
    float a[4], b[4], xa[4], xb[4], c[4], s[4], r = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) a[j] = b[j] = xa[j] = xb[j] = c[j] = s[j] = 0.0f;
    if (isIn) {
      load4(dqkv + at, a);
      load4(dqkv + at + half, b);
      if (qScale) {
        r = rstd[t * turned + h];
        load4(qkv + at, xa);
        load4(qkv + at + half, xb);
      }
      const float* table = cosSin + (long long)positions[t] * d;
      load4(table + i, c);
      load4(table + half + i, s);
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float back = a[j] * c[j] + b[j] * s[j];
      b[j] = b[j] * c[j] - a[j] * s[j];
      a[j] = back;
    }
    if (qScale) {
      const float* scale = h < heads ? qScale : kScale;
      float sa[4] = {0, 0, 0, 0}, sb[4] = {0, 0, 0, 0};
      if (hasDims) {
        load4(scale + i, sa);
        load4(scale + half + i, sb);
      }
      float dot = 0.0f;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float ga = a[j] * xa[j] * r, gb = b[j] * xb[j] * r;
        dw[0][j] += h < heads ? ga : 0.0f;
        dw[0][4 + j] += h < heads ? gb : 0.0f;
        dw[1][j] += h < heads ? 0.0f : ga;
        dw[1][4 + j] += h < heads ? 0.0f : gb;
        a[j] *= sa[j];
        b[j] *= sb[j];
        dot += a[j] * xa[j] + b[j] * xb[j];
      }
      const float k = -groupSum(dot, lanes) * r * r * r / d;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        a[j] = a[j] * r + xa[j] * k;
        b[j] = b[j] * r + xb[j] * k;
      }
    }
    if (isIn) {
      store4(dqkv + at, a);
      store4(dqkv + at + half, b);
    }
  }
  if (!qScale) return;
  if (hasDims) {
#pragma unroll
    for (int k = 0; k < 2; k++) {
      store4(sums + (group * 2 + k) * d + i, dw[k]);
      store4(sums + (group * 2 + k) * d + half + i, dw[k] + 4);
    }
  }
  __syncthreads();
  for (int j = threadIdx.x; j < 2 * d; j += blockDim.x) {
    float sum = 0.0f;
    for (int g = 0; g < groups; g++) sum += sums[g * 2 * d + j];
    parts[(long long)blockIdx.x * 2 * d + j] = sum;
  }
}

extern "C" __global__ void rotate_f32(
  const float* qkv, float* q, float* store, const int* blocks, const int* caps, const int* indices, const int* positions,
  const float* cosSin, const float* qScale, const float* kScale, float* rstd, int rows, int heads, int kvHeads, int d, float eps, int lanes) {
  CHAINED();
  rotate<float>(qkv, q, store, blocks, caps, indices, positions, cosSin, qScale, kScale, rstd, rows, heads, kvHeads, d, eps, lanes);
}
extern "C" __global__ void rotate_bf16(
  const bf16* qkv, bf16* q, bf16* store, const int* blocks, const int* caps, const int* indices, const int* positions,
  const float* cosSin, const float* qScale, const float* kScale, float* rstd, int rows, int heads, int kvHeads, int d, float eps, int lanes) {
  CHAINED();
  rotate<bf16>(qkv, q, store, blocks, caps, indices, positions, cosSin, qScale, kScale, rstd, rows, heads, kvHeads, d, eps, lanes);
}
extern "C" __global__ void rotateBackward_f32(
  float* dqkv, const float* qkv, const float* rstd, const int* positions, const float* cosSin, const float* qScale, const float* kScale,
  float* parts, int rows, int heads, int kvHeads, int d, int lanes) {
  rotateBackward<float>(dqkv, qkv, rstd, positions, cosSin, qScale, kScale, parts, rows, heads, kvHeads, d, lanes);
}
extern "C" __global__ void rotateBackward_bf16(
  bf16* dqkv, const bf16* qkv, const float* rstd, const int* positions, const float* cosSin, const float* qScale, const float* kScale,
  float* parts, int rows, int heads, int kvHeads, int d, int lanes) {
  rotateBackward<bf16>(dqkv, qkv, rstd, positions, cosSin, qScale, kScale, parts, rows, heads, kvHeads, d, lanes);
}
`,
};
