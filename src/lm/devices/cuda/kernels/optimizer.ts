// AdamW over a whole model in one launch, and sums of squares for the gradient norm.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

/** Number of blocks, whose sums the host adds up. */
export const SQUARE_BLOCKS = 512;

export const OPTIMIZER: KernelSource = {
  name: "optimizer",
  code: `${COMMON}
__device__ __forceinline__ void adam(
  float& p, float g, float& m, float& v, float b1, float c1, float b2, float c2, float decay, float step, float root, float eps) {
  m = b1 * m + c1 * g;
  v = b2 * v + c2 * (g * g);
  p = p * decay - step * (m / (sqrtf(v) * root + eps));
}

extern "C" __global__ void adamW(
  float* p, const float* g, float* m, float* v, long long n, float b1, float c1, float b2, float c2, float decay, float step,
  float root, float eps, float scale) {
  const long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  for (long long i = first; i < n; i += (long long)gridDim.x * blockDim.x * 4) {
    if (i + 4 <= n) {
      float a[4], b[4], c[4], d[4];
      load4(p + i, a);
      load4(g + i, b);
      load4(m + i, c);
      load4(v + i, d);
#pragma unroll
      for (int j = 0; j < 4; j++) adam(a[j], b[j] * scale, c[j], d[j], b1, c1, b2, c2, decay, step, root, eps);
      store4(p + i, a);
      store4(m + i, c);
      store4(v + i, d);
    } else {
      for (long long j = i; j < n; j++) adam(p[j], g[j] * scale, m[j], v[j], b1, c1, b2, c2, decay, step, root, eps);
    }
  }
}

extern "C" __global__ void sumSquares(const float* x, double* out, long long n) {
  __shared__ double parts[8];
  double total = 0.0;
  const long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  for (long long i = first; i < n; i += (long long)gridDim.x * blockDim.x * 4) {
    float sum = 0.0f;
    if (i + 4 <= n) {
      float v[4];
      load4(x + i, v);
      sum = v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3];
    } else {
      for (long long j = i; j < n; j++) sum += x[j] * x[j];
    }
    total += sum;
  }
  for (int step = 16; step > 0; step >>= 1) total += __shfl_xor_sync(0xffffffffu, total, step);
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < blockDim.x / 32; w++) total += parts[w];
  out[blockIdx.x] = total;
}
`,
};
