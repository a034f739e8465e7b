// Tests attention on GPUs: tile shapes, launch arguments, and that every kernel compiles for its GPUs.
import { describe, expect, test } from "vitest";
import { hasNvcc, spillsOf } from "../../../../test/devices/nvcc.ts";
import { some } from "../../../../test/helpers/cases.ts";
import type { Buffer, TokenLayout } from "../device.ts";
import {
  type AttentionKernels,
  type AttentionShape,
  attentionBackward,
  attentionForward,
  attentionKernels,
  attentionNext,
  attentionPlanLength,
  attentionPlanSource,
  decodeScratch,
  decodeSplits,
  planAttention,
} from "./attention.ts";
import type { KernelArg, KernelSource } from "./launch.ts";
import { sampleSource } from "./sample.ts";

const T4 = { capability: 75, sharedPerBlock: 64 << 10 };
const A100 = { capability: 80, sharedPerBlock: 163 << 10 };
const RTX_4090 = { capability: 89, sharedPerBlock: 99 << 10 };
const H200 = { capability: 90, sharedPerBlock: 227 << 10 };
const qwen: AttentionShape = { heads: 16, kvHeads: 8, headDim: 128, precision: "bf16" };
const plain: AttentionShape = { ...qwen, precision: "f32" };

test("a GPU gets the fastest instructions it has", () => {
  const instructionSetOn = (shape: AttentionShape, gpu: typeof T4) =>
    attentionKernels(shape, gpu).forward.instructionSet;
  expect(instructionSetOn(qwen, H200)).toBe("wgmma");
  expect(instructionSetOn({ ...qwen, headDim: 24 }, H200)).toBe("mma");
  expect(instructionSetOn(qwen, A100)).toBe("mma");
  expect(instructionSetOn(plain, H200)).toBe("float");
  expect(instructionSetOn(plain, T4)).toBe("float");
});

test.each([T4, A100, RTX_4090, H200])("heads of all sizes fit compute capability $capability", (gpu) => {
  for (const precision of gpu.capability < 80 ? (["f32"] as const) : (["f32", "bf16"] as const)) {
    for (let headDim = 8; headDim <= 256; headDim += 8) {
      const { forward, backward } = attentionKernels({ heads: 6, kvHeads: 3, headDim, precision }, gpu);
      for (const { shared, stages } of [forward, backward]) {
        expect(shared).toBeLessThanOrEqual(gpu.sharedPerBlock);
        if (gpu.capability < 80) expect(stages).toBe(1);
      }
    }
  }
});

test("heads of a group are paired, others alone; kernels of other tile sizes have other names", () => {
  const pairs = attentionKernels(qwen, H200);
  const alone = attentionKernels({ ...qwen, heads: 24 }, H200);
  expect([pairs.forward.heads, alone.forward.heads]).toEqual([2, 1]);
  expect([pairs.decodeHeadsPerBlock, alone.decodeHeadsPerBlock]).toEqual([2, 3]);
  expect(pairs.suffix).not.toBe(alone.suffix);
});

/** A prompt of 100 tokens with completions of 30 and 200. */
function someLayout(): TokenLayout {
  const make = (length: number): Buffer => ({ dtype: "i32", length, address: 4096 * length });
  return {
    ...{ tokens: 330, spanCount: 3, kvBlockCount: 3, treeCount: 1, maxContext: 300 },
    ...{ positions: make(330), blockAddresses: make(330), capacities: make(330), indices: make(330) },
    ...{ spans: make(16), ranges: make(15), rangeRows: make(5), kvBlocks: make(9), trees: make(2) },
  };
}

function recorder() {
  const started: { kernel: string; grid: readonly number[]; shared: number; args: readonly KernelArg[] }[] = [];
  const launch = (
    kernel: string,
    grid: readonly number[],
    _: readonly number[],
    shared: number,
    args: readonly KernelArg[],
  ) => {
    started.push({ kernel, grid, shared, args });
  };
  return { started, launch };
}

test("a plan's tables are consecutive in its buffer, with room for every tile", () => {
  const layout = someLayout();
  const kernels = attentionKernels(qwen, H200);
  const { started, launch } = recorder();
  const plan = planAttention(launch, kernels, layout, 1000);
  expect(started.map(({ kernel }) => kernel)).toEqual(["attention_plan", "attention_plan"]);
  const tiles = Math.floor(330 / 64) + 3; // a tile is 64 queries of two heads
  expect(plan.queryTiles).toEqual({ at: 1000, count: tiles });
  expect(plan.backwardTiles).toEqual({ at: 1000 + 8 * tiles, count: tiles });
  expect(plan.keyTiles).toEqual({ at: 1000 + 16 * tiles, count: Math.floor(330 / 128) + 3 });
  expect(plan.owner).toBe(Number(plan.next) + 4 * 5);
  expect(Number(plan.owner) + 4 * 5).toBe(1000 + 4 * attentionPlanLength(layout, kernels));
});

test("forward and backward are launched on every tile, with the kernels' number of arguments", () => {
  const layout = someLayout();
  const kernels = attentionKernels(qwen, H200);
  const { started, launch } = recorder();
  const buffer: Buffer = { dtype: "f32", length: 1, address: 64 };
  const plan = planAttention(launch, kernels, layout, 4096n);
  const io = { q: buffer, kvCache: buffer, out: buffer, lse: buffer };
  attentionForward(launch, kernels, plan, layout, io);
  attentionBackward(launch, kernels, plan, layout, { ...io, dOut: buffer, dots: buffer, dqkv: buffer });
  for (const { kernel, args } of started) expect(args.length, kernel).toBe(parametersOf(kernels, kernel));
  expect(started.map(({ grid }) => grid)).toEqual([
    ...[
      [1, 1, 1],
      [1, 1, 1],
    ],
    [8, plan.queryTiles.count, 1],
    [(330 * 16) / 8, 1, 1],
    [8, plan.backwardTiles.count, 1],
    [8, plan.keyTiles.count, 1],
  ]);
});

function parametersOf(kernels: AttentionKernels, name: string): number {
  const code = [...kernels.sources, attentionPlanSource].map((source) => source.code).join("\n");
  return new RegExp(`${name}\\(([^)]*)\\)`).exec(code)![1]!.split(",").length;
}

test("attention_next is launched with its number of arguments, on GPUs and heads that support it", () => {
  const kernels = attentionKernels(qwen, H200);
  const { started, launch } = recorder();
  const names = ["qkv", "kvCache", "out", "partials", "counters", "work", "ranges", "positions", "rotary"] as const;
  const io = Object.fromEntries(names.map((name, i) => [name, { dtype: "f32", length: 1, address: i }])) as Record<
    (typeof names)[number],
    Buffer
  >;
  attentionNext(launch, kernels, 64, 132, 1e-6, io, [{ ptr: 1 }, { ptr: 2 }, { ptr: 3 }]);
  expect(started.map(({ kernel }) => kernel)).toEqual([kernels.next]);
  for (const { kernel, args } of started) expect(args.length, kernel).toBe(parametersOf(kernels, kernel));
  expect(started[0]!.grid).toEqual([8, 16, 1]); // four rows per block
  expect(attentionKernels(plain, H200).next).toBeUndefined();
  expect(attentionKernels({ ...qwen, headDim: 24 }, H200).next).toBeUndefined();
  expect(attentionKernels(qwen, T4).next).toBeUndefined();
});

test("one sequence is split over the GPU, a full batch is not; scratch holds all splits", () => {
  expect(decodeSplits(1, qwen, 132)).toBe(16);
  expect(decodeSplits(8, qwen, 132)).toBe(4);
  expect(decodeSplits(64, qwen, 132)).toBe(1);
  expect(decodeSplits(1000, qwen, 132)).toBe(1);
  expect(decodeScratch(3, 4, attentionKernels(qwen, H200))).toEqual({ partials: 3 * 16 * 4 * 130, counters: 24 });
});

describe.skipIf(!hasNvcc)("with nvcc (skipped where it is not installed),", () => {
  const targets: [string, readonly KernelSource[]][] = [
    ["sm_90a", attentionKernels(qwen, H200).sources],
    ["sm_75", [attentionPlanSource, sampleSource, ...attentionKernels(plain, T4).sources]],
    ["sm_80", attentionKernels({ ...qwen, headDim: 24, heads: 24 }, A100).sources],
    ["sm_80", attentionKernels({ ...qwen, headDim: 64, heads: 32 }, A100).sources.slice(-1)],
  ];
  test.each(some(1, targets))(
    "kernels compile for %s and spill no registers",
    { timeout: 240_000 },
    async (target, sources) => {
      for (const [name, spills] of await spillsOf(sources, target)) {
        expect(spills.length, name).toBeGreaterThan(0);
        expect(Math.max(...spills), name).toBe(0);
      }
    },
  );
});
