// Chooses which of our kernels multiplies a small batch by a bf16 weight, and its launch; cuBLAS does all other
// matmuls.
import {
  clusteredBlocks,
  clusteredName,
  clusteredShape,
  clusteredShared,
  clusteredSource,
} from "./kernels/cluster-matmul.ts";
import {
  NORMED_ROWS,
  SKINNY_ROWS,
  type SkinnyEnd,
  skinnyCut,
  skinnyName,
  skinnyShared,
} from "./kernels/skinny-matmul.ts";
import type { KernelSource } from "./launch.ts";

/** A matmul x[rows, k] · weightᵀ, with a weight of n rows, and its epilogue. */
export interface Matmul {
  readonly end: SkinnyEnd;
  readonly n: number;
  readonly k: number;
  readonly rows: number;
  /** Whether x is the residual stream, which the kernel normalizes. */
  readonly isNormed: boolean;
}

export interface MatmulLaunch {
  readonly kernel: string;
  /** Source to compile first, if the kernel is specialized for these sizes. */
  readonly source?: KernelSource;
  readonly blocks: number;
  readonly threads: number;
  readonly shared: number;
  /** Columns of the result: half the weight's rows if gate and up are paired. */
  readonly width: number;
}

interface MatmulGpu {
  readonly capability: number;
  readonly multiprocessors: number;
  readonly sharedPerBlock: number;
}

/** Chooses a launch; undefined if none of our kernels supports these sizes. All of them take the same arguments. */
export function matmulLaunch({ end, n, k, rows, isNormed }: Matmul, gpu: MatmulGpu): MatmulLaunch | undefined {
  const width = end === "gated" ? n / 2 : n;
  const cut = skinnyCut(rows, k);
  if (cut) {
    if (width % 16 !== 0 || (isNormed && rows > NORMED_ROWS)) return undefined;
    const [kernel, shared] = [skinnyName(end, cut, isNormed), skinnyShared(end, cut)];
    return { kernel, blocks: width / 16, threads: 32 * cut.warps, shared, width };
  }
  if (isNormed || end === "added" || rows <= SKINNY_ROWS || gpu.capability !== 90) return undefined;
  const shape = clusteredShape(rows, n, k, end, gpu);
  if (!shape) return undefined;
  const [blocks, threads, shared] = [clusteredBlocks(shape, n), 128 * shape.groups, clusteredShared(shape)];
  return { kernel: clusteredName(shape), source: clusteredSource(shape), blocks, threads, shared, width };
}
