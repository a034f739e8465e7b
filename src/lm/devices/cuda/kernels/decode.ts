// Kernels between two decoding steps, which let steps follow each other without the host: they compute random numbers
// by position and advance the tables to the next step.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";

export const DECODE: KernelSource = {
  name: "decode",
  code: `${COMMON}
/* As in lm/engine/sampling/counter-rng.ts. */
__device__ __forceinline__ unsigned mix(unsigned h) {
  h = (h ^ (h >> 16)) * 0x21f0aaadu;
  h = (h ^ (h >> 15)) * 0x735a2d97u;
  return h ^ (h >> 15);
}

/* The random number of each row's seeds (two words) for the position after its own. */
extern "C" __global__ void uniforms(const unsigned* seeds, const int* positions, float* out, int rows) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= rows) return;
  const unsigned word = mix(mix((unsigned)(positions[t] + 1) + seeds[2 * t]) ^ seeds[2 * t + 1]);
  out[t] = (float)(word >> 8) * (1.0f / 16777216.0f);
}

/* Each row continues with its token, one further in its KV block; when the block is full it stays where it is. */
extern "C" __global__ void advance(
  const int* tokens, int* ids, int* positions, const int* capacities, int* indices, int* spans, int* ranges, int rows) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= rows) return;
  ids[t] = tokens[t];
  if (indices[t] + 1 >= capacities[t]) return;
  indices[t]++;
  positions[t]++;
  spans[4 * t + 2]++;
  ranges[3 * (spans[4 * t + 7] - 1) + 2]++;
}
`,
};
