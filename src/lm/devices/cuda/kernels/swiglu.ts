// silu(gate) · up and its backward; a row has gate, then up.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

export const SWIGLU: KernelSource = {
  name: "swiglu",
  code: `${COMMON}
template <typename A> __device__ void swiGlu(const A* gateUp, A* out, int rows, int width) {
  const unsigned eighths = rows * (width >> 3), row8 = width >> 3; /* far below 2³² */
  for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < eighths; k += gridDim.x * blockDim.x) {
    const long long row = k / row8;
    const int i = (k % row8) * 8;
    float g[8], u[8];
    load8(gateUp + row * 2 * width + i, g);
    load8(gateUp + row * 2 * width + width + i, u);
#pragma unroll
    for (int j = 0; j < 8; j++) g[j] = g[j] / (1.0f + expf(-g[j])) * u[j];
    store8(out + row * width + i, g);
  }
}

template <typename A> __device__ void swiGluBackward(const A* dOut, const A* gateUp, A* dGateUp, int rows, int width) {
  const unsigned eighths = rows * (width >> 3), row8 = width >> 3; /* far below 2³² */
  for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < eighths; k += gridDim.x * blockDim.x) {
    const long long row = k / row8;
    const int i = (k % row8) * 8;
    const long long at = row * 2 * width + i;
    float g[8], u[8], d[8];
    load8(gateUp + at, g);
    load8(gateUp + at + width, u);
    load8(dOut + row * width + i, d);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const float sigmoid = 1.0f / (1.0f + expf(-g[j]));
      const float silu = g[j] * sigmoid;
      g[j] = d[j] * u[j] * sigmoid * (1.0f + g[j] - silu);
      u[j] = d[j] * silu;
    }
    store8(dGateUp + at, g);
    store8(dGateUp + at + width, u);
  }
}

extern "C" __global__ void swiGlu_f32(const float* gateUp, float* out, int rows, int width) { CHAINED(); swiGlu<float>(gateUp, out, rows, width); }
extern "C" __global__ void swiGlu_bf16(const bf16* gateUp, bf16* out, int rows, int width) { CHAINED(); swiGlu<bf16>(gateUp, out, rows, width); }
extern "C" __global__ void swiGluBackward_f32(const float* dOut, const float* gateUp, float* dGateUp, int rows, int width) {
  swiGluBackward<float>(dOut, gateUp, dGateUp, rows, width);
}
extern "C" __global__ void swiGluBackward_bf16(const bf16* dOut, const bf16* gateUp, bf16* dGateUp, int rows, int width) {
  swiGluBackward<bf16>(dOut, gateUp, dGateUp, rows, width);
}
`,
};
