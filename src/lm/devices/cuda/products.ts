// Which kernel multiplies few rows with a bf16 weight, and how it is started; for all others there is cuBLAS.
import {
  clusteredBlocks,
  clusteredName,
  clusteredShape,
  clusteredShared,
  clusteredSource,
} from "./kernels/clustered.ts";
import { NORMED_ROWS, SKINNY_ROWS, type SkinnyEnd, skinnyCut, skinnyName, skinnyShared } from "./kernels/skinny.ts";
import type { KernelSource } from "./launch.ts";

/** x[rows, k] · weightᵀ, a weight of n rows, and what follows it. */
export interface Product {
  readonly end: SkinnyEnd;
  readonly n: number;
  readonly k: number;
  readonly rows: number;
  /** Whether x is the stream, to be normed on the way. */
  readonly isNormed: boolean;
}

export interface StartedProduct {
  readonly kernel: string;
  /** To be compiled before, where it is not one of all sizes. */
  readonly source?: KernelSource;
  readonly blocks: number;
  readonly threads: number;
  readonly shared: number;
  /** Columns of the result: half as many as the weight has rows where gate and up are paired. */
  readonly width: number;
}

interface ProductCard {
  readonly capability: number;
  readonly multiprocessors: number;
  readonly sharedPerBlock: number;
}

/** Undefined where the sizes are not for a kernel of our own. All take the same arguments. */
export function startProduct({ end, n, k, rows, isNormed }: Product, card: ProductCard): StartedProduct | undefined {
  const width = end === "gated" ? n / 2 : n;
  const cut = skinnyCut(rows, k);
  if (cut) {
    if (width % 16 !== 0 || (isNormed && rows > NORMED_ROWS)) return undefined;
    const [kernel, shared] = [skinnyName(end, cut, isNormed), skinnyShared(end, cut)];
    return { kernel, blocks: width / 16, threads: 32 * cut.warps, shared, width };
  }
  if (isNormed || end === "added" || rows <= SKINNY_ROWS || card.capability !== 90) return undefined;
  const shape = clusteredShape(rows, n, k, end, card);
  if (!shape) return undefined;
  const [blocks, threads, shared] = [clusteredBlocks(shape, n), 128 * shape.groups, clusteredShared(shape)];
  return { kernel: clusteredName(shape), source: clusteredSource(shape), blocks, threads, shared, width };
}
