// Instructions for kernels with tiles in shared memory: asynchronous copies (cp.async, from Ampere on), and Hopper's
// wgmma of four warps on tiles in the "128-byte swizzle" layout: panels of 64 columns, rows of 128 bytes, 16-byte
// pieces xor row % 8.

/** CUDA source of copies into shared memory; synchronous on older GPUs. */
export const COPIES = `
__device__ __forceinline__ unsigned sharedAddress(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

/* Copies 16 bytes from memory into a tile, or zeros; complete once its commit has been waited for. */
__device__ __forceinline__ void copy16(void* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\\n" ::"r"(sharedAddress(to)), "l"(from), "r"(there ? 16 : 0));
#else
  *(uint4*)to = there ? *(const uint4*)from : make_uint4(0, 0, 0, 0);
#endif
}
__device__ __forceinline__ void commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\\n");
#endif
}
/* Waits for this thread's own copies but those of the last N commits. */
template <int N> __device__ __forceinline__ void waitForCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\\n" ::"n"(N) : "memory");
#endif
}
`;

/** CUDA source of wgmma's descriptors and fences. */
export const WGMMA = `
/* Matrix descriptor of a tile: address, bytes between panels (for B with rows as k), bytes between eight rows, 128-byte swizzle. */
__device__ __forceinline__ unsigned long long descriptor(const void* p, unsigned panelBytes) {
  return (unsigned long long)((sharedAddress(p) & 0x3ffffu) >> 4) | ((unsigned long long)(panelBytes >> 4) << 16) | (64ull << 32) | (1ull << 62);
}
__device__ __forceinline__ void wgmmaFence() { asm volatile("wgmma.fence.sync.aligned;\\n" ::: "memory"); }
__device__ __forceinline__ void wgmmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;\\n" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmmaWait() { asm volatile("wgmma.wait_group.sync.aligned %0;\\n" ::"n"(N) : "memory"); }
`;

/** The result registers of one wgmma, as asm operands. */
const registers = (count: number): string => Array.from({ length: count }, (_, i) => `%${i}`).join(", ");

/**
 * CUDA source of r[64, n] (+)= A[64, 16] · B[16, n]. A is in shared memory or in registers; B is given by its
 * descriptor, with rows n, or k if transposed.
 */
export function wgmma(name: string, n: number, from: "shared" | "registers", transposed: 0 | 1): string {
  const count = n / 2;
  const results = Array.from({ length: count }, (_, i) => `"+f"(r[${i >> 2}][${i & 3}])`).join(", ");
  const a = from === "shared" ? `%${count}` : `{${[0, 1, 2, 3].map((i) => `%${count + i}`).join(", ")}}`;
  const at = count + (from === "shared" ? 1 : 4);
  const [parameters, inputs, flags] =
    from === "shared"
      ? ["unsigned long long a", '"l"(a)', `0, ${transposed}`]
      : ["const unsigned (&a)[4]", '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])', transposed];
  return `
__device__ __forceinline__ void ${name}(float (&r)[${n / 8}][4], ${parameters}, unsigned long long b, int add) {
  asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %${at + 1}, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n${n}k16.f32.bf16.bf16 {${registers(count)}}, ${a}, %${at}, p, 1, 1, ${flags};\\n}\\n"
    : ${results} : ${inputs}, "l"(b), "r"(add));
}`;
}
