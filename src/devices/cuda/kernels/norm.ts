// RMSNorm with the residual added on the way, and its backward. Sums over rows are parts of a fixed number, added in order.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

/** Widest row: 256 threads of eight numbers, four times. */
export const MAX_NORM_WIDTH = 8_192;

export const NORM: KernelSource = {
  name: "norm",
  code: `${COMMON}
/* x += residual (if given); y = x / rms(x) · w; 1/rms is kept. A block a row. */
template <typename A>
__device__ void rmsNorm(float* x, const A* residual, const float* w, A* y, float* rstd, int width, float eps) {
  const long long at = (long long)blockIdx.x * width;
  float sum = 0.0f;
  for (int i = threadIdx.x * 8; i < width; i += blockDim.x * 8) {
    float v[8];
    load8(x + at + i, v);
    if (residual) {
      float r[8];
      load8(residual + at + i, r);
#pragma unroll
      for (int j = 0; j < 8; j++) v[j] += r[j];
      store8(x + at + i, v);
    }
#pragma unroll
    for (int j = 0; j < 8; j++) sum += v[j] * v[j];
  }
  const float r = 1.0f / sqrtf(blockSum(sum) / width + eps);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  for (int i = threadIdx.x * 8; i < width; i += blockDim.x * 8) {
    float v[8], s[8];
    load8(x + at + i, v);
    load8(w + i, s);
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = v[j] * r * s[j];
    store8(y + at + i, v);
  }
}

/* dx += gradient through y = x · rstd · w; each block's part of dw = Σ dy · x · rstd goes to parts[block]. */
template <typename A>
__device__ void rmsNormBackward(
  const A* dy, const float* x, const float* w, const float* rstd, float* dx, float* parts, int rows, int width) {
  float dw[4][8];
#pragma unroll
  for (int c = 0; c < 4; c++)
#pragma unroll
    for (int j = 0; j < 8; j++) dw[c][j] = 0.0f;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const long long at = (long long)row * width;
    const float r = rstd[row];
    float dot = 0.0f;
#pragma unroll
    for (int c = 0; c < 4; c++) {
      const int i = (c * blockDim.x + threadIdx.x) * 8;
      if (i >= width) break;
      float g[8], v[8], s[8];
      load8(dy + at + i, g);
      load8(x + at + i, v);
      load8(w + i, s);
#pragma unroll
      for (int j = 0; j < 8; j++) {
        dot += g[j] * s[j] * v[j];
        dw[c][j] += g[j] * (v[j] * r);
      }
    }
    const float b = -blockSum(dot) * r * r * r / width;
#pragma unroll
    for (int c = 0; c < 4; c++) {
      const int i = (c * blockDim.x + threadIdx.x) * 8;
      if (i >= width) break;
      float g[8], v[8], s[8], d[8];
      load8(dy + at + i, g);
      load8(x + at + i, v);
      load8(w + i, s);
      load8(dx + at + i, d);
#pragma unroll
      for (int j = 0; j < 8; j++) d[j] += g[j] * s[j] * r + v[j] * b;
      store8(dx + at + i, d);
    }
  }
#pragma unroll
  for (int c = 0; c < 4; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * 8;
    if (i < width) store8(parts + (long long)blockIdx.x * width + i, dw[c]);
  }
}

extern "C" __global__ void rmsNorm_f32(float* x, const float* residual, const float* w, float* y, float* rstd, int width, float eps) {
  rmsNorm<float>(x, residual, w, y, rstd, width, eps);
}
extern "C" __global__ void rmsNorm_bf16(float* x, const bf16* residual, const float* w, bf16* y, float* rstd, int width, float eps) {
  rmsNorm<bf16>(x, residual, w, y, rstd, width, eps);
}
extern "C" __global__ void rmsNormBackward_f32(
  const float* dy, const float* x, const float* w, const float* rstd, float* dx, float* parts, int rows, int width) {
  rmsNormBackward<float>(dy, x, w, rstd, dx, parts, rows, width);
}
extern "C" __global__ void rmsNormBackward_bf16(
  const bf16* dy, const float* x, const float* w, const float* rstd, float* dx, float* parts, int rows, int width) {
  rmsNormBackward<bf16>(dy, x, w, rstd, dx, parts, rows, width);
}

/* out[j] += Σ over parts of parts[p][from + j]; blocks of 32 columns by 8 stretches of parts. */
extern "C" __global__ void addParts(const float* parts, float* out, int count, int stride, int from, int width) {
  __shared__ float sums[8][33];
  const int j = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  if (j < width)
    for (int p = threadIdx.y; p < count; p += 8) sum += parts[(long long)p * stride + from + j];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || j >= width) return;
  for (int i = 1; i < 8; i++) sum += sums[i][threadIdx.x];
  out[j] += sum;
}
`,
};
