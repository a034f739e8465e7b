// All CUDA sources that do not depend on a model's shape.
import { attentionPlanSource } from "./attention.ts";
import { DECODE } from "./kernels/decode.ts";
import { HEAD } from "./kernels/head.ts";
import { NORM } from "./kernels/norm.ts";
import { OPTIMIZER } from "./kernels/optimizer.ts";
import { ROTARY } from "./kernels/rotary.ts";
import { ROWS } from "./kernels/rows.ts";
import { SKINNY } from "./kernels/skinny-matmul.ts";
import { SWIGLU } from "./kernels/swiglu.ts";
import type { KernelSource } from "./launch.ts";
import { sampleSource } from "./sample.ts";

const SOURCES: readonly KernelSource[] = [
  ...[NORM, ROTARY, SWIGLU, ROWS, HEAD, OPTIMIZER, DECODE, SKINNY],
  ...[attentionPlanSource, sampleSource],
];

/** The sources for a GPU of this compute capability (90 for Hopper). */
export function sourcesFor(capability: number): KernelSource[] {
  return SOURCES.filter(({ from = 75 }) => capability >= from);
}
