// The CUDA device: cuBLAS for large matmuls, our own kernels for the rest, on one stream. Activations are bf16 or float; the
// residual stream, sums, parameters, gradients and optimizer state are float. Every sum has a fixed order: the same bits each time.
import type {
  AdamStep,
  Buffer,
  CapturedGraph,
  Decoding,
  Device,
  Dtype,
  HeadShape,
  Scale,
  TokenLayout,
  Weight,
} from "../device.ts";
import { CUDA_CHUNK_SHARE, CUDA_SAVED_SHARE, type HeadKernels, LmHead, type LogitRows } from "../lm-head.ts";
import { at, f32, i32, matrix, NULL, normThreads, rotaryCut, scalesOf, vectorsOf } from "./arguments.node.ts";
import {
  type AttentionKernels,
  type AttentionPlan,
  attentionBackward,
  attentionDecode,
  attentionForward,
  attentionKernels,
  attentionNext,
  attentionPlanLength,
  decodeScratch,
  decodeSplits,
  nextScratch,
  planAttention,
  sharingShape,
} from "./attention.ts";
import { bf16ToFloats, floatsToBf16 } from "./bf16.ts";
import type { Blas, Matrix } from "./blas.node.ts";
import type { Compiler } from "./compiler.node.ts";
import type { CudaDevice, Gpu, Precision } from "./device.ts";
import type { Driver } from "./driver.node.ts";
import { HEAD_THREADS } from "./kernels/head.ts";
import { SQUARE_BLOCKS } from "./kernels/optimizer.ts";
import { ROTARY_THREADS } from "./kernels/rotary.ts";
import { ROW_THREADS } from "./kernels/rows.ts";
import type { SkinnyEnd } from "./kernels/skinny.ts";
import type { KernelArg, KernelSource, Launch } from "./launch.ts";
import { matmulLaunch } from "./matmul.ts";
import { Pool } from "./pool.ts";
import { fillSharing, sharingLength } from "./prefix-sharing.ts";
import { sample, sampleScratchLength } from "./sample.ts";
import { sourcesFor } from "./sources.ts";
import { Staging } from "./staging.node.ts";

/** A bf16 copy of a whole allocation of parameters, refreshed when first needed after a change. */
interface Shadow {
  readonly from: number;
  readonly bytes: number;
  readonly address: number;
  stale: boolean;
}

/** RMSNorm of the rows that a matmul multiplies. */
interface Norm {
  readonly scale: Buffer;
  readonly eps: number;
}

const BYTES = { f32: 4, i32: 4, bf16: 2 } as const;
const DECODE_COUNTERS = 65_536;

/** `createCuda` makes one. */
export class Cuda implements CudaDevice {
  readonly name = "cuda";
  readonly variant: string;
  readonly threads = 1;
  readonly activations: Dtype;
  readonly gpu: Gpu;
  readonly precision: Precision;
  readonly #driver: Driver;
  readonly #compiler: Compiler;
  readonly #blas: Blas;
  readonly #pool: Pool;
  readonly #staging: Staging;
  readonly #launch: Launch;
  readonly #scopes: number[][] = [];
  #shadows: Shadow[] = [];
  /** Plans by the address of their layout's spans; freed with it. */
  readonly #plans = new Map<string, { plan: AttentionPlan; buffer: number }>();
  readonly #attention = new Map<string, AttentionKernels>();
  readonly #loaded = new Set<string>();
  /** Counters of decode attention; always 0 between launches. */
  readonly #counters: Buffer;
  readonly #partials = new Map<number, Buffer>();
  readonly #head: LmHead;
  /** During a capture: memory that will belong to the graph. */
  #held: number[] | undefined;

  constructor(driver: Driver, compiler: Compiler, blas: Blas, precision: Precision, most = driver.gpu.memory) {
    this.#driver = driver;
    this.#compiler = compiler;
    this.#blas = blas;
    this.gpu = { ...driver.gpu, memory: Math.min(most, driver.gpu.memory) };
    this.precision = precision;
    this.activations = precision === "bf16" ? "bf16" : "f32";
    this.variant = `cuda-${precision} ${driver.gpu.name}, cuBLAS ${blas.version}, NVRTC ${compiler.version}`;
    this.#pool = new Pool({
      tryAlloc: (bytes) => (this.#pool.reserved + bytes > this.gpu.memory ? undefined : driver.tryAlloc(bytes)),
      free: (address) => driver.free(address),
      memoryLeft: () => Math.min(driver.memoryLeft(), this.gpu.memory - this.#pool.reserved),
      synchronize: () => {
        if (this.#held) return false; // a stream being captured cannot be waited for
        driver.synchronize();
        return true;
      },
    });
    this.#staging = new Staging(driver);
    this.#launch = (...args) => driver.launch(...args);
    for (const source of sourcesFor(driver.gpu.capability)) this.#load(source);
    const logits = this.gpu.memory / 4; // that all of its memory would hold
    this.#head = new LmHead(this, this.#headKernels(), {
      chunk: logits / CUDA_CHUNK_SHARE,
      saved: logits / CUDA_SAVED_SHARE,
    });
    this.#counters = this.alloc("i32", DECODE_COUNTERS);
    this.fill(this.#counters, 0);
  }

  get decoding(): Decoding {
    return {
      capture: (work) => this.#capture(work),
      uniforms: (seeds, positions, out, rows) =>
        this.#rowwise("uniforms", rows, [at(seeds), at(positions), at(out), i32(rows)]),
      advance: (tokens, ids, { tokens: rows, positions, capacities, indices, spans, ranges }) => {
        const tables = [positions, capacities, indices, spans, ranges].map(at);
        this.#rowwise("advance", rows, [at(tokens), at(ids), ...tables, i32(rows)]);
      },
      readLater: ({ address, length }) => {
        const wait = this.#staging.downLater(address, 4 * length);
        return () => new Int32Array(wait().buffer);
      },
      sharing: {
        length: (rows, shape) =>
          this.#shares(shape) ? sharingLength(rows, sharingShape(shape, this.gpu.multiprocessors)) : 0,
        fill: (out, rows, spans, ranges, shape) => {
          if (!this.#shares(shape)) return;
          fillSharing(out, rows, spans, ranges, sharingShape(shape, this.gpu.multiprocessors));
        },
      },
    };
  }

  get memory() {
    const { used, peak, reserved } = this.#pool;
    return { used, peak, reserved };
  }

  alloc(dtype: Dtype, length: number): Buffer {
    const address = this.#pool.alloc(BYTES[dtype] * length);
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
    return { dtype, length, address: address + BYTES[dtype] * offset };
  }

  write(buffer: Buffer, data: Float32Array | Int32Array): void {
    if (data.length > buffer.length) throw new RangeError(`${data.length} elements into a buffer of ${buffer.length}`);
    const bytes = buffer.dtype === "bf16" ? floatsToBf16(data as Float32Array) : data;
    this.#staging.up(buffer.address, new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  read({ dtype, address, length }: Buffer): Float32Array | Int32Array {
    const { buffer } = this.#staging.down(address, BYTES[dtype] * length);
    if (dtype === "bf16") return bf16ToFloats(new Uint16Array(buffer));
    return dtype === "i32" ? new Int32Array(buffer) : new Float32Array(buffer);
  }

  fill({ dtype, address, length }: Buffer, value: number): void {
    if (length === 0) return;
    if (dtype === "bf16") {
      const bits = floatsToBf16(Float32Array.of(value))[0]!;
      this.#driver.call("cuMemsetD16Async", address, bits, length, this.#driver.stream);
      return;
    }
    const bits = new Uint32Array((dtype === "i32" ? Int32Array.of(value) : Float32Array.of(value)).buffer)[0]!;
    this.#driver.call("cuMemsetD32Async", address, bits, length, this.#driver.stream);
  }

  copy(from: Buffer, to: Buffer): void {
    if (from.dtype !== to.dtype) {
      const args = [at(from), at(to), { i64: from.length }];
      this.#elementwise(`convert_${from.dtype}_${to.dtype}`, from.length / 8, args);
      return;
    }
    this.#driver.call(
      "cuMemcpyDtoDAsync_v2",
      to.address,
      from.address,
      BYTES[from.dtype] * from.length,
      this.#driver.stream,
    );
  }

  changed({ value }: Weight): void {
    const shadow = this.#shadows.find(({ from, bytes }) => value.address >= from && value.address < from + bytes);
    if (shadow) shadow.stale = true;
  }

  forget(): void {
    // copies are freed with the memory they are copies of
  }

  embed({ value, columns }: Weight, ids: Buffer, out: Buffer, rows: number): void {
    if (value.dtype === out.dtype) {
      this.gather(value, ids, out, rows, columns);
      return;
    }
    this.scope(() => {
      const same = this.alloc(value.dtype, out.length);
      this.gather(value, ids, same, rows, columns);
      this.copy(same, out);
    });
  }

  embedBackward(weight: Weight, ids: Buffer, dOut: Buffer, rows: number): void {
    if (weight.grad) this.scatterAdd(dOut, ids, weight.grad, rows, weight.columns);
  }

  outStride(weight: Weight): number {
    return (weight.rows + 7) & ~7;
  }

  linear(weight: Weight, x: Buffer, out: Buffer, rows: number): void {
    if (this.#smallMatmul(out.dtype === "bf16" ? "bf16" : "f32", weight, x, out, rows, this.outStride(weight))) return;
    const { rows: n, columns: k } = weight;
    const w = { ...this.#weight(weight, x.dtype), transposed: true };
    this.#blas.gemm(rows, n, k, matrix(x, k), w, matrix(out, this.outStride(weight)));
  }

  linearSwiGlu(weight: Weight, x: Buffer, out: Buffer, rows: number): boolean {
    return this.#smallMatmul("gated", weight, x, out, rows, weight.rows / 2);
  }

  linearNormed(
    weight: Weight,
    x: Buffer,
    scale: Scale,
    eps: number,
    out: Buffer,
    rows: number,
    isGated = false,
  ): boolean {
    if (this.activations !== "bf16") return false;
    const end = isGated ? "gated" : out.dtype === "bf16" ? "bf16" : "f32";
    const stride = isGated ? weight.rows / 2 : this.outStride(weight);
    return this.#smallMatmul(end, weight, x, out, rows, stride, { scale: scale.value, eps });
  }

  linearAdd(weight: Weight, x: Buffer, stream: Buffer, rows: number): boolean {
    return this.#smallMatmul("added", weight, x, stream, rows, weight.rows);
  }

  linearBackward(weight: Weight, x: Buffer, dy: Buffer, dx: Buffer | null, rows: number, add = false): void {
    const { rows: n, columns: k, grad } = weight;
    const stride = this.outStride(weight);
    this.#as(x.dtype, dy, (same) => {
      const d = matrix(same, stride);
      if (dx) this.#blas.gemm(rows, k, n, d, this.#weight(weight, x.dtype), matrix(dx, k), add);
      if (grad) this.#blas.gemm(n, k, rows, { ...d, transposed: true }, matrix(x, k), matrix(grad, k), true);
    });
  }

  rmsNorm(
    x: Buffer,
    residual: Buffer | null,
    scale: Scale,
    out: Buffer,
    rstd: Buffer,
    rows: number,
    eps: number,
    into: Buffer = x,
  ): void {
    const width = scale.value.length;
    const sum = [at(x), residual ? at(residual) : NULL, at(into)];
    const args = [...sum, at(scale.value), at(out), at(rstd), i32(width), f32(eps)];
    this.#launch(`rmsNorm_${out.dtype}`, [rows, 1, 1], [normThreads(width), 1, 1], 0, args);
  }

  rmsNormBackward(x: Buffer, scale: Scale, rstd: Buffer, dOut: Buffer, dx: Buffer, rows: number): void {
    const width = scale.value.length;
    const threads = normThreads(width);
    const chunks = width <= 8 * threads ? 1 : 4;
    const blocks = Math.min(rows, (chunks === 1 ? 8 : 4) * this.gpu.multiprocessors);
    this.scope(() => {
      const parts = this.alloc("f32", blocks * width);
      const args = [at(dOut), at(x), at(scale.value), at(rstd), at(dx), at(parts), i32(rows), i32(width)];
      this.#launch(`rmsNormBackward_${dOut.dtype}_${chunks}`, [blocks, 1, 1], [threads, 1, 1], 0, args);
      if (scale.grad) this.#addParts(parts, scale.grad, blocks, width, 0, width);
    });
  }

  rotate(
    qkv: Buffer,
    norms: { readonly q: Scale; readonly k: Scale } | null,
    q: Buffer,
    rstd: Buffer,
    kvCache: Buffer,
    { tokens, positions, blockAddresses, capacities, indices }: TokenLayout,
    rotary: Buffer,
    { heads, kvHeads, headDim, eps }: HeadShape,
    bias: Scale | null = null,
  ): void {
    const { lanes, dims } = rotaryCut(headDim);
    const items = tokens * (heads + 2 * kvHeads);
    const where = [blockAddresses, capacities, indices, positions, rotary].map(at);
    const sizes = [i32(tokens), i32(heads), i32(kvHeads), i32(headDim), f32(eps), i32(lanes)];
    const args = [at(qkv), at(q), at(kvCache), ...where, ...vectorsOf(norms, bias), at(rstd), ...sizes];
    const grid = Math.ceil((items * lanes) / ROTARY_THREADS);
    this.#launch(`rotate_${qkv.dtype}_${dims}`, [grid, 1, 1], [ROTARY_THREADS, 1, 1], 0, args);
  }

  rotateAttend(
    qkv: Buffer,
    norms: { readonly q: Scale; readonly k: Scale } | null,
    kvCache: Buffer,
    out: Buffer,
    { tokens, sharing, ranges, positions }: TokenLayout,
    rotary: Buffer,
    shape: HeadShape,
    bias: Scale | null = null,
  ): boolean {
    if (!sharing) return false;
    const kernels = this.#attentionFor(shape, qkv.dtype);
    if (!kernels.next) return false;
    const tables = { work: sharing, ranges, positions, rotary };
    const lengths = nextScratch(tokens, kernels.shape, this.gpu.multiprocessors);
    if (lengths.counters > DECODE_COUNTERS) return false;
    const scratch = { partials: this.#partialsOf(lengths.partials), counters: this.#counters };
    const io = { qkv, kvCache, out, ...scratch, ...tables };
    attentionNext(this.#launch, kernels, tokens, this.gpu.multiprocessors, shape.eps, io, vectorsOf(norms, bias));
    return true;
  }

  rotateBackward(
    dqkv: Buffer,
    qkv: Buffer,
    norms: { readonly q: Scale; readonly k: Scale } | null,
    rstd: Buffer,
    { tokens, positions }: TokenLayout,
    rotary: Buffer,
    { heads, kvHeads, headDim }: HeadShape,
    bias: Scale | null = null,
  ): void {
    const { lanes, dims } = rotaryCut(headDim);
    const groups = ROTARY_THREADS / lanes;
    const blocks = Math.min(Math.ceil((tokens * (heads + kvHeads)) / groups), 8 * this.gpu.multiprocessors);
    this.scope(() => {
      const parts = this.alloc("f32", blocks * 2 * headDim);
      const sizes = [i32(tokens), i32(heads), i32(kvHeads), i32(headDim), i32(lanes)];
      const args = [at(dqkv), at(qkv), at(rstd), at(positions), at(rotary), ...scalesOf(norms), at(parts), ...sizes];
      this.#launch(
        `rotateBackward_${dqkv.dtype}_${dims}`,
        [blocks, 1, 1],
        [ROTARY_THREADS, 1, 1],
        4 * groups * 2 * headDim,
        args,
      );
      if (norms?.q.grad) this.#addParts(parts, norms.q.grad, blocks, 2 * headDim, 0, headDim);
      if (norms?.k.grad) this.#addParts(parts, norms.k.grad, blocks, 2 * headDim, headDim, headDim);
    });
    if (bias?.grad) this.#addRows(dqkv, bias.grad, tokens);
  }

  attention(q: Buffer, kvCache: Buffer, out: Buffer, lse: Buffer | null, layout: TokenLayout, shape: HeadShape): void {
    const kernels = this.#attentionFor(shape, q.dtype);
    if (!lse && this.#decode(q, kvCache, out, layout, kernels)) return;
    this.scope(() => {
      const lseOut = lse ?? this.alloc("f32", layout.tokens * shape.heads);
      attentionForward(this.#launch, kernels, this.#planFor(layout, kernels), layout, { q, kvCache, out, lse: lseOut });
    });
  }

  attentionBackward(
    q: Buffer,
    kvCache: Buffer,
    out: Buffer,
    dOut: Buffer,
    lse: Buffer,
    dqkv: Buffer,
    layout: TokenLayout,
    shape: HeadShape,
  ): void {
    const kernels = this.#attentionFor(shape, q.dtype);
    const plan = this.#planFor(layout, kernels);
    this.scope(() => {
      const dots = this.alloc("f32", layout.tokens * shape.heads);
      attentionBackward(this.#launch, kernels, plan, layout, { q, kvCache, out, dOut, lse, dots, dqkv });
    });
  }

  swiGlu(gateUp: Buffer, out: Buffer, rows: number, width: number): void {
    this.#elementwise(`swiGlu_${out.dtype}`, (rows * width) / 8, [at(gateUp), at(out), i32(rows), i32(width)]);
  }

  swiGluBackward(gateUp: Buffer, dOut: Buffer, dGateUp: Buffer, rows: number, width: number): void {
    const args = [at(dOut), at(gateUp), at(dGateUp), i32(rows), i32(width)];
    this.#elementwise(`swiGluBackward_${dOut.dtype}`, (rows * width) / 8, args);
  }

  gather(x: Buffer, ids: Buffer, out: Buffer, rows: number, width: number): void {
    this.#launch(`gather_${x.dtype}`, [rows, 1, 1], [normThreads(width), 1, 1], 0, [
      at(x),
      at(ids),
      at(out),
      i32(width),
    ]);
  }

  scatterAdd(y: Buffer, ids: Buffer, x: Buffer, rows: number, width: number): void {
    const columns = Math.ceil(width / (4 * ROW_THREADS));
    const args = [at(y), at(ids), at(x), i32(rows), i32(width)];
    this.#launch(`scatterAdd_${y.dtype}`, [rows, columns, 1], [ROW_THREADS, 1, 1], 0, args);
  }

  addTo(x: Buffer, y: Buffer): void {
    this.#elementwise(`addTo_${x.dtype}_${y.dtype}`, x.length / 4, [at(x), at(y), { i64: x.length }]);
  }

  logProbs(
    head: Weight,
    x: Buffer,
    targets: Buffer,
    temperature: number,
    rows: number,
    out: { readonly logp: Buffer; readonly entropy: Buffer; readonly lse: Buffer },
  ): void {
    this.#head.logProbs(head, x, targets, temperature, rows, out, this.#scopes.length > 0);
  }

  logProbsBackward(...args: Parameters<Device["logProbsBackward"]>): void {
    this.#head.logProbsBackward(...args);
  }

  sample(
    logits: Buffer,
    vocabulary: number,
    stride: number,
    rows: number,
    { temperatures, uniforms }: { readonly temperatures: Buffer; readonly uniforms: Buffer },
    { tokens, logp }: { readonly tokens: Buffer; readonly logp: Buffer },
  ): void {
    this.scope(() => {
      const scratch = this.alloc("f32", sampleScratchLength(rows, vocabulary));
      const precision = logits.dtype === "bf16" ? "bf16" : "f32";
      const from = { buffer: logits, precision, stride } as const;
      sample(this.#launch, from, vocabulary, rows, { temperatures, uniforms }, { tokens, logp }, scratch);
    });
  }

  adamW(value: Buffer, grad: Buffer, m: Buffer, v: Buffer, step: AdamStep): void {
    const { learning_rate, beta1, beta2, eps, weight_decay, gradient_scale } = step;
    // Factors in double precision, then rounded once: 1 − 0.999 in single precision is off by 1e-5.
    const [correction1, correction2] = [1 - beta1 ** step.step, 1 - beta2 ** step.step];
    const betas = [beta1, 1 - beta1, beta2, 1 - beta2];
    const rates = [1 - learning_rate * weight_decay, learning_rate / correction1, 1 / Math.sqrt(correction2)];
    const factors = [...betas, ...rates, eps, gradient_scale].map(f32);
    const args = [at(value), at(grad), at(m), at(v), { i64: value.length }, ...factors];
    this.#elementwise("adamW", value.length / 4, args);
  }

  sumSquares(x: Buffer): number {
    return this.scope(() => {
      const sums = this.alloc("f32", 2 * SQUARE_BLOCKS); // doubles
      this.#launch("sumSquares", [SQUARE_BLOCKS, 1, 1], [256, 1, 1], 0, [at(x), at(sums), { i64: x.length }]);
      const parts = new Float64Array(this.#staging.down(sums.address, 8 * SQUARE_BLOCKS).buffer);
      return parts.reduce((total, sum) => total + sum, 0);
    });
  }

  #capture(work: () => void): CapturedGraph {
    for (const shadow of this.#shadows) this.#refresh(shadow);
    const driver = this.#driver;
    const held: number[] = [];
    const graphs: (number | bigint)[] = [0];
    this.#held = held;
    try {
      driver.call("cuStreamBeginCapture_v2", driver.stream, 2); // 2: relaxed, other threads may call the driver
      let failure: unknown;
      try {
        this.scope(work);
      } catch (error) {
        failure = error;
      }
      driver.call("cuStreamEndCapture", driver.stream, graphs);
      if (failure) {
        driver.call("cuGraphDestroy", graphs[0]!);
        throw failure;
      }
    } catch (error) {
      this.#held = undefined;
      for (const address of held) this.#pool.free(address);
      throw error;
    }
    this.#held = undefined;
    const graph = graphs[0]!;
    const exec = driver.out("cuGraphInstantiateWithFlags", graph, 0);
    driver.call("cuGraphDestroy", graph);
    return {
      launch: () => {
        for (const shadow of this.#shadows) this.#refresh(shadow);
        driver.call("cuGraphLaunch", exec, driver.stream);
      },
      free: () => {
        driver.call("cuGraphExecDestroy", exec);
        for (const address of held) this.#pool.free(address);
      },
    };
  }

  trim(): void {
    this.#pool.trim();
  }

  synchronize(): void {
    this.#driver.synchronize();
  }

  time(work: () => void): number {
    const driver = this.#driver;
    const [start, end] = [driver.out("cuEventCreate", 0), driver.out("cuEventCreate", 0)];
    driver.call("cuEventRecord", start, driver.stream);
    work();
    driver.call("cuEventRecord", end, driver.stream);
    driver.call("cuEventSynchronize", end);
    const milliseconds = [0];
    driver.call("cuEventElapsedTime", milliseconds, start, end);
    for (const event of [start, end]) driver.call("cuEventDestroy_v2", event);
    return milliseconds[0]!;
  }

  close(): void {
    try {
      this.#driver.synchronize();
      this.#staging.close();
      this.#blas.close();
      this.#pool.close();
    } catch (error) {
      if (!this.#driver.lost) throw error; // the call that lost the GPU has thrown already; the driver reclaims its memory with the process
    }
    this.#driver.close();
  }

  #load(source: KernelSource): void {
    if (this.#loaded.has(source.name)) return;
    this.#driver.load(this.#compiler.compile(source));
    this.#loaded.add(source.name);
  }

  /** Frees memory and what was derived from it: a weight's copy, a layout's plan. */
  #release(address: number): void {
    for (const [key, { buffer }] of this.#plans) {
      if (!key.startsWith(`${address} `)) continue;
      this.#plans.delete(key);
      this.#give(buffer);
    }
    const shadow = this.#shadows.find(({ from }) => from === address);
    if (shadow) {
      this.#shadows = this.#shadows.filter((other) => other !== shadow);
      this.#give(shadow.address);
    }
    this.#give(address);
  }

  #give(address: number): void {
    if (this.#held) this.#held.push(address);
    else this.#pool.free(address);
  }

  /** A matmul by one of our kernels; false if there is none for these sizes. */
  #smallMatmul(
    end: SkinnyEnd,
    weight: Weight,
    x: Buffer,
    out: Buffer,
    rows: number,
    stride: number,
    norm?: Norm,
  ): boolean {
    if (x.dtype !== "bf16" && !norm) return false;
    const { rows: n, columns: k } = weight;
    const launch = matmulLaunch({ end, n, k, rows, isNormed: norm !== undefined }, this.gpu);
    if (!launch) return false;
    if (launch.source) this.#load(launch.source);
    const sizes = [rows, k, stride, launch.width].map(i32);
    const scale = norm ? [at(norm.scale), f32(norm.eps)] : [NULL, f32(0)];
    const args = [{ ptr: this.#weight(weight, "bf16").address }, at(x), at(out), ...sizes, ...scale];
    this.#launch(launch.kernel, [launch.blocks, 1, 1], [launch.threads, 1, 1], launch.shared, args);
    return true;
  }

  /** A weight in the type of the activations it is multiplied with. */
  #weight({ value, columns }: Weight, dtype: Dtype): Matrix {
    if (value.dtype === dtype) return matrix(value, columns);
    let shadow = this.#shadows.find(({ from, bytes }) => value.address >= from && value.address < from + bytes);
    if (!shadow) {
      const { address: from, bytes } = this.#pool.around(value.address);
      shadow = { from, bytes, address: this.#pool.alloc(bytes / 2), stale: true };
      this.#shadows.push(shadow);
    }
    this.#refresh(shadow);
    return { address: shadow.address + (value.address - shadow.from) / 2, dtype, stride: columns };
  }

  #refresh(shadow: Shadow): void {
    if (!shadow.stale) return;
    if (this.#held) throw new Error("a weight was first used inside a graph capture"); // it would not be copied now
    const length = shadow.bytes / 4;
    this.#elementwise("convert_f32_bf16", length / 8, [{ ptr: shadow.from }, { ptr: shadow.address }, { i64: length }]);
    shadow.stale = false;
  }

  /** Calls `use` with the buffer in the given type, converted if needed. */
  #as(dtype: Dtype, buffer: Buffer, use: (same: Buffer) => void): void {
    if (buffer.dtype === dtype) {
      use(buffer);
      return;
    }
    this.scope(() => {
      const same = this.alloc(dtype, buffer.length);
      const args = [at(buffer), at(same), { i64: buffer.length }];
      this.#elementwise(`convert_${buffer.dtype}_${dtype}`, buffer.length / 8, args);
      use(same);
    });
  }

  /** Launches a grid-stride kernel over pieces of a buffer. */
  #elementwise(kernel: string, pieces: number, args: readonly KernelArg[]): void {
    const blocks = Math.max(1, Math.min(Math.ceil(pieces / 256), 16 * this.gpu.multiprocessors));
    this.#launch(kernel, [blocks, 1, 1], [256, 1, 1], 0, args);
  }

  #rowwise(kernel: string, rows: number, args: readonly KernelArg[]): void {
    this.#launch(kernel, [Math.ceil(rows / 64), 1, 1], [64, 1, 1], 0, args);
  }

  #addParts(parts: Buffer, out: Buffer, count: number, stride: number, from: number, width: number): void {
    const args = [at(parts), at(out), i32(count), i32(stride), i32(from), i32(width)];
    this.#launch("addParts", [Math.ceil(width / 32), 1, 1], [32, 32, 1], 0, args);
  }

  /** out += the sum of x's rows. */
  #addRows(x: Buffer, out: Buffer, rows: number): void {
    const width = out.length;
    const columns = Math.ceil(width / (4 * ROW_THREADS));
    const parts = Math.max(1, Math.min(rows, Math.ceil((8 * this.gpu.multiprocessors) / columns)));
    this.scope(() => {
      const sums = this.alloc("f32", parts * width);
      const args = [at(x), at(sums), i32(rows), i32(width)];
      this.#launch(`sumRows_${x.dtype}`, [columns, parts, 1], [ROW_THREADS, 1, 1], 0, args);
      this.#addParts(sums, out, parts, width, 0, width);
    });
  }

  /** Whether there is a kernel that reads a prefix shared by several rows once. */
  #shares(shape: HeadShape): boolean {
    return this.#attentionFor(shape, this.activations).next !== undefined;
  }

  #attentionFor({ heads, kvHeads, headDim }: HeadShape, dtype: Dtype): AttentionKernels {
    const key = `${heads} ${kvHeads} ${headDim} ${dtype}`;
    let kernels = this.#attention.get(key);
    if (!kernels) {
      const precision = dtype === "bf16" ? "bf16" : "f32";
      kernels = attentionKernels({ heads, kvHeads, headDim, precision }, this.gpu);
      for (const source of kernels.sources) this.#load(source);
      this.#attention.set(key, kernels);
    }
    return kernels;
  }

  /** Attention of one new token per row, for inference; false if the layout or the heads are not for this kernel. */
  #decode(q: Buffer, kvCache: Buffer, out: Buffer, layout: TokenLayout, kernels: AttentionKernels): boolean {
    const rows = layout.tokens;
    if (rows !== layout.spanCount || kernels.decodeTogether === 0) return false;
    const splits = decodeSplits(rows, kernels.shape, this.gpu.multiprocessors);
    const lengths = decodeScratch(rows, splits, kernels);
    if (lengths.counters > DECODE_COUNTERS) return false;
    this.scope(() => {
      const partials = this.alloc("f32", lengths.partials);
      const io = { q, kvCache, out, partials, counters: this.#counters };
      attentionDecode(this.#launch, kernels, rows, splits, layout, io);
    });
    return true;
  }

  /** Scratch shared by all layers of all graphs of a size. */
  #partialsOf(length: number): Buffer {
    let partials = this.#partials.get(length);
    if (!partials) {
      partials = { dtype: "f32", length, address: this.#pool.alloc(4 * length) };
      this.#partials.set(length, partials);
    }
    return partials;
  }

  #planFor(layout: TokenLayout, kernels: AttentionKernels): AttentionPlan {
    const key = `${layout.spans.address} ${kernels.suffix}`;
    const known = this.#plans.get(key);
    if (known) return known.plan;
    const buffer = this.#pool.alloc(4 * attentionPlanLength(layout, kernels));
    const plan = planAttention(this.#launch, kernels, layout, buffer);
    this.#plans.set(key, { plan, buffer });
    return plan;
  }

  #headKernels(): HeadKernels {
    const threads = [HEAD_THREADS, 1, 1] as const;
    const sizes = ({ vocabulary, stride, inverseTemperature }: LogitRows) => [
      i32(vocabulary),
      i32(stride),
      f32(inverseTemperature),
    ];
    return {
      logProb: (rows, { targets, logp, entropy, lse }) => {
        const args = [...[rows.logits, targets, logp, entropy, lse].map(at), ...sizes(rows)];
        this.#launch("logProb", [rows.rows, 1, 1], threads, 0, args);
      },
      logProbBackward: (rows, { targets, entropy, lse, dLogp, dEntropy }, { dtype }) => {
        const { logits } = rows;
        const dLogits = dtype === "f32" ? logits : this.alloc(dtype, rows.rows * rows.stride);
        const args = [...[logits, dLogits, targets, entropy, lse, dLogp, dEntropy].map(at), ...sizes(rows)];
        this.#launch(`logProbBackward_${dtype}`, [rows.rows, 1, 1], threads, 0, args);
        return dLogits;
      },
    };
  }
}
