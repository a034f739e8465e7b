// RMSNorm with a fused residual add, and its backward. Sums over rows are split into a fixed number of parts that are
// added in order.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

/** Maximum width of a row: 256 threads with 4 × 8 numbers each. */
export const MAX_NORM_WIDTH = 8_192;

export const NORM: KernelSource = {
  name: "norm",
  code: `${COMMON}
/* into = x + residual (if given); y = into / rms(into) · w; 1/rms is saved. One block per row. */
template <typename A>
__device__ void rmsNorm(const float* x, const A* residual, float* into, const float* w, A* y, float* rstd, int width, float eps) {
  const long long at = (long long)blockIdx.x * width;
  float sum = 0.0f;
  float first[8]; /* rows are rarely longer, so they need not be read again */
  for (int i = threadIdx.x * 8; i < width; i += blockDim.x * 8) {
    float v[8];
    load8(x + at + i, v);
    if (residual) {
      float r[8];
      load8(residual + at + i, r);
#pragma unroll
      for (int j = 0; j < 8; j++) v[j] += r[j];
    }
    if (residual || into != x) store8(into + at + i, v);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      sum += v[j] * v[j];
      if (i == threadIdx.x * 8) first[j] = v[j];
    }
  }
  const float r = 1.0f / sqrtf(blockSum(sum) / width + eps);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  for (int i = threadIdx.x * 8; i < width; i += blockDim.x * 8) {
    float v[8], s[8];
    if (i == threadIdx.x * 8) {
#pragma unroll
      for (int j = 0; j < 8; j++) v[j] = first[j];
    } else {
      load8(into + at + i, v);
    }
    load8(w + i, s);
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = v[j] * r * s[j];
    store8(y + at + i, v);
  }
}

/* dx += gradient through y = x · rstd · w; each block's part of dw = Σ dy · x · rstd goes to parts[block]. CHUNKS of eight numbers
   a thread cover a row. */
template <typename A, int CHUNKS>
__device__ void rmsNormBackward(
  const A* dy, const float* x, const float* w, const float* rstd, float* dx, float* parts, int rows, int width) {
  float dw[CHUNKS][8];
#pragma unroll
  for (int c = 0; c < CHUNKS; c++)
#pragma unroll
    for (int j = 0; j < 8; j++) dw[c][j] = 0.0f;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const long long at = (long long)row * width;
    const float r = rstd[row];
    float g[CHUNKS][8], v[CHUNKS][8], d[CHUNKS][8], dot = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const int i = (c * blockDim.x + threadIdx.x) * 8;
      if (i >= width) break;
      load8(dy + at + i, g[c]);
      load8(x + at + i, v[c]);
      load8(dx + at + i, d[c]);
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const int i = (c * blockDim.x + threadIdx.x) * 8;
      if (i >= width) break;
      float s[8];
      load8(w + i, s);
#pragma unroll
      for (int j = 0; j < 8; j++) {
        dw[c][j] += g[c][j] * (v[c][j] * r);
        g[c][j] *= s[j];
        dot += g[c][j] * v[c][j];
      }
    }
    const float b = -blockSum(dot) * r * r * r / width;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      const int i = (c * blockDim.x + threadIdx.x) * 8;
      if (i >= width) break;
#pragma unroll
      for (int j = 0; j < 8; j++) d[c][j] += g[c][j] * r + v[c][j] * b;
      store8(dx + at + i, d[c]);
    }
  }
#pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * 8;
    if (i < width) store8(parts + (long long)blockIdx.x * width + i, dw[c]);
  }
}

extern "C" __global__ void rmsNorm_f32(
  const float* x, const float* residual, float* into, const float* w, float* y, float* rstd, int width, float eps) {
  CHAINED();
  rmsNorm<float>(x, residual, into, w, y, rstd, width, eps);
}
extern "C" __global__ void rmsNorm_bf16(
  const float* x, const bf16* residual, float* into, const float* w, bf16* y, float* rstd, int width, float eps) {
  CHAINED();
  rmsNorm<bf16>(x, residual, into, w, y, rstd, width, eps);
}
#define BACKWARD(name, A, chunks) \\
  extern "C" __global__ void name( \\
    const A* dy, const float* x, const float* w, const float* rstd, float* dx, float* parts, int rows, int width) { \\
    rmsNormBackward<A, chunks>(dy, x, w, rstd, dx, parts, rows, width); \\
  }
BACKWARD(rmsNormBackward_f32_1, float, 1)
BACKWARD(rmsNormBackward_f32_4, float, 4)
BACKWARD(rmsNormBackward_bf16_1, bf16, 1)
BACKWARD(rmsNormBackward_bf16_4, bf16, 4)

/* out[j] += Σ over parts of parts[p][from + j]; blocks of 32 columns by 32 groups of parts. */
extern "C" __global__ void addParts(const float* parts, float* out, int count, int stride, int from, int width) {
  __shared__ float sums[32][33];
  const int j = blockIdx.x * 32 + threadIdx.x;
  float sum[4] = {0, 0, 0, 0};
  if (j < width) {
    for (int p = threadIdx.y; p < count; p += 128) {
#pragma unroll
      for (int k = 0; k < 4; k++) if (p + 32 * k < count) sum[k] += parts[(long long)(p + 32 * k) * stride + from + j];
    }
  }
  sums[threadIdx.y][threadIdx.x] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  __syncthreads();
  /* One warp per column. */
  const float total = warpSum(sums[threadIdx.x][threadIdx.y]);
  const int column = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && column < width) out[column] += total;
}
`,
};
