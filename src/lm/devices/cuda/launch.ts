// How kernels are launched: by name, with a grid of blocks and plain arguments, on the device's only stream.

/** One kernel argument; arguments are in the kernel's order. */
export type KernelArg =
  | { readonly ptr: number | bigint }
  | { readonly i32: number }
  | { readonly i64: number }
  | { readonly f32: number };

type Three = readonly [number, number, number];

/** Queues a kernel and returns at once. */
export type Launch = (
  kernel: string,
  grid: Three,
  block: Three,
  sharedBytes: number,
  args: readonly KernelArg[],
) => void;

/** A self-contained kernel source: CUDA C, and a name for messages and the cache. */
export interface KernelSource {
  readonly name: string;
  readonly code: string;
  /** Minimum compute capability (10·major + minor) for which it compiles. @default 75 */
  readonly from?: number;
}
