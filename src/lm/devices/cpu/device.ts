// The CPU device: WebAssembly kernels over one memory, with or without threads.
import { OOMError, SqlEnvError } from "../../../errors.ts";
import type { AdamStep, BlockAddress, Buffer, Device, Dtype, KvShape, TokenLayout, Weight } from "../device.ts";
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
import { CPU_CHUNK_LOGITS, type HeadKernels, LmHead } from "../lm-head.ts";
import { createAllocator } from "./allocator.ts";
import { KERNELS } from "./kernels.generated.ts";
import {
  type KernelExports,
  type ObserveKernel,
  type StartWorker,
  singleThread,
  startThreadPool,
  type ThreadPool,
} from "./thread-pool.ts";
import type { Bound } from "./x64/bind.ts";
import type { InstructionSet } from "./x64/instruction-set.ts";
import { sameBits } from "./x64/self-check.ts";

export type { ObserveKernel } from "./thread-pool.ts";

export interface CpuOptions {
  /** @default 1 */
  readonly threads?: number;
  /** "relaxed" requires a runtime with relaxed SIMD. @default relaxed if available, else plain */
  readonly simd?: "plain" | "relaxed";
  /** Starts a worker; without it there is one thread, and memory is not shared. */
  readonly startWorker?: StartWorker;
  /**
   * Machine-code kernels that replace WebAssembly ones of the same names; used only if a self-check finds equal bits.
   */
  readonly native?: ((memory: WebAssembly.Memory) => Bound) | null;
  /** Called after every kernel with its times. */
  readonly observe?: ObserveKernel;
}

export interface CpuDevice extends Device {
  /** Bytes in use now, and the peak so far. */
  readonly memory: { readonly used: number; readonly peak: number };
  /** Whether matmul, attention and SwiGLU run as machine code rather than WebAssembly; the bits are the same. */
  readonly native: boolean;
  /** The instruction set of that machine code. */
  readonly instructionSet: InstructionSet | null;
}

const PAGE = 65_536;
const MAX_PAGES = 65_536; // 4 GiB: the range of 32-bit addresses
const FORWARD_BLOCK = 16; // maximum queries per task, as in wasm/attention.ts
const WASM_BLOCK = 4; // the same without machine code: one tile
const BACKWARD_BLOCK = 32; // queries per task, as in wasm/attention-backward.ts
const LIST = 1_024; // floats in a thread's command list, as in wasm/host-commands.ts
const GROW_STEP = 256; // minimum pages to grow by, since growing is slow

/** Creates a CPU device; start.node.ts adds threads under Node. */
export function createCpuDevice({ threads = 1, simd, startWorker, native, observe }: CpuOptions = {}): CpuDevice {
  const shared = startWorker !== undefined && threads > 1;
  const { module, variant } = compile(simd, shared);
  const memory = new WebAssembly.Memory({ initial: 2, maximum: MAX_PAGES, shared });
  const bound = variant === "cpu-relaxed" && native ? attempt(() => native(memory)) : undefined;
  const abort = () => {
    throw new Error("kernel aborted");
  };
  const host = bound?.imports ?? { runCommands: abort };
  const instance = new WebAssembly.Instance(module, { env: { memory, abort, ...host } });
  const { useHost, ...wasm } = Object.fromEntries(
    Object.entries(instance.exports).filter(([, value]) => typeof value === "function"),
  ) as KernelExports;
  const isNative = bound !== undefined && attempt(() => sameBits(memory, wasm, bound.kernels, useHost!, PAGE)) === true;
  if (!isNative) useHost!(0);
  const kernels = isNative ? { ...wasm, ...bound.kernels } : wasm;
  const pool = shared
    ? startThreadPool(threads, module, memory, kernels, startWorker, { native: isNative, observe })
    : singleThread(kernels, observe);
  return new Cpu(memory, pool, variant, isNative ? bound.instructionSet : null);
}

/** Returns the result of `work`, or undefined if it throws: WebAssembly is the fallback. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function compile(
  simd: "plain" | "relaxed" | undefined,
  shared: boolean,
): { module: WebAssembly.Module; variant: string } {
  const relaxed = decode(shared ? KERNELS.relaxedShared : KERNELS.relaxed);
  const isRelaxed = simd === "relaxed" || (simd === undefined && WebAssembly.validate(relaxed));
  const bytes = isRelaxed ? relaxed : decode(shared ? KERNELS.plainShared : KERNELS.plain);
  if (!WebAssembly.validate(bytes)) {
    throw new SqlEnvError("no_simd", {
      what: `this runtime has no WebAssembly ${isRelaxed ? "relaxed " : ""}SIMD`,
      remedy: isRelaxed ? 'use simd: "plain"' : "use Node 20 or a current browser",
    });
  }
  return { module: new WebAssembly.Module(bytes), variant: `cpu-${isRelaxed ? "relaxed" : "plain"}` };
}

function decode(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** Packed copies of a weight, in panels for x · Wᵀ and for dy · W; made when first needed after a change. */
interface Packed {
  forward: number | undefined;
  backward: number | undefined;
  stale: { forward: boolean; backward: boolean };
}

class Cpu implements CpuDevice {
  readonly name = "cpu";
  readonly variant: string;
  readonly threads: number;
  readonly native: boolean;
  readonly instructionSet: InstructionSet | null;
  readonly activations = "f32";
  readonly #memory: WebAssembly.Memory;
  readonly #pool: ThreadPool;
  readonly #allocator;
  readonly #packed = new Map<Weight, Packed>();
  readonly #scopes: number[][] = [];
  readonly #head: LmHead;
  #floats: Float32Array;
  #ints: Int32Array;

  constructor(memory: WebAssembly.Memory, pool: ThreadPool, variant: string, instructionSet: InstructionSet | null) {
    this.#memory = memory;
    this.native = instructionSet !== null;
    this.instructionSet = instructionSet;
    this.#pool = pool;
    this.variant = variant;
    this.threads = pool.size;
    this.#allocator = createAllocator(PAGE, (end) => this.#grow(end)); // the first page holds the module's constants
    this.#floats = new Float32Array(memory.buffer);
    this.#ints = new Int32Array(memory.buffer);
    this.#head = new LmHead(this, this.#headKernels(), { chunk: CPU_CHUNK_LOGITS, saved: CPU_CHUNK_LOGITS });
  }

  get memory() {
    return { used: this.#allocator.used, peak: this.#allocator.peak };
  }

  alloc(dtype: Dtype, length: number): Buffer {
    const address = this.#allocator.alloc(4 * length);
    this.#scopes.at(-1)?.push(address);
    return { dtype, length, address };
  }

  free(buffer: Buffer): void {
    this.#allocator.free(buffer.address);
  }

  scope<T>(work: () => T): T {
    const mine: number[] = [];
    this.#scopes.push(mine);
    try {
      return work();
    } finally {
      this.#scopes.pop();
      this.#head.forget(mine);
      for (const address of mine) this.#allocator.free(address);
    }
  }

  part({ dtype, address }: Buffer, offset: number, length: number): Buffer {
    return { dtype, length, address: address + 4 * offset };
  }

  write(buffer: Buffer, data: Float32Array | Int32Array): void {
    if (data.length > buffer.length) throw new RangeError(`${data.length} elements into a buffer of ${buffer.length}`);
    this.#viewOf(buffer.dtype).set(data, buffer.address >>> 2);
  }

  read({ dtype, address, length }: Buffer): Float32Array | Int32Array {
    return this.#viewOf(dtype).slice(address >>> 2, (address >>> 2) + length);
  }

  fill({ dtype, address, length }: Buffer, value: number): void {
    this.#viewOf(dtype).fill(value, address >>> 2, (address >>> 2) + length);
  }

  copy(from: Buffer, to: Buffer): void {
    this.#floats.copyWithin(to.address >>> 2, from.address >>> 2, (from.address >>> 2) + from.length);
  }

  changed(weight: Weight): void {
    const packed = this.#packed.get(weight);
    if (packed) packed.stale = { forward: true, backward: true };
  }

  forget(weight: Weight): void {
    const packed = this.#packed.get(weight);
    for (const address of [packed?.forward, packed?.backward]) if (address !== undefined) this.#allocator.free(address);
    this.#packed.delete(weight);
  }

  embed(weight: Weight, ids: Buffer, out: Buffer, rows: number): void {
    this.#run("embed", weight.value, ids, out, rows, weight.columns);
  }

  embedBackward(weight: Weight, ids: Buffer, dOut: Buffer, rows: number): void {
    if (weight.grad) this.#run("embedBackward", dOut, ids, weight.grad, rows, weight.columns);
  }

  outStride(weight: Weight): number {
    return (weight.rows + 7) & ~7;
  }

  linear(weight: Weight, x: Buffer, out: Buffer, rows: number): void {
    const { rows: n, columns: k } = weight;
    const packed = this.#pack(weight, "forward");
    this.#run("gemm", x, 4 * k, 4, packed, out, 4 * this.outStride(weight), rows, n, k, 0);
  }

  linearBackward({ weight, x, dy, dx, rows, add = false }: LinearBackwardArgs): void {
    const { rows: n, columns: k, grad } = weight;
    const stride = 4 * this.outStride(weight);
    if (dx) this.#run("gemm", dy, stride, 4, this.#pack(weight, "backward"), dx, 4 * k, rows, k, n, add ? 1 : 0);
    if (!grad) return;
    this.scope(() => {
      const packedX = this.alloc("f32", rows * ((k + 7) & ~7));
      const packedDy = this.alloc("f32", rows * ((n + 3) & ~3));
      this.#run("pack", x, packedX, rows, k, 4 * k, 4);
      this.#run("packRows", dy, packedDy, n, rows, stride);
      this.#run("gemmRows", packedDy, packedX, grad, 4 * k, n, k, rows);
    });
  }

  rmsNorm({ x, residual, scale, out, rstd, rows, eps, into = x }: RmsNormArgs): void {
    if (into.address !== x.address) this.copy(x, into);
    this.#run("rmsNorm", into, residual ?? 0, scale.value, out, rstd, rows, scale.value.length, eps);
  }

  rmsNormBackward({ x, scale, rstd, dOut, dx, rows }: RmsNormBackwardArgs): void {
    const width = scale.value.length;
    if (scale.grad) this.#run("rmsNormWeightBackward", dOut, x, rstd, scale.grad, rows, width);
    this.#run("rmsNormBackward", dOut, x, scale.value, rstd, dx, rows, width);
  }

  rotate({ qkv, norms, q, rstd, kvCache, layout, rotary, shape, bias = null }: RotateArgs): void {
    const { tokens, positions, blockAddresses, capacities, indices } = layout;
    const { heads, kvHeads, headDim, eps } = shape;
    const [qScale, kScale] = [norms?.q.value ?? 0, norms?.k.value ?? 0];
    const where = [blockAddresses, capacities, indices, positions, rotary] as const;
    const sizes = [tokens, heads, kvHeads, headDim, eps] as const;
    this.#run("rotate", qkv, q, kvCache, ...where, qScale, kScale, rstd, ...sizes, bias?.value ?? 0);
  }

  moveBlock(
    kvCache: Buffer,
    from: BlockAddress,
    to: BlockAddress,
    tokens: number,
    { kvHeads, headDim }: KvShape,
  ): void {
    this.#run("moveBlock", kvCache, from.block, from.capacity, to.block, to.capacity, tokens, kvHeads, headDim);
  }

  rotateBackward({ dqkv, qkv, norms, rstd, layout, rotary, shape, bias = null }: RotateBackwardArgs): void {
    const { tokens, positions } = layout;
    const { heads, kvHeads, headDim } = shape;
    this.#run("unrotate", dqkv, positions, rotary, tokens, heads, kvHeads, headDim);
    if (bias?.grad) this.#run("biasBackward", dqkv, bias.grad, tokens, bias.grad.length);
    if (!norms) return;
    for (const [scale, first, count] of [
      [norms.q, 0, heads],
      [norms.k, heads, kvHeads],
    ] as const) {
      if (!scale.grad) continue;
      this.#run("headNormWeightBackward", dqkv, qkv, rstd, scale.grad, tokens, first, count, heads, kvHeads, headDim);
    }
    this.#run("headNormBackward", dqkv, qkv, rstd, norms.q.value, norms.k.value, tokens, heads, kvHeads, headDim);
  }

  attention({ q, kvCache, out, lse, layout, shape }: AttentionArgs): void {
    const { heads, kvHeads, headDim } = shape;
    const row = scratchRow(layout);
    this.scope(() => {
      const scratch = this.alloc("f32", this.threads * (FORWARD_BLOCK * row + LIST));
      const lseOut = lse ?? this.alloc("f32", layout.tokens * heads);
      const { spans, ranges, spanCount } = layout;
      const scale = 1 / Math.sqrt(headDim);
      this.#run(
        "attention",
        q,
        kvCache,
        out,
        lseOut,
        spans,
        ranges,
        spanCount,
        heads,
        kvHeads,
        headDim,
        scale,
        scratch,
        row,
        this.native ? FORWARD_BLOCK : WASM_BLOCK,
      );
    });
  }

  attentionBackward({ q, kvCache, out, dOut, lse, dqkv, layout, shape }: AttentionBackwardArgs): void {
    const { heads, kvHeads, headDim } = shape;
    const row = scratchRow(layout);
    const scale = 1 / Math.sqrt(headDim);
    this.scope(() => {
      const dots = this.alloc("f32", layout.tokens * heads);
      const other = this.alloc("f32", kvCache.length);
      const scratch = this.alloc("f32", this.threads * (BACKWARD_BLOCK * 2 * (row + headDim) + LIST));
      this.#run("rowDots", out, dOut, dots, layout.tokens, heads, headDim);
      this.#run("repack", kvCache, other, layout.kvBlocks, layout.kvBlockCount, kvHeads, headDim);
      const tables = [layout.spans, layout.ranges, layout.rangeRows, layout.trees] as const;
      const sizes = [layout.treeCount, heads, kvHeads, headDim] as const;
      this.#run(
        "attentionBackward",
        q,
        kvCache,
        other,
        dOut,
        lse,
        dots,
        dqkv,
        ...tables,
        ...sizes,
        scale,
        scratch,
        row,
      );
    });
  }

  swiGlu(gateUp: Buffer, out: Buffer, rows: number, width: number): void {
    this.#run("swiGlu", gateUp, out, rows, width);
  }

  swiGluBackward(gateUp: Buffer, dOut: Buffer, dGateUp: Buffer, rows: number, width: number): void {
    this.#run("swiGluBackward", dOut, gateUp, dGateUp, rows, width);
  }

  gather(x: Buffer, ids: Buffer, out: Buffer, rows: number, width: number): void {
    this.#run("embed", x, ids, out, rows, width);
  }

  scatterAdd(y: Buffer, ids: Buffer, x: Buffer, rows: number, width: number): void {
    this.#run("embedBackward", y, ids, x, rows, width);
  }

  addTo(x: Buffer, y: Buffer): void {
    this.#run("addTo", x, y, x.length);
  }

  logProbs(args: LogProbsArgs): void {
    this.#head.logProbs(args, { saves: this.#scopes.length > 0 });
  }

  logProbsBackward(args: LogProbsBackwardArgs): void {
    this.#head.logProbsBackward(args);
  }

  sample({ logits, vocabulary, stride, rows, draw, out }: SampleArgs): void {
    const { temperatures, uniforms } = draw;
    this.#run("sample", logits, stride, temperatures, uniforms, out.tokens, out.logp, rows, vocabulary);
  }

  adamW(value: Buffer, grad: Buffer, m: Buffer, v: Buffer, step: AdamStep): void {
    const { learning_rate, beta1, beta2, eps, weight_decay, gradient_scale } = step;
    const corrections = [1 - beta1 ** step.step, 1 - beta2 ** step.step] as const;
    const rates = [learning_rate, beta1, beta2, eps, weight_decay] as const;
    this.#run("adamW", value, grad, m, v, value.length, ...rates, ...corrections, gradient_scale);
  }

  sumSquares(x: Buffer): number {
    return this.scope(() => {
      const blocks = Math.ceil(x.length / 16_384);
      const sums = this.alloc("f32", 2 * blocks); // as doubles
      this.#run("sumSquares", x, sums, x.length);
      const view = new Float64Array(this.#memory.buffer, sums.address, blocks);
      return view.reduce((total, sum) => total + sum, 0);
    });
  }

  close(): void {
    this.#pool.close();
  }

  #run(kernel: string, ...args: readonly (Buffer | number)[]): void {
    this.#pool.run(kernel, ...args.map((arg) => (typeof arg === "number" ? arg : arg.address)));
  }

  #headKernels(): HeadKernels {
    return {
      logProb: ({ logits, stride, rows, vocabulary, inverseTemperature }, { targets, logp, entropy, lse }) =>
        this.#run("logProb", logits, stride, targets, logp, entropy, lse, rows, vocabulary, inverseTemperature),
      logProbBackward: ({ logits, stride, rows, vocabulary, inverseTemperature }, buffers) => {
        const { targets, entropy, lse, dLogp, dEntropy } = buffers;
        const inputs = [targets, entropy, lse, dLogp, dEntropy];
        this.#run("logProbBackward", logits, stride, ...inputs, rows, vocabulary, inverseTemperature);
        return logits;
      },
    };
  }

  #pack(weight: Weight, direction: "forward" | "backward"): number {
    let packed = this.#packed.get(weight);
    if (!packed) {
      packed = { forward: undefined, backward: undefined, stale: { forward: true, backward: true } };
      this.#packed.set(weight, packed);
    }
    if (packed[direction] !== undefined && !packed.stale[direction]) return packed[direction];
    const { rows, columns } = weight;
    const [k, n] = direction === "forward" ? [columns, rows] : [rows, columns];
    packed[direction] ??= this.#allocator.alloc(4 * k * ((n + 7) & ~7));
    const [strideK, strideN] = direction === "forward" ? [4, 4 * columns] : [4 * columns, 4];
    this.#run("pack", weight.value, packed[direction], k, n, strideK, strideN);
    packed.stale[direction] = false;
    return packed[direction];
  }

  #viewOf(dtype: Dtype): Float32Array | Int32Array {
    return dtype === "f32" ? this.#floats : this.#ints;
  }

  #grow(end: number): void {
    const missing = Math.ceil(end / PAGE) - this.#memory.buffer.byteLength / PAGE;
    if (missing <= 0) return;
    try {
      if (end > MAX_PAGES * PAGE) throw new RangeError("4 GiB"); // checked before growing, which would detach the views
      this.#memory.grow(Math.min(Math.max(missing, GROW_STEP), MAX_PAGES - this.#memory.buffer.byteLength / PAGE));
    } catch (cause) {
      throw new OOMError({
        what: "the CPU device is out of memory",
        value: `${Math.ceil(end / 2 ** 20)} MiB asked, 4096 MiB at most`,
        remedy: "lower the batch size, num_generations or the context length",
        cause,
      });
    }
    this.#floats = new Float32Array(this.#memory.buffer);
    this.#ints = new Int32Array(this.#memory.buffer);
  }
}

/** Floats per row of scores: the longest context, rounded up to whole panels. */
function scratchRow({ maxContext }: TokenLayout): number {
  return (maxContext + 23) & ~7;
}
