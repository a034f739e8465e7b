// Attention on a CUDA GPU: chooses the kernels for a head shape and their tile shapes, and launches them.
import type { Buffer, TokenLayout } from "../device.ts";
import { forwardKernel, PLAN } from "./kernels/attention.ts";
import { backwardKernels } from "./kernels/attention-backward.ts";
import { DECODE_SPLITS, decodeKernel } from "./kernels/attention-decode.ts";
import { type InstructionSet, instructions, PARTS } from "./kernels/attention-parts.ts";
import { COMMON } from "./kernels/common.ts";
import { nextKernel, nextShared } from "./kernels/fused-decode-step.ts";
import { COPIES } from "./kernels/hopper.ts";
import { MMA } from "./kernels/mma.ts";
import type { KernelArg, KernelSource, Launch } from "./launch.ts";
import { NEXT_WARPS, sharingCut, TILE_QUERIES } from "./prefix-sharing.ts";

export interface AttentionShape {
  readonly heads: number;
  readonly kvHeads: number;
  /** A multiple of 8. */
  readonly headDim: number;
  readonly precision: "f32" | "bf16";
}

export interface AttentionGpu {
  /** 10·major + minor. */
  readonly capability: number;
  /** Maximum bytes of shared memory per block. */
  readonly sharedPerBlock: number;
}

/** Shape of a kernel's tiles: see kernels/attention-parts.ts. */
interface TileShape {
  readonly instructionSet: InstructionSet;
  readonly warps: number;
  readonly tile: number;
  readonly stages: number;
  /** Heads per block. */
  readonly heads: number;
  readonly shared: number;
}

/** The kernels for a head shape, as the `attention…` functions launch them. */
export interface AttentionKernels {
  readonly shape: AttentionShape;
  readonly suffix: string;
  readonly sources: readonly KernelSource[];
  readonly forward: TileShape;
  readonly backward: TileShape;
  /** Heads per block of the decode kernel; 0 if heads are too wide for it. */
  readonly decodeHeadsPerBlock: number;
  /** Name of the kernel that reads shared prefixes once, if there is one for this shape. */
  readonly next: string | undefined;
}

/** An address on the GPU. */
type Address = number | bigint;

/** A layout's plan: see kernels/attention.ts. */
export interface AttentionPlan {
  readonly buffer: Address;
  readonly queryTiles: { readonly at: Address; readonly count: number };
  readonly backwardTiles: { readonly at: Address; readonly count: number };
  readonly keyTiles: { readonly at: Address; readonly count: number };
  readonly next: Address;
  readonly owner: Address;
}

const PLAN_THREADS = 1024;
const DOTS_WARPS = 8; // warps per block of attention_dots
const DECODE_MOST = 256; // maximum head size of the decode kernel
const DECODE_THREADS = 128;
const NEXT_STATIC = 4096; // bytes of static shared memory in kernels/fused-decode-step.ts

/**
 * Chooses kernels for a head shape on a GPU; `sources` must be compiled once. "wgmma" needs the architecture's "a"
 * target.
 */
export function attentionKernels(shape: AttentionShape, gpu: AttentionGpu, force?: InstructionSet): AttentionKernels {
  const { headDim: d, precision } = shape;
  const instructionSet: InstructionSet = force ?? instructionSetFor(shape, gpu);
  const forward = tileShape(shape, gpu, instructionSet, "forward");
  const backward = tileShape(shape, gpu, instructionSet, "backward");
  const suffix = `${precision}_${d}_${forward.heads}${backward.heads}_${instructionSet}`;
  const from = instructionSet === "float" ? 75 : instructionSet === "mma" ? 80 : 90;
  const decodeHeadsPerBlock = d > DECODE_MOST ? 0 : headsPerBlock(shape);
  const next = hasNext(shape, gpu) ? nextSource(shape) : undefined;
  return {
    shape,
    suffix,
    forward,
    backward,
    decodeHeadsPerBlock,
    next: next?.name,
    sources: [
      { name: `attention_${suffix}`, from, code: code(shape, forward, forwardKernel(suffix)) },
      { name: `attention_back_${suffix}`, from, code: code(shape, backward, backwardKernels(suffix)) },
      ...(decodeHeadsPerBlock > 0
        ? [{ name: `attention_decode_${decodeSuffix(shape)}`, code: decodeCode(shape, decodeHeadsPerBlock) }]
        : []),
      ...(next ? [next] : []),
    ],
  };
}

/** How many heads of a kv head fit into registers. */
function headsPerBlock({ heads, kvHeads }: Pick<AttentionShape, "heads" | "kvHeads">): number {
  const group = heads / kvHeads;
  return [8, 7, 6, 5, 4, 3, 2, 1].find((n) => group % n === 0)!;
}

function decodeSuffix(shape: AttentionShape): string {
  return `${shape.precision}_${shape.headDim}_${headsPerBlock(shape)}`;
}

function decodeCode(shape: AttentionShape, together: number): string {
  const lanes = 2 ** Math.ceil(Math.log2(shape.headDim / 8));
  const defines = Object.entries({ D: shape.headDim, TOGETHER: together, LANES: lanes });
  return [
    COMMON,
    ...defines.map(([name, value]) => `#define ${name} ${value}`),
    typedef(shape),
    decodeKernel(decodeSuffix(shape)),
  ].join("\n");
}

/** Whether kernels/fused-decode-step.ts supports these heads on this GPU. */
function hasNext({ heads, kvHeads, headDim, precision }: AttentionShape, gpu: AttentionGpu): boolean {
  if (precision !== "bf16" || heads / kvHeads > TILE_QUERIES || (headDim !== 64 && headDim !== 128)) return false;
  return gpu.capability >= 80 && nextShared(headDim) + NEXT_STATIC <= gpu.sharedPerBlock;
}

/** Source of the kernel in kernels/fused-decode-step.ts; the source and the kernel have the same name. */
export function nextSource({ heads, kvHeads, headDim }: AttentionShape): KernelSource {
  const together = heads / kvHeads;
  const suffix = `${headDim}_${together}`;
  const defines = [`#define D ${headDim}`, `#define TOGETHER ${together}`];
  return {
    name: `attention_next_${suffix}`,
    from: 80,
    code: [COMMON, MMA, "#ifndef EMULATED_MMA", COPIES, "#endif", ...defines, nextKernel(suffix)].join("\n"),
  };
}

/** What the division of contexts among blocks depends on: see prefix-sharing.ts. */
export function sharingShape({ heads, kvHeads }: Pick<AttentionShape, "heads" | "kvHeads">, multiprocessors: number) {
  return {
    together: Math.floor(TILE_QUERIES / (heads / kvHeads)),
    blocks: Math.max(1, Math.floor(multiprocessors / kvHeads)),
  };
}

/** The source of `attention_plan`, one for all shapes. */
export const attentionPlanSource: KernelSource = { name: "attention_plan", code: PLAN };

function instructionSetFor({ precision, headDim }: AttentionShape, { capability }: AttentionGpu): InstructionSet {
  if (precision === "f32") return "float";
  return capability === 90 && headDim % 16 === 0 && headDim <= 128 ? "wgmma" : "mma";
}

/** The largest tile shape that fits the GPU's shared memory. */
function tileShape(
  shape: AttentionShape,
  gpu: AttentionGpu,
  instructionSet: InstructionSet,
  pass: "forward" | "backward",
): TileShape {
  const { heads, kvHeads, headDim: d } = shape;
  const rowBytes = instructionSet === "float" ? 4 * (d + 4) : 128 * Math.ceil(d / 64);
  const owned = pass === "forward" ? 1 : 2; // number of tiles for the block's own rows
  for (const [warps, tile, stages] of TILE_SHAPES[instructionSet]) {
    const shared =
      rowBytes * (owned * 16 * warps + stages * 2 * tile) + (owned - 1) * stages * 2 * 4 * tile + 16 * stages;
    if (shared > gpu.sharedPerBlock) continue;
    if (stages > 1 && gpu.capability < 80) continue; // asynchronous copies need capability 8.0
    const together = (heads / kvHeads) % 2 === 0 && warps > 1 ? 2 : 1;
    return { instructionSet, warps, tile, stages, heads: together, shared };
  }
  throw new RangeError(`heads of ${d} do not fit ${gpu.sharedPerBlock} bytes of shared memory`);
}

/** Candidates [warps, tile, stages], best first. */
const WGMMA_SHAPES = [[8, 64, 4]] as const;
const MMA_SHAPES = [
  [8, 64, 2],
  [4, 64, 2],
  [4, 32, 2],
  [4, 32, 1],
] as const;
const FLOAT_SHAPES = [
  [8, 32, 2],
  [8, 32, 1],
  [4, 32, 1],
  [4, 16, 1],
  [2, 16, 1],
  [1, 8, 1],
] as const;
const TILE_SHAPES = { float: FLOAT_SHAPES, mma: MMA_SHAPES, wgmma: WGMMA_SHAPES };

function code(
  shape: AttentionShape,
  { instructionSet, warps, tile, stages, heads }: TileShape,
  kernels: string,
): string {
  const { headDim } = shape;
  const macros = {
    WAY_FLOAT: 0,
    WAY_MMA: 1,
    WAY_WGMMA: 2,
    WAY: `WAY_${instructionSet.toUpperCase()}`,
    D: headDim,
    WARPS: warps,
    TILE: tile,
    STAGES: stages,
    HEADS: heads,
    FORWARD_BLOCKS: 1,
  };
  const defines = Object.entries(macros).map(([name, value]) => `#define ${name} ${value}`);
  return [COMMON, ...defines, typedef(shape), instructions(instructionSet, headDim, tile), PARTS, kernels].join("\n");
}

function typedef({ precision }: AttentionShape): string {
  return `typedef ${precision === "f32" ? "float" : "bf16"} T;`;
}

/** Length of a plan, in i32 elements. */
export function attentionPlanLength(layout: TokenLayout, kernels: AttentionKernels): number {
  const { query, backward, key } = tileCounts(layout, kernels);
  return 2 * (query + backward + key) + 2 * (layout.ranges.length / 3);
}

function tileCounts({ tokens, spanCount }: TokenLayout, { forward, backward }: AttentionKernels) {
  const most = (size: number) => Math.floor(tokens / size) + spanCount;
  return { query: most(queriesOf(forward)), backward: most(queriesOf(backward)), key: most(16 * backward.warps) };
}

/** Queries per head and block. */
function queriesOf({ warps, heads }: TileShape): number {
  return (16 * warps) / heads;
}

/**
 * Builds the plan of a layout in `buffer` (i32, `attentionPlanLength`). It is valid for all layers, forward and
 * backward.
 */
export function planAttention(
  launch: Launch,
  kernels: AttentionKernels,
  layout: TokenLayout,
  buffer: Address,
): AttentionPlan {
  const counts = tileCounts(layout, kernels);
  const at = (elements: number): Address =>
    typeof buffer === "bigint" ? buffer + 4n * BigInt(elements) : buffer + 4 * elements;
  const backwardAt = 2 * counts.query;
  const keyAt = backwardAt + 2 * counts.backward;
  const nextAt = keyAt + 2 * counts.key;
  const plan: AttentionPlan = {
    buffer,
    queryTiles: { at: at(0), count: counts.query },
    backwardTiles: { at: at(backwardAt), count: counts.backward },
    keyTiles: { at: at(keyAt), count: counts.key },
    next: at(nextAt),
    owner: at(nextAt + layout.ranges.length / 3),
  };
  const { forward, backward } = kernels;
  const table = [address(layout.spans), address(layout.ranges), address(layout.rangeRows)];
  const start = (queries: AttentionPlan["queryTiles"], size: number, keys: number) =>
    launch("attention_plan", [1, 1, 1], [PLAN_THREADS, 1, 1], 0, [
      ...table,
      { i32: layout.spanCount },
      { i32: size },
      { i32: 16 * backward.warps },
      { ptr: queries.at },
      { i32: queries.count },
      { ptr: plan.keyTiles.at },
      { i32: keys },
      { ptr: plan.next },
      { ptr: plan.owner },
    ]);
  start(plan.queryTiles, queriesOf(forward), 0);
  start(plan.backwardTiles, queriesOf(backward), counts.key);
  return plan;
}

/** Computes out = softmax(q · kᵀ / √d) · v for every row, and each row's log-sum-exp. */
export function attentionForward(
  launch: Launch,
  kernels: AttentionKernels,
  plan: AttentionPlan,
  layout: TokenLayout,
  io: { readonly q: Buffer; readonly kvCache: Buffer; readonly out: Buffer; readonly lse: Buffer },
): void {
  const { forward, suffix, shape } = kernels;
  launch(
    `attention_forward_${suffix}`,
    [shape.heads / forward.heads, plan.queryTiles.count, 1],
    [32 * forward.warps, 1, 1],
    forward.shared,
    [
      ...[io.q, io.kvCache, io.out, io.lse, layout.spans, layout.ranges].map(address),
      { ptr: plan.queryTiles.at },
      ...sizes(shape),
    ],
  );
}

/** Writes dqkv; `dots` is scratch for [tokens, heads] floats. */
export function attentionBackward(
  launch: Launch,
  kernels: AttentionKernels,
  plan: AttentionPlan,
  layout: TokenLayout,
  io: Readonly<Record<"q" | "kvCache" | "out" | "dOut" | "lse" | "dots" | "dqkv", Buffer>>,
): void {
  const { backward, suffix, shape } = kernels;
  const rows = layout.tokens * shape.heads;
  launch(`attention_dots_${suffix}`, [Math.ceil(rows / DOTS_WARPS), 1, 1], [32 * DOTS_WARPS, 1, 1], 0, [
    ...[io.out, io.dOut, io.dots].map(address),
    { i32: rows },
  ]);
  const block = [32 * backward.warps, 1, 1] as const;
  const common = [io.q, io.kvCache, io.dOut, io.lse, io.dots, io.dqkv, layout.spans, layout.ranges].map(address);
  launch(
    `attention_queries_back_${suffix}`,
    [shape.heads / backward.heads, plan.backwardTiles.count, 1],
    block,
    backward.shared,
    [...common, { ptr: plan.backwardTiles.at }, ...sizes(shape)],
  );
  launch(`attention_keys_back_${suffix}`, [shape.kvHeads, plan.keyTiles.count, 1], block, backward.shared, [
    ...common,
    { ptr: plan.keyTiles.at },
    { ptr: plan.next },
    { ptr: plan.owner },
    ...sizes(shape),
  ]);
}

/** Number of parts that each context is split into to occupy the GPU: many for one sequence, one for a full batch. */
export function decodeSplits(rows: number, shape: AttentionShape, multiprocessors: number): number {
  const blocks = (rows * shape.heads) / headsPerBlock(shape);
  return Math.max(1, Math.min(DECODE_SPLITS, Math.round((2 * multiprocessors) / blocks)));
}

/** Size of a decode step's scratch: floats, and counters (i32) that must be 0 before the first launch. */
export function decodeScratch(rows: number, splits: number, kernels: AttentionKernels) {
  const { heads, headDim } = kernels.shape;
  return { partials: rows * heads * splits * (headDim + 2), counters: (rows * heads) / kernels.decodeHeadsPerBlock };
}

/**
 * Attention for one new token per span, over `rows` spans (those without a row are skipped); can be captured in a
 * graph.
 */
export function attentionDecode(
  launch: Launch,
  kernels: AttentionKernels,
  rows: number,
  splits: number,
  tables: Pick<TokenLayout, "spans" | "ranges">,
  io: Readonly<Record<"q" | "kvCache" | "out" | "partials" | "counters", Buffer>>,
): void {
  const { shape, decodeHeadsPerBlock } = kernels;
  launch(
    `attention_decode_${decodeSuffix(shape)}`,
    [shape.heads / decodeHeadsPerBlock, splits, rows],
    [DECODE_THREADS, 1, 1],
    0,
    [
      ...[io.q, io.kvCache, io.out, io.partials, io.counters, tables.spans, tables.ranges].map(address),
      ...sizes(shape),
    ],
  );
}

/**
 * Size of the scratch for kernels/fused-decode-step.ts: floats, and counters (i32) that must be 0 before the first
 * launch.
 */
export function nextScratch(rows: number, shape: AttentionShape, multiprocessors: number) {
  const { tiles, splits } = sharingCut(rows, sharingShape(shape, multiprocessors));
  const blocks = tiles * shape.kvHeads;
  return { partials: splits * blocks * TILE_QUERIES * (shape.headDim + 4), counters: blocks };
}

/** Runs one decoding step of `rows` rows after the qkv matmul: norms, rotary embedding, KV cache and attention. */
export function attentionNext(
  launch: Launch,
  { next, shape }: AttentionKernels,
  rows: number,
  multiprocessors: number,
  eps: number,
  io: Readonly<
    Record<"qkv" | "kvCache" | "out" | "partials" | "counters" | "work" | "ranges" | "positions" | "rotary", Buffer>
  >,
  vectors: readonly KernelArg[],
): void {
  const { heads, kvHeads, headDim } = shape;
  const { tiles, splits } = sharingCut(rows, sharingShape(shape, multiprocessors));
  const tables = [io.work, io.ranges, io.positions, io.rotary];
  launch(next!, [kvHeads, tiles * splits, 1], [32 * NEXT_WARPS, 1, 1], nextShared(headDim), [
    ...[io.qkv, io.kvCache, io.out, io.partials, io.counters, ...tables].map(address),
    ...vectors,
    ...[{ i32: heads }, { i32: kvHeads }, { i32: splits }, { f32: 1 / Math.sqrt(headDim) }, { f32: eps }],
  ]);
}

function sizes({ heads, kvHeads, headDim }: AttentionShape): KernelArg[] {
  return [{ i32: heads }, { i32: kvHeads }, { f32: 1 / Math.sqrt(headDim) }];
}

function address(buffer: Buffer): KernelArg {
  return { ptr: buffer.address };
}
