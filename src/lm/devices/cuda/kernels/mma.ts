// One bf16 step of the tensor cores, for kernels that assemble operands in registers. Within a step of 32 k, the order
// of k is free if both operands agree: a lane reads eight consecutive k of each, so all loads are 16 bytes.

/**
 * CUDA source of multiply32: c[16, 8] += a[16, 32] · b[32, 8]. A lane holds eight k of a's rows `lane / 4` (low) and
 * `lane / 4 + 8` (high), and of b's column `lane / 4`.
 */
export const MMA = `
#ifdef EMULATED_MMA /* the test emulator's */
#include EMULATED_MMA
#else
__device__ __forceinline__ void mma(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#endif
__device__ __forceinline__ void multiply32(float* c, const uint4& low, const uint4& high, const uint4& b) {
  mma(c, low.x, high.x, low.y, high.y, b.x, b.y);
  mma(c, low.z, high.z, low.w, high.w, b.z, b.w);
}

/* A weight is read once, by one block: bypass the L1 cache. */
__device__ __forceinline__ uint4 loadWeight(const bf16* p) {
#ifdef EMULATED_MMA
  return *(const uint4*)p;
#else
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
#endif
}
`;
