// Prelude of every CUDA source: bf16 without headers, and sums over a warp or a block in a fixed order.
// Kernels are written for an activation type T, float or bf16, and named …_f32 and …_bf16; sums are always float.
//
// The KV cache holds elements of type T. For each kv head, a KV block has 2·cap·d elements: keys [cap][d], then values
// [cap][d]. The layout's tables (lm/devices/layout.ts) hold its address and cap: kv head g starts at address +
// g·2·cap·d.

/**
 * Matches kernels that begin with CHAINED() or its parts (programmatic dependent launch). The chain is broken between
 * two decoding steps, so that a kernel may read a step's tables before the previous kernel has ended.
 */
export const CHAINED = /^(rmsNorm|rotate|swiGlu|gather|skinny|clustered|sample|attention_decode|attention_next)_/;

export const COMMON = `
#define INF __int_as_float(0x7f800000) /* NVRTC has no headers */

/* Programmatic dependent launch: the next kernel may start while this one runs, and waits before it reads its outputs. */
#if __CUDA_ARCH__ >= 900
#define LET_NEXT_START() asm volatile("griddepcontrol.launch_dependents;")
#define AFTER_PREVIOUS() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define LET_NEXT_START()
#define AFTER_PREVIOUS()
#endif
#define CHAINED() LET_NEXT_START(); AFTER_PREVIOUS()

struct __align__(2) bf16 { unsigned short bits; };

__device__ __forceinline__ float toFloat(float x) { return x; }
__device__ __forceinline__ float toFloat(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

/* Rounds two floats to a pair of bf16, the first in the low half; to nearest, ties to even. */
__device__ __forceinline__ unsigned packBf16(float low, float high) {
#if __CUDA_ARCH__ >= 800
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  unsigned a = __float_as_uint(low), b = __float_as_uint(high);
  a = (low != low) ? 0x7fff0000u : a + 0x7fffu + ((a >> 16) & 1u);
  b = (high != high) ? 0x7fff0000u : b + 0x7fffu + ((b >> 16) & 1u);
  return (a >> 16) | (b & 0xffff0000u);
#endif
}

template <typename T> __device__ __forceinline__ T fromFloat(float x);
template <> __device__ __forceinline__ float fromFloat<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 fromFloat<bf16>(float x) {
  bf16 y;
  y.bits = (unsigned short)(packBf16(x, 0.0f) & 0xffffu);
  return y;
}

/* Eight consecutive numbers; the address is a multiple of their size. */
__device__ __forceinline__ void load8(const float* p, float* v) {
  const float4 a = *(const float4*)p, b = *(const float4*)(p + 4);
  v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w; v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
}
__device__ __forceinline__ void load8(const bf16* p, float* v) {
  const uint4 a = *(const uint4*)p;
  v[0] = __uint_as_float(a.x << 16); v[1] = __uint_as_float(a.x & 0xffff0000u);
  v[2] = __uint_as_float(a.y << 16); v[3] = __uint_as_float(a.y & 0xffff0000u);
  v[4] = __uint_as_float(a.z << 16); v[5] = __uint_as_float(a.z & 0xffff0000u);
  v[6] = __uint_as_float(a.w << 16); v[7] = __uint_as_float(a.w & 0xffff0000u);
}
__device__ __forceinline__ void store8(float* p, const float* v) {
  *(float4*)p = make_float4(v[0], v[1], v[2], v[3]);
  *(float4*)(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
}
__device__ __forceinline__ void store8(bf16* p, const float* v) {
  *(uint4*)p = make_uint4(packBf16(v[0], v[1]), packBf16(v[2], v[3]), packBf16(v[4], v[5]), packBf16(v[6], v[7]));
}

/* Four of them. */
__device__ __forceinline__ void load4(const float* p, float* v) {
  const float4 a = *(const float4*)p;
  v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
}
__device__ __forceinline__ void load4(const bf16* p, float* v) {
  const uint2 a = *(const uint2*)p;
  v[0] = __uint_as_float(a.x << 16); v[1] = __uint_as_float(a.x & 0xffff0000u);
  v[2] = __uint_as_float(a.y << 16); v[3] = __uint_as_float(a.y & 0xffff0000u);
}
__device__ __forceinline__ void store4(float* p, const float* v) { *(float4*)p = make_float4(v[0], v[1], v[2], v[3]); }
__device__ __forceinline__ void store4(bf16* p, const float* v) {
  *(uint2*)p = make_uint2(packBf16(v[0], v[1]), packBf16(v[2], v[3]));
}

__device__ __forceinline__ float warpSum(float x) {
  for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ __forceinline__ float warpMax(float x) {
  for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/* The same sum in every thread of a block of at most 1024. */
__device__ __forceinline__ float blockSum(float x) {
  __shared__ float parts[32];
  x = warpSum(x);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = x;
  __syncthreads();
  x = threadIdx.x % 32 < (blockDim.x + 31) / 32 ? parts[threadIdx.x % 32] : 0.0f;
  return warpSum(x);
}
`;
