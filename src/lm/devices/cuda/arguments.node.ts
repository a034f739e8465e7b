// Builds kernel arguments, and divides rows and heads among threads.
import type { Buffer, Scale } from "../device.ts";
import type { Matrix } from "./blas.node.ts";
import { MAX_NORM_WIDTH } from "./kernels/norm.ts";
import type { KernelArg } from "./launch.ts";

export const NULL: KernelArg = { ptr: 0 };

export function at({ address }: Buffer): KernelArg {
  return { ptr: address };
}

export function i32(value: number): KernelArg {
  return { i32: value };
}

export function f32(value: number): KernelArg {
  return { f32: value };
}

export function matrix({ address, dtype }: Buffer, stride: number): Matrix {
  return { address, dtype, stride };
}

export function scalesOf(norms: { readonly q: Scale; readonly k: Scale } | null): KernelArg[] {
  return norms ? [at(norms.q.value), at(norms.k.value)] : [NULL, NULL];
}

/** Addresses of a layer's head scales and bias, in the order that `rotate` and `attention_next` take them. */
export function vectorsOf(norms: { readonly q: Scale; readonly k: Scale } | null, bias: Scale | null): KernelArg[] {
  return [...scalesOf(norms), bias ? at(bias.value) : NULL];
}

/** Threads per row; each handles eight numbers. */
export function normThreads(width: number): number {
  if (width > MAX_NORM_WIDTH) throw new RangeError(`rows of ${width} numbers are too wide for the CUDA device`);
  return Math.min(256, Math.max(32, Math.ceil(width / 8 / 32) * 32));
}

/** Threads per head, and dims per thread in each half of a rotated head. */
export function rotaryCut(headDim: number): { lanes: number; dims: 4 | 8 } {
  const dims = headDim % 16 === 0 ? 8 : 4;
  const needed = headDim / 2 / dims;
  if (needed > 32) throw new RangeError(`heads of ${headDim} are too wide for the CUDA device`);
  return { lanes: 2 ** Math.ceil(Math.log2(needed)), dims };
}
