// Sampling on a CUDA GPU. Launches depend only on buffers, so they can be captured in a graph.
import type { Buffer } from "../device.ts";
import { COMMON } from "./kernels/common.ts";
import { SAMPLE, SAMPLE_PART } from "./kernels/sample.ts";
import type { KernelSource, Launch } from "./launch.ts";

export const sampleSource: KernelSource = { name: "sample", code: COMMON + SAMPLE };

const THREADS = 256; // as in kernels/sample.ts

/** Number of scratch floats that `sample` needs. */
export function sampleScratchLength(rows: number, vocabulary: number): number {
  return 3 * rows * partsOf(vocabulary);
}

/** Samples a token and its log-prob for each row of logits (rows are `stride` apart, in the given precision). */
export function sample(
  launch: Launch,
  logits: { readonly buffer: Buffer; readonly precision: "f32" | "bf16"; readonly stride: number },
  vocabulary: number,
  rows: number,
  draw: { readonly temperatures: Buffer; readonly uniforms: Buffer },
  out: { readonly tokens: Buffer; readonly logp: Buffer },
  scratch: Buffer,
): void {
  const parts = partsOf(vocabulary);
  const common = [
    { ptr: logits.buffer.address },
    { i64: logits.stride },
    { i32: vocabulary },
    { ptr: draw.temperatures.address },
  ];
  launch(`sample_parts_${logits.precision}`, [parts, rows, 1], [THREADS, 1, 1], 0, [
    ...common,
    { ptr: scratch.address },
  ]);
  launch(`sample_pick_${logits.precision}`, [rows, 1, 1], [THREADS, 1, 1], 0, [
    ...common,
    { ptr: draw.uniforms.address },
    { ptr: scratch.address },
    { i32: parts },
    { ptr: out.tokens.address },
    { ptr: out.logp.address },
  ]);
}

function partsOf(vocabulary: number): number {
  return Math.ceil(vocabulary / SAMPLE_PART);
}
