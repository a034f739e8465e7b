// Gather and scatter-add of rows, column sums, and elementwise add and type conversion.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

/** Threads per block; each handles four columns. */
export const ROW_THREADS = 256;

export const ROWS: KernelSource = {
  name: "rows",
  code: `${COMMON}
/* out[t] = x[ids[t]]: one block per row. */
template <typename A> __device__ void gather(const A* x, const int* ids, A* out, int width) {
  const A* from = x + (long long)ids[blockIdx.x] * width;
  A* to = out + (long long)blockIdx.x * width;
  for (int i = threadIdx.x * 8; i < width; i += blockDim.x * 8) {
    float v[8];
    load8(from + i, v);
    store8(to + i, v);
  }
}

/* x[ids[t]] += y[t]. The block of an id's first row adds up all its rows, in order; the others exit. */
template <typename A> __device__ void scatterAdd(const A* y, const int* ids, A* x, int rows, int width) {
  __shared__ int same[${ROW_THREADS}];
  __shared__ int counts[${ROW_THREADS} / 32];
  const int t = blockIdx.x, id = ids[t];
  int isLater = 0;
  for (int j = threadIdx.x; j < t; j += blockDim.x) isLater |= ids[j] == id;
  if (__syncthreads_or(isLater)) return;
  const int column = (blockIdx.y * blockDim.x + threadIdx.x) * 4;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  float sum[4] = {0, 0, 0, 0};
  for (int base = t; base < rows; base += blockDim.x) {
    const int j = base + threadIdx.x;
    const bool isSame = j < rows && ids[j] == id;
    const unsigned votes = __ballot_sync(0xffffffffu, isSame);
    if (lane == 0) counts[warp] = __popc(votes);
    __syncthreads();
    int before = 0, count = 0;
    for (int w = 0; w < blockDim.x / 32; w++) {
      if (w < warp) before += counts[w];
      count += counts[w];
    }
    if (isSame) same[before + __popc(votes & ((1u << lane) - 1u))] = j;
    __syncthreads();
    if (column < width) {
      for (int k = 0; k < count; k++) {
        float v[4];
        load4(y + (long long)same[k] * width + column, v);
#pragma unroll
        for (int c = 0; c < 4; c++) sum[c] += v[c];
      }
    }
    __syncthreads();
  }
  if (column >= width) return;
  float v[4];
  A* to = x + (long long)id * width + column;
  load4(to, v);
#pragma unroll
  for (int c = 0; c < 4; c++) v[c] += sum[c];
  store4(to, v);
}

/* Sums of columns over every gridDim.y-th row, as parts that addParts adds up: a thread has four columns. */
template <typename A> __device__ void sumRows(const A* x, float* parts, int rows, int width) {
  const int column = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (column >= width) return;
  float sum[4] = {0, 0, 0, 0};
  for (int t = blockIdx.y; t < rows; t += gridDim.y) {
    float v[4];
    load4(x + (long long)t * width + column, v);
#pragma unroll
    for (int c = 0; c < 4; c++) sum[c] += v[c];
  }
  store4(parts + (long long)blockIdx.y * width + column, sum);
}

/* y += x. */
template <typename A, typename B> __device__ void addTo(const A* x, B* y, long long n) {
  const long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  for (long long i = first; i < n; i += (long long)gridDim.x * blockDim.x * 4) {
    if (i + 4 <= n) {
      float a[4], b[4];
      load4(x + i, a);
      load4(y + i, b);
#pragma unroll
      for (int j = 0; j < 4; j++) b[j] += a[j];
      store4(y + i, b);
    } else {
      for (long long j = i; j < n; j++) y[j] = fromFloat<B>(toFloat(y[j]) + toFloat(x[j]));
    }
  }
}

template <typename A, typename B> __device__ void convert(const A* x, B* y, long long n) {
  const long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * 8;
  for (long long i = first; i < n; i += (long long)gridDim.x * blockDim.x * 8) {
    if (i + 8 <= n) {
      float v[8];
      load8(x + i, v);
      store8(y + i, v);
    } else {
      for (long long j = i; j < n; j++) y[j] = fromFloat<B>(toFloat(x[j]));
    }
  }
}

extern "C" __global__ void gather_f32(const float* x, const int* ids, float* out, int width) { CHAINED(); gather<float>(x, ids, out, width); }
extern "C" __global__ void gather_bf16(const bf16* x, const int* ids, bf16* out, int width) { CHAINED(); gather<bf16>(x, ids, out, width); }
extern "C" __global__ void scatterAdd_f32(const float* y, const int* ids, float* x, int rows, int width) { scatterAdd<float>(y, ids, x, rows, width); }
extern "C" __global__ void scatterAdd_bf16(const bf16* y, const int* ids, bf16* x, int rows, int width) { scatterAdd<bf16>(y, ids, x, rows, width); }
extern "C" __global__ void sumRows_f32(const float* x, float* parts, int rows, int width) { sumRows<float>(x, parts, rows, width); }
extern "C" __global__ void sumRows_bf16(const bf16* x, float* parts, int rows, int width) { sumRows<bf16>(x, parts, rows, width); }
extern "C" __global__ void addTo_f32_f32(const float* x, float* y, long long n) { addTo<float, float>(x, y, n); }
extern "C" __global__ void addTo_bf16_f32(const bf16* x, float* y, long long n) { addTo<bf16, float>(x, y, n); }
extern "C" __global__ void addTo_bf16_bf16(const bf16* x, bf16* y, long long n) { addTo<bf16, bf16>(x, y, n); }
extern "C" __global__ void convert_f32_bf16(const float* x, bf16* y, long long n) { convert<float, bf16>(x, y, n); }
extern "C" __global__ void convert_bf16_f32(const bf16* x, float* y, long long n) { convert<bf16, float>(x, y, n); }
`,
};
