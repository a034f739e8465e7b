// The WebGPU device: WGSL kernels on one queue, in single precision. Every sum has a fixed order, so results have the
// same bits each time on one adapter.
import { OOMError, SqlEnvError } from "../../../errors.ts";
import type { AdamStep, Buffer, CapturedGraph, Decoding, Dtype, TokenLayout, Weight } from "../device.ts";
import type {
  AttentionArgs,
  AttentionBackwardArgs,
  LinearBackwardArgs,
  LogProbsArgs,
  LogProbsBackwardArgs,
  RmsNormArgs,
  RmsNormBackwardArgs,
  RotateArgs,
  RotateBackwardArgs,
  SampleArgs,
} from "../device-args.ts";
import { type HeadKernels, LmHead } from "../lm-head.ts";
import { Pool } from "../pool.ts";
import {
  type Adapter,
  type Buffers,
  describeAdapter,
  type Numbers,
  type WebGpuDevice,
  type WebGpuOptions,
} from "./device.ts";
import {
  ATTENTION_STATISTICS,
  attentionKeyBackwardProgram,
  attentionProgram,
  attentionQueryBackwardProgram,
} from "./kernels/attention.ts";
import { ADVANCE, UNIFORMS } from "./kernels/decode.ts";
import {
  ADAMW,
  ADD_TO,
  FILL,
  GATHER,
  SCATTER_ADD,
  SQUARE_BLOCK,
  SUM_SQUARES,
  SWIGLU,
  SWIGLU_BACKWARD,
} from "./kernels/elementwise.ts";
import { LOG_PROB, LOG_PROB_BACKWARD, SAMPLE } from "./kernels/head.ts";
import {
  type MatmulKind,
  matmulProgram,
  SKINNY_COLUMNS,
  SKINNY_ROWS,
  skinnyProgram,
  TILES,
  type Tile,
} from "./kernels/matmul.ts";
import {
  BIAS_BACKWARD,
  HEAD_SCALE_BACKWARD,
  NORM_SCALE_BACKWARD,
  RMS_NORM_BACKWARD,
  rmsNormProgram,
} from "./kernels/norm.ts";
import { HEAD_NORM_BACKWARD, rotateProgram, storeProgram, UNROTATE } from "./kernels/rotary.ts";
import type { Program } from "./program.ts";
import type { Place, Queue } from "./queue.ts";
import { UNIFORM_WORDS } from "./server.ts";

/** An address is a buffer's id times this, plus bytes. */
const SPACE = 2 ** 32;
/** A binding's offset must be a multiple of this. */
const ALIGNMENT = 256;
const MAX_GROUPS = 65_535; // per dimension, on every adapter
/** Logits computed at once and saved for backward: 64 MB. */
const CHUNK_LOGITS = 16_000_000;
/** Free bytes that the pool keeps, in addition to as many as are in use. */
const KEPT_BYTES = 512 * 2 ** 20;
/** Workgroups from which a larger tile is used, so that the GPU stays occupied. */
const MANY_TILES = 64;

interface Matrix {
  readonly buffer: Buffer;
  readonly stride: number;
}

/** The WebGPU device; create one with `createWebGpu` or `createWebGpuInBrowser`. */
export class WebGpu implements WebGpuDevice {
  readonly name = "webgpu";
  readonly variant: string;
  readonly threads = 1;
  readonly activations = "f32";
  readonly adapter: Adapter;
  readonly #queue: Queue;
  readonly #pool: Pool;
  readonly #head: LmHead;
  readonly #scopes: number[][] = [];
  readonly #programs = new Map<string, Program>();
  readonly #words = new Uint32Array(UNIFORM_WORDS);
  readonly #floats = new Float32Array(this.#words.buffer);
  /** During a capture, allocations that will belong to the graph. */
  #held: number[] | undefined;

  constructor(queue: Queue, adapter: Adapter, { memory: most = Number.POSITIVE_INFINITY }: WebGpuOptions = {}) {
    this.#queue = queue;
    this.adapter = adapter;
    this.variant = `webgpu ${describeAdapter(adapter)}`;
    this.#pool = new Pool({
      tryAlloc: (bytes) => {
        if (this.#pool.reserved + bytes > most) return undefined;
        if (this.#pool.reserved > 2 * this.#pool.used + KEPT_BYTES && !this.#held) this.#pool.trim();
        const { maxBufferSize } = adapter.limits; // which the pool's rounding may exceed
        return queue.create(Math.min(bytes, maxBufferSize - (maxBufferSize % 4))) * SPACE;
      },
      free: (address) => queue.destroy(address / SPACE),
      memoryLeft: () => most - this.#pool.reserved,
      synchronize: () => this.#held === undefined,
    });
    this.#head = new LmHead(this, this.#headKernels(), { chunk: CHUNK_LOGITS, saved: CHUNK_LOGITS });
  }

  get memory() {
    const { used, peak, reserved } = this.#pool;
    return { used, peak, reserved };
  }

  get decoding(): Decoding {
    return {
      capture: (work) => this.#capture(work),
      uniforms: (seeds, positions, out, rows) => this.#each(UNIFORMS, rows, { seeds, positions, out }),
      advance: (tokens, ids, layout) => this.#advance(tokens, ids, layout),
      readLater: ({ address, length }) => {
        const wait = this.#queue.readLater(placeOf(address), 4 * length);
        return () => new Int32Array(wait());
      },
    };
  }

  alloc(dtype: Dtype, length: number): Buffer {
    const { maxBufferSize } = this.adapter.limits;
    if (4 * length > maxBufferSize) {
      throw new OOMError({
        what: "a buffer is larger than the GPU allows",
        value: `${mib(4 * length)} MiB, at most ${mib(maxBufferSize)}`,
        remedy: "choose a smaller model or batch, or --device cpu",
      });
    }
    const address = this.#pool.alloc(Math.max(4, 4 * length));
    this.#scopes.at(-1)?.push(address);
    return { dtype, length, address };
  }

  free({ address }: Buffer): void {
    this.#release(address);
  }

  scope<T>(work: () => T): T {
    const mine: number[] = [];
    this.#scopes.push(mine);
    try {
      return work();
    } finally {
      this.#scopes.pop();
      this.#head.forget(mine);
      for (const address of mine) this.#release(address);
    }
  }

  part({ dtype, address }: Buffer, offset: number, length: number): Buffer {
    return { dtype, length, address: address + 4 * offset };
  }

  write(buffer: Buffer, data: Float32Array | Int32Array): void {
    if (data.length > buffer.length) throw new RangeError(`${data.length} elements into a buffer of ${buffer.length}`);
    this.#queue.upload(placeOf(buffer.address), new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }

  read({ dtype, address, length }: Buffer): Float32Array | Int32Array {
    const bytes = length === 0 ? new ArrayBuffer(0) : this.#queue.read(placeOf(address), 4 * length);
    return dtype === "i32" ? new Int32Array(bytes) : new Float32Array(bytes);
  }

  fill(buffer: Buffer, value: number): void {
    if (buffer.length === 0) return;
    const source = buffer.dtype === "i32" ? Int32Array.of(value) : Float32Array.of(value);
    const bits = new Uint32Array(source.buffer)[0]!;
    if (bits === 0) this.#queue.clear(placeOf(buffer.address), 4 * buffer.length);
    else this.#inPieces(buffer.length, [buffer], (count, [x]) => this.#each(FILL, count, { x: x! }, { bits }));
  }

  copy(from: Buffer, to: Buffer): void {
    if (from.length === 0) return;
    const [source, target] = [placeOf(from.address), placeOf(to.address)];
    if (source.id !== target.id) {
      this.#queue.copy(source, target, 4 * from.length);
      return;
    }
    this.scope(() => {
      const between = this.alloc(from.dtype, from.length);
      this.copy(from, between);
      this.copy(between, to);
    });
  }

  changed(): void {
    // Nothing to update: this device keeps no converted copies of weights.
  }

  forget(): void {
    // Nothing to free: this device keeps no converted copies of weights.
  }

  embed(weight: Weight, ids: Buffer, out: Buffer, rows: number): void {
    this.gather(weight.value, ids, out, rows, weight.columns);
  }

  embedBackward(weight: Weight, ids: Buffer, dOut: Buffer, rows: number): void {
    if (weight.grad) this.scatterAdd(dOut, ids, weight.grad, rows, weight.columns);
  }

  outStride(weight: Weight): number {
    return (weight.rows + 7) & ~7;
  }

  linear(weight: Weight, x: Buffer, out: Buffer, rows: number): void {
    const { rows: n, columns: k, value } = weight;
    const c = { buffer: out, stride: this.outStride(weight) };
    this.#matmul({ a: "alongK", b: "alongK", adds: false }, [rows, n, k], matrix(x, k), matrix(value, k), c);
  }

  linearAdd(weight: Weight, x: Buffer, stream: Buffer, rows: number): boolean {
    const { rows: n, columns: k, value } = weight;
    this.#matmul({ a: "alongK", b: "alongK", adds: true }, [rows, n, k], matrix(x, k), matrix(value, k), {
      buffer: stream,
      stride: n,
    });
    return true;
  }

  linearBackward({ weight, x, dy, dx, rows, add = false }: LinearBackwardArgs): void {
    const { rows: n, columns: k, grad, value } = weight;
    const d = { buffer: dy, stride: this.outStride(weight) };
    if (dx) this.#matmul({ a: "alongK", b: "acrossK", adds: add }, [rows, k, n], d, matrix(value, k), matrix(dx, k));
    if (grad) this.#matmul({ a: "acrossK", b: "acrossK", adds: true }, [n, k, rows], d, matrix(x, k), matrix(grad, k));
  }

  rmsNorm({ x, residual, scale, out, rstd, rows, eps, into = x }: RmsNormArgs): void {
    if (into.address !== x.address) this.copy(x, into);
    const width = scale.value.length;
    const name = residual ? "rmsNorm_residual" : "rmsNorm";
    const program = this.#program(name, () => rmsNormProgram(residual !== null));
    const buffers = { ...(residual && { residual }), scale: scale.value, into, out, rstd };
    this.#run(program, rows, buffers, { rows, width, eps });
  }

  rmsNormBackward({ x, scale, rstd, dOut, dx, rows }: RmsNormBackwardArgs): void {
    const width = scale.value.length;
    if (scale.grad) this.#columns(NORM_SCALE_BACKWARD, { dOut, x, rstd, sums: scale.grad }, { rows, width });
    this.#run(RMS_NORM_BACKWARD, rows, { dOut, x, scale: scale.value, rstd, dx }, { rows, width });
  }

  rotate({ qkv, norms, q, rstd, kvCache, layout, rotary, shape, bias = null }: RotateArgs): void {
    const { tokens, positions, blockAddresses, capacities, indices } = layout;
    const { heads, kvHeads, headDim, eps } = shape;
    const vectors = norms ? "norms" : bias ? "bias" : "neither";
    const sizes = { tokens, heads, kvHeads, headDim };
    const added = bias && { bias: bias.value };
    this.scope(() => {
      const count = tokens * kvHeads * headDim;
      const k = this.alloc("f32", count);
      const rotate = this.#program(`rotate_${vectors}`, () => rotateProgram(vectors));
      const scales = norms && { qScale: norms.q.value, kScale: norms.k.value, rstd };
      const buffers = { qkv, positions, rotary, ...scales, ...added, q, k };
      this.#run(rotate, tokens * (heads + kvHeads), buffers, { ...sizes, eps });
      const store = this.#program(bias ? "store_bias" : "store", () => storeProgram(bias !== null));
      this.#each(store, count, { k, qkv, blockAddresses, capacities, indices, ...added, kvCache }, sizes);
    });
  }

  rotateBackward({ dqkv, qkv, norms, rstd, layout, rotary, shape, bias = null }: RotateBackwardArgs): void {
    const { tokens, positions } = layout;
    const { heads, kvHeads, headDim } = shape;
    const sizes = { tokens, heads, kvHeads, headDim };
    const normed = heads + kvHeads;
    this.#run(UNROTATE, tokens * normed, { positions, rotary, dqkv }, sizes);
    if (bias?.grad) {
      const width = bias.grad.length;
      this.#columns(BIAS_BACKWARD, { dOut: dqkv, sums: bias.grad }, { rows: tokens, width });
    }
    if (!norms) return;
    const stride = (heads + 2 * kvHeads) * headDim;
    for (const [scale, first, count] of [
      [norms.q, 0, heads],
      [norms.k, heads, kvHeads],
    ] as const) {
      if (!scale.grad) continue;
      const numbers = { rows: tokens, width: headDim, first, count, normed, stride };
      this.#columns(HEAD_SCALE_BACKWARD, { dqkv, qkv, rstd, sums: scale.grad }, numbers);
    }
    const buffers = { qkv, rstd, qScale: norms.q.value, kScale: norms.k.value, dqkv };
    this.#run(HEAD_NORM_BACKWARD, tokens * normed, buffers, sizes);
  }

  attention({ q, kvCache, out, lse, layout, shape }: AttentionArgs): void {
    const { heads, kvHeads, headDim } = shape;
    const { tokens, spans, ranges, spanCount } = layout;
    const program = this.#program(`attention_${headDim}`, () => attentionProgram(headDim));
    const numbers = { tokens, heads, kvHeads, spanCount, scale: 1 / Math.sqrt(headDim) };
    this.scope(() => {
      const buffers = { q, kvCache, spans, ranges, out, lse: lse ?? this.alloc("f32", tokens * heads) };
      this.#run(program, tokens * heads, buffers, numbers);
    });
  }

  attentionBackward({ q, kvCache, out, dOut, lse, dqkv, layout, shape }: AttentionBackwardArgs): void {
    const { heads, kvHeads, headDim } = shape;
    const { tokens, spans, ranges, rangeRows, spanCount } = layout;
    const numbers = { tokens, heads, kvHeads, spanCount, scale: 1 / Math.sqrt(headDim) };
    const count = tokens * heads;
    this.scope(() => {
      const statistics = this.alloc("f32", 2 * count);
      const sizes = { count, headDim };
      this.#run(ATTENTION_STATISTICS, Math.ceil(count / 64), { out, dOut, lse, statistics }, sizes);
      const inputs = { q, kvCache, dOut, statistics, spans, ranges };
      const queries = this.#program(`attentionQuery_${headDim}`, () => attentionQueryBackwardProgram(headDim));
      this.#run(queries, count, { ...inputs, dqkv }, numbers);
      const keys = this.#program(`attentionKey_${headDim}`, () => attentionKeyBackwardProgram(headDim));
      this.#run(keys, tokens * kvHeads, { ...inputs, rangeRows, dqkv }, numbers);
    });
  }

  swiGlu(gateUp: Buffer, out: Buffer, rows: number, width: number): void {
    this.#each(SWIGLU, rows * width, { gateUp, out }, { width });
  }

  swiGluBackward(gateUp: Buffer, dOut: Buffer, dGateUp: Buffer, rows: number, width: number): void {
    if (dGateUp.address !== gateUp.address) {
      this.#each(SWIGLU_BACKWARD, rows * width, { gateUp, dOut, dGateUp }, { width });
      return;
    }
    this.scope(() => {
      const result = this.alloc("f32", 2 * rows * width);
      this.swiGluBackward(gateUp, dOut, result, rows, width);
      this.copy(result, dGateUp);
    });
  }

  gather(x: Buffer, ids: Buffer, out: Buffer, rows: number, width: number): void {
    this.#each(GATHER, rows * width, { x, ids, out }, { width });
  }

  scatterAdd(y: Buffer, ids: Buffer, x: Buffer, rows: number, width: number): void {
    this.#run(SCATTER_ADD, rows, { y, ids, x }, { rows, width });
  }

  addTo(x: Buffer, y: Buffer): void {
    this.#inPieces(x.length, [x, y], (count, [x, y]) => this.#each(ADD_TO, count, { x: x!, y: y! }));
  }

  logProbs(args: LogProbsArgs): void {
    this.#head.logProbs(args, { saves: this.#scopes.length > 0 });
  }

  logProbsBackward(args: LogProbsBackwardArgs): void {
    this.#head.logProbsBackward(args);
  }

  sample({ logits, vocabulary, stride, rows, draw, out }: SampleArgs): void {
    const { temperatures, uniforms } = draw;
    const numbers = { rows, vocabulary, stride };
    this.scope(() => {
      const both = this.alloc("i32", 2 * rows);
      const buffers = { logits, temperatures, uniforms, out: both };
      this.#run(SAMPLE, rows, buffers, { ...numbers, logpAt: rows });
      this.copy(this.part(both, 0, rows), out.tokens);
      this.copy(this.part(both, rows, rows), out.logp);
    });
  }

  adamW(value: Buffer, grad: Buffer, m: Buffer, v: Buffer, step: AdamStep): void {
    const { learning_rate, beta1, beta2, eps, weight_decay, gradient_scale: scale } = step;
    const [correction1, correction2] = [1 - beta1 ** step.step, 1 - beta2 ** step.step];
    const betas = { b1: beta1, c1: 1 - beta1, b2: beta2, c2: 1 - beta2 };
    const decay = 1 - learning_rate * weight_decay;
    const factors = { decay, step: learning_rate / correction1, root: 1 / Math.sqrt(correction2), eps, scale };
    this.#inPieces(value.length, [value, grad, m, v], (count, [value, grad, m, v]) =>
      this.#each(ADAMW, count, { grad: grad!, value: value!, m: m!, v: v! }, { ...betas, ...factors }),
    );
  }

  sumSquares(x: Buffer): number {
    return this.scope(() => {
      const blocks = Math.ceil(x.length / SQUARE_BLOCK);
      const sums = this.alloc("f32", blocks);
      let at = 0;
      this.#inPieces(x.length, [x], (count, [x]) => {
        const groups = Math.ceil(count / SQUARE_BLOCK);
        this.#run(SUM_SQUARES, groups, { x: x!, sums: this.part(sums, at, groups) }, { count });
        at += groups;
      });
      return (this.read(sums) as Float32Array).reduce((total, sum) => total + sum, 0);
    });
  }

  synchronize(): void {
    const probe = this.scope(() => this.alloc("f32", 1));
    this.#queue.read(placeOf(probe.address), 4);
  }

  runProgram(program: Program, groups: number, buffers: Buffers, numbers: Numbers): void {
    this.#dispatch(program, [groups, 1], buffers, numbers);
  }

  close(): void {
    this.#queue.close();
  }

  #release(address: number): void {
    if (this.#held) this.#held.push(address);
    else this.#pool.free(address);
  }

  #capture(work: () => void): CapturedGraph {
    const held: number[] = [];
    const free = () => {
      for (const address of held) this.#pool.free(address);
    };
    this.#held = held;
    try {
      const captured = this.#queue.capture(() => this.scope(work));
      return { launch: () => this.#queue.replay(captured), free };
    } catch (error) {
      this.#held = undefined;
      free();
      throw error;
    } finally {
      this.#held = undefined;
    }
  }

  #advance(tokens: Buffer, ids: Buffer, layout: TokenLayout): void {
    const { tokens: rows, positions, capacities, indices, spans, ranges } = layout;
    const tables = { ids, positions, capacities, indices, spans, ranges };
    const base = placeOf(ids.address).id;
    const offsets = Object.entries(tables).map(([name, { address }]) => {
      const { id, offset } = placeOf(address);
      if (id !== base) throw new Error("the tables of a decoding step must be parts of one buffer");
      return [name, offset / 4];
    });
    const all: Buffer = { dtype: "i32", address: base * SPACE, length: Math.max(...endsOf(Object.values(tables))) };
    this.#each(ADVANCE, rows, { tokens, tables: all }, Object.fromEntries(offsets));
  }

  #headKernels(): HeadKernels {
    return {
      logProb: ({ logits, stride, rows, vocabulary, inverseTemperature: inverse }, buffers) =>
        this.#run(LOG_PROB, rows, { logits, ...buffers }, { rows, vocabulary, stride, inverse }),
      logProbBackward: ({ logits, stride, rows, vocabulary, inverseTemperature: inverse }, buffers) => {
        this.#run(LOG_PROB_BACKWARD, rows, { ...buffers, logits }, { rows, vocabulary, stride, inverse });
        return logits;
      },
    };
  }

  /** C = A · B with m, n and k. */
  #matmul(kind: MatmulKind, [m, n, k]: readonly [number, number, number], a: Matrix, b: Matrix, c: Matrix): void {
    if (m === 0 || n === 0) return;
    const buffers = { a: a.buffer, b: b.buffer, c: c.buffer };
    const strides = { aStride: a.stride, bStride: b.stride, cStride: c.stride };
    if (m <= SKINNY_ROWS && kind.a === "alongK" && kind.b === "alongK") {
      const skinny = this.#program(`skinny_${m}_${kind.adds}`, () => skinnyProgram(m, kind.adds));
      this.#dispatch(skinny, [Math.ceil(n / SKINNY_COLUMNS), 1], buffers, { n, k, ...strides });
      return;
    }
    const count = ({ rows, columns }: Tile) => Math.ceil(m / rows) * Math.ceil(n / columns);
    const tile = m <= 32 ? TILES.low : count(TILES.large) >= MANY_TILES ? TILES.large : TILES.medium;
    const name = `matmul_${kind.a}_${kind.b}_${kind.adds}_${tile.rows}`;
    const program = this.#program(name, () => matmulProgram(kind, tile));
    const groups = [Math.ceil(n / tile.columns), Math.ceil(m / tile.rows)] as const;
    this.#dispatch(program, groups, buffers, { m, n, k, ...strides });
  }

  /** The kernel of this name, generated when first used. */
  #program(name: string, make: () => Program): Program {
    let found = this.#programs.get(name);
    if (!found) {
      found = make();
      this.#programs.set(name, found);
    }
    return found;
  }

  /** Runs an elementwise kernel. */
  #each(program: Program, count: number, buffers: Buffers, numbers: Numbers = {}): void {
    this.#run(program, Math.ceil(count / 256), buffers, { count, ...numbers });
  }

  /** Runs a kernel that adds up columns. */
  #columns(program: Program, buffers: Buffers, numbers: Numbers & { readonly width: number }): void {
    this.#dispatch(program, [Math.ceil(numbers.width / 32), 1], buffers, numbers);
  }

  /** Runs a kernel whose workgroups take the next item until there are none. */
  #run(program: Program, items: number, buffers: Buffers, numbers: Numbers): void {
    if (items > 0) this.#dispatch(program, [Math.min(items, MAX_GROUPS), 1], buffers, numbers);
  }

  /**
   * WebGPU forbids a kernel to write a buffer that it also reads by another binding. Where two arguments are parts of
   * one buffer, the kernel gets a copy.
   */
  #dispatch(program: Program, groups: readonly [x: number, y: number], buffers: Buffers, numbers: Numbers): void {
    const { reads, writes, ints, floats } = program;
    const written = new Set<number>();
    for (const name of writes) {
      const { id } = placeOf(buffers[name]!.address);
      if (written.has(id)) throw new Error(`${program.name} would write two parts of one buffer`);
      written.add(id);
    }
    const copied = reads.filter((name) => written.has(placeOf(buffers[name]!.address).id));
    if (copied.length > 0) {
      this.scope(() => {
        const copies = copied.map((name) => {
          const { dtype, length } = buffers[name]!;
          const copy = this.alloc(dtype, length);
          this.copy(buffers[name]!, copy);
          return [name, copy];
        });
        this.#dispatch(program, groups, { ...buffers, ...Object.fromEntries(copies) }, numbers);
      });
      return;
    }
    const words = this.#words;
    const bindings: number[] = [];
    let word = 0;
    const { maxStorageBufferBindingSize: most } = this.adapter.limits;
    for (const name of [...reads, ...writes]) {
      const { address, length } = buffers[name]!;
      const { id, offset } = placeOf(address);
      const start = offset - (offset % ALIGNMENT);
      const bytes = offset - start + 4 * Math.max(1, length);
      if (bytes > most) {
        throw new SqlEnvError("webgpu", {
          what: "a kernel's argument is larger than the GPU allows",
          value: `${program.name} ${name}: ${mib(bytes)} MiB, at most ${mib(most)}`,
          remedy: "choose a smaller model or batch, or --device cpu",
        });
      }
      bindings.push(id, start, bytes);
      words[word++] = (offset - start) / 4;
    }
    for (const name of ints) words[word++] = numbers[name]!;
    for (const name of floats) this.#floats[word++] = numbers[name]!;
    this.#queue.dispatch(program, groups, bindings, words.subarray(0, word));
  }

  /** Splits equally long buffers into pieces small enough for one binding, and calls `work` for each piece. */
  #inPieces(length: number, buffers: readonly Buffer[], work: (count: number, parts: readonly Buffer[]) => void): void {
    const { maxStorageBufferBindingSize } = this.adapter.limits;
    const most = Math.floor((maxStorageBufferBindingSize - ALIGNMENT) / 4 / SQUARE_BLOCK) * SQUARE_BLOCK;
    for (let at = 0; at < length; at += most) {
      const count = Math.min(most, length - at);
      work(
        count,
        buffers.map((buffer) => this.part(buffer, at, count)),
      );
    }
  }
}

function placeOf(address: number): Place {
  const id = Math.floor(address / SPACE);
  return { id, offset: address - id * SPACE };
}

function matrix(buffer: Buffer, stride: number): Matrix {
  return { buffer, stride };
}

/** Where each buffer ends, in elements from the start of the GPU buffer that it is a part of. */
function endsOf(buffers: readonly Buffer[]): number[] {
  return buffers.map(({ address, length }) => placeOf(address).offset / 4 + length);
}

function mib(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
