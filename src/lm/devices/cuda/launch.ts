// How kernels are started: by name, with a grid of blocks and plain arguments, on the device's one stream.

/** One argument of a kernel, in the kernel's own order. */
export type KernelArg =
  | { readonly ptr: number | bigint }
  | { readonly i32: number }
  | { readonly i64: number }
  | { readonly f32: number };

type Three = readonly [number, number, number];

/** Queues a kernel; returns at once. */
export type Launch = (
  kernel: string,
  grid: Three,
  block: Three,
  sharedBytes: number,
  args: readonly KernelArg[],
) => void;

/** A self-contained kernel source: name for messages and the cache, and CUDA C. */
export interface KernelSource {
  readonly name: string;
  readonly code: string;
  /** Compute capability (as 10·major + minor) from which it compiles. @default 75 */
  readonly from?: number;
}
