// The CUDA device: cuBLAS for large matmuls, our own kernels for the rest, on one stream. Activations are bf16 or
// float; the residual stream, sums, parameters, gradients and optimizer state are float. Every sum has a fixed order,
// so results have the same bits each time.
import type { AdamStep, Buffer, CapturedGraph, Decoding, Dtype, Weight } from "../device.ts";
import type {
  AttentionArgs,
  AttentionBackwardArgs,
  LinearBackwardArgs,
  LinearNormedArgs,
  LogProbsArgs,
  LogProbsBackwardArgs,
  RmsNormArgs,
  RmsNormBackwardArgs,
  RotateArgs,
  RotateAttendArgs,
  RotateBackwardArgs,
  SampleArgs,
} from "../device-args.ts";
import { CUDA_CHUNK_SHARE, CUDA_SAVED_SHARE, LmHead } from "../lm-head.ts";
import { Pool } from "../pool.ts";
import { at, f32, i32, matrix, NULL, normThreads, rotaryCut, scalesOf, vectorsOf } from "./arguments.node.ts";
import { bf16ToFloats, floatsToBf16 } from "./bf16.ts";
import type { Blas, Matrix } from "./blas.node.ts";
import type { Compiler } from "./compiler.node.ts";
import type { CudaDevice, Gpu, Precision } from "./device.ts";
import { DeviceAttention } from "./device-attention.ts";
import type { Driver } from "./driver.node.ts";
import { captureGraph, timeOnGpu } from "./graph.node.ts";
import { headKernels } from "./head.node.ts";
import { sourcesFor } from "./kernel-sources.ts";
import { SQUARE_BLOCKS } from "./kernels/optimizer.ts";
import { ROTARY_THREADS } from "./kernels/rotary.ts";
import { ROW_THREADS } from "./kernels/rows.ts";
import type { SkinnyEnd } from "./kernels/skinny-matmul.ts";
import type { KernelArg, KernelSource, Launch } from "./launch.ts";
import { matmulLaunch } from "./matmul.ts";
import { sample, sampleScratchLength } from "./sample.ts";
import { Staging } from "./staging.node.ts";
import { WeightCopies } from "./weight-copies.ts";

/** An RMSNorm to apply to a matmul's input rows. */
interface Norm {
  readonly scale: Buffer;
  readonly eps: number;
}

const BYTES = { f32: 4, i32: 4, bf16: 2 } as const;

/** The CUDA device; create one with `createCuda`. */
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
  readonly #loaded = new Set<string>();
  readonly #copies: WeightCopies;
  readonly #attention: DeviceAttention;
  readonly #head: LmHead;
  /** During a capture, allocations that will belong to the graph. */
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
        if (this.#held) return false; // a stream that is being captured cannot be waited for
        driver.synchronize();
        return true;
      },
    });
    this.#staging = new Staging(driver);
    this.#launch = (...args) => driver.launch(...args);
    for (const source of sourcesFor(driver.gpu.capability)) this.#load(source);
    const logits = this.gpu.memory / 4; // as many logits as would fill the GPU's memory
    this.#head = new LmHead(
      this,
      headKernels(this.#launch, (dtype, length) => this.alloc(dtype, length)),
      { chunk: logits / CUDA_CHUNK_SHARE, saved: logits / CUDA_SAVED_SHARE },
    );
    this.#copies = new WeightCopies(this.#pool, (from, to, length) => this.#toBf16(from, to, length));
    this.#attention = new DeviceAttention({
      device: this,
      pool: this.#pool,
      launch: this.#launch,
      load: (source) => this.#load(source),
    });
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
      sharing: this.#attention.sharing,
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
    this.#copies.markStale(value);
  }

  forget(): void {
    // Copies are freed together with the memory they were made from.
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

  linearNormed({ weight, x, scale, eps, out, rows, isGated = false }: LinearNormedArgs): boolean {
    if (this.activations !== "bf16") return false;
    const end = isGated ? "gated" : out.dtype === "bf16" ? "bf16" : "f32";
    const stride = isGated ? weight.rows / 2 : this.outStride(weight);
    return this.#smallMatmul(end, weight, x, out, rows, stride, { scale: scale.value, eps });
  }

  linearAdd(weight: Weight, x: Buffer, stream: Buffer, rows: number): boolean {
    return this.#smallMatmul("added", weight, x, stream, rows, weight.rows);
  }

  linearBackward({ weight, x, dy, dx, rows, add = false }: LinearBackwardArgs): void {
    const { rows: n, columns: k, grad } = weight;
    const stride = this.outStride(weight);
    this.#as(x.dtype, dy, (same) => {
      const d = matrix(same, stride);
      if (dx) this.#blas.gemm(rows, k, n, d, this.#weight(weight, x.dtype), matrix(dx, k), add);
      if (grad) this.#blas.gemm(n, k, rows, { ...d, transposed: true }, matrix(x, k), matrix(grad, k), true);
    });
  }

  rmsNorm({ x, residual, scale, out, rstd, rows, eps, into = x }: RmsNormArgs): void {
    const width = scale.value.length;
    const sum = [at(x), residual ? at(residual) : NULL, at(into)];
    const args = [...sum, at(scale.value), at(out), at(rstd), i32(width), f32(eps)];
    this.#launch(`rmsNorm_${out.dtype}`, [rows, 1, 1], [normThreads(width), 1, 1], 0, args);
  }

  rmsNormBackward({ x, scale, rstd, dOut, dx, rows }: RmsNormBackwardArgs): void {
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

  rotate({ qkv, norms, q, rstd, kvCache, layout, rotary, shape, bias = null }: RotateArgs): void {
    const { tokens, positions, blockAddresses, capacities, indices } = layout;
    const { heads, kvHeads, headDim, eps } = shape;
    const { lanes, dims } = rotaryCut(headDim);
    const items = tokens * (heads + 2 * kvHeads);
    const where = [blockAddresses, capacities, indices, positions, rotary].map(at);
    const sizes = [i32(tokens), i32(heads), i32(kvHeads), i32(headDim), f32(eps), i32(lanes)];
    const args = [at(qkv), at(q), at(kvCache), ...where, ...vectorsOf(norms, bias), at(rstd), ...sizes];
    const grid = Math.ceil((items * lanes) / ROTARY_THREADS);
    this.#launch(`rotate_${qkv.dtype}_${dims}`, [grid, 1, 1], [ROTARY_THREADS, 1, 1], 0, args);
  }

  rotateAttend({ qkv, norms, kvCache, out, layout, rotary, shape, bias = null }: RotateAttendArgs): boolean {
    return this.#attention.next({ qkv, kvCache, out, rotary }, layout, shape, vectorsOf(norms, bias));
  }

  rotateBackward({ dqkv, qkv, norms, rstd, layout, rotary, shape, bias = null }: RotateBackwardArgs): void {
    const { tokens, positions } = layout;
    const { heads, kvHeads, headDim } = shape;
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

  attention(args: AttentionArgs): void {
    this.#attention.forward(args);
  }

  attentionBackward(args: AttentionBackwardArgs): void {
    this.#attention.backward(args);
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

  logProbs(args: LogProbsArgs): void {
    this.#head.logProbs(args, { saves: this.#scopes.length > 0 });
  }

  logProbsBackward(args: LogProbsBackwardArgs): void {
    this.#head.logProbsBackward(args);
  }

  sample({ logits, vocabulary, stride, rows, draw, out }: SampleArgs): void {
    this.scope(() => {
      const scratch = this.alloc("f32", sampleScratchLength(rows, vocabulary));
      const precision = logits.dtype === "bf16" ? "bf16" : "f32";
      const from = { buffer: logits, precision, stride } as const;
      sample(this.#launch, from, vocabulary, rows, draw, out, scratch);
    });
  }

  adamW(value: Buffer, grad: Buffer, m: Buffer, v: Buffer, step: AdamStep): void {
    const { learning_rate, beta1, beta2, eps, weight_decay, gradient_scale } = step;
    // Factors are computed in double precision and rounded once: 1 − 0.999 in single precision is off by 1e-5.
    const [correction1, correction2] = [1 - beta1 ** step.step, 1 - beta2 ** step.step];
    const betas = [beta1, 1 - beta1, beta2, 1 - beta2];
    const rates = [1 - learning_rate * weight_decay, learning_rate / correction1, 1 / Math.sqrt(correction2)];
    const factors = [...betas, ...rates, eps, gradient_scale].map(f32);
    const args = [at(value), at(grad), at(m), at(v), { i64: value.length }, ...factors];
    this.#elementwise("adamW", value.length / 4, args);
  }

  sumSquares(x: Buffer): number {
    return this.scope(() => {
      const sums = this.alloc("f32", 2 * SQUARE_BLOCKS); // as doubles
      this.#launch("sumSquares", [SQUARE_BLOCKS, 1, 1], [256, 1, 1], 0, [at(x), at(sums), { i64: x.length }]);
      const parts = new Float64Array(this.#staging.down(sums.address, 8 * SQUARE_BLOCKS).buffer);
      return parts.reduce((total, sum) => total + sum, 0);
    });
  }

  #capture(work: () => void): CapturedGraph {
    this.#copies.refreshAll();
    const held: number[] = [];
    const free = () => {
      for (const address of held) this.#pool.free(address);
    };
    let exec: number | bigint;
    this.#held = held;
    try {
      exec = captureGraph(this.#driver, () => this.scope(work));
    } catch (error) {
      free();
      throw error;
    } finally {
      this.#held = undefined;
    }
    return {
      launch: () => {
        this.#copies.refreshAll();
        this.#driver.call("cuGraphLaunch", exec, this.#driver.stream);
      },
      free: () => {
        this.#driver.call("cuGraphExecDestroy", exec);
        free();
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
    return timeOnGpu(this.#driver, work);
  }

  close(): void {
    try {
      this.#driver.synchronize();
      this.#staging.close();
      this.#blas.close();
      this.#pool.close();
    } catch (error) {
      // The call that lost the GPU has already thrown; the driver reclaims its memory with the process.
      if (!this.#driver.lost) throw error;
    }
    this.#driver.close();
  }

  #load(source: KernelSource): void {
    if (this.#loaded.has(source.name)) return;
    this.#driver.load(this.#compiler.compile(source));
    this.#loaded.add(source.name);
  }

  /** Frees memory and everything derived from it: a weight's copy, a layout's plan. */
  #release(address: number): void {
    for (const derived of [...this.#attention.drop(address), ...this.#copies.drop(address)]) this.#give(derived);
    this.#give(address);
  }

  #give(address: number): void {
    if (this.#held) this.#held.push(address);
    else this.#pool.free(address);
  }

  /** Runs a matmul with one of our kernels; false if none supports these sizes. */
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
    return { address: this.#copies.addressOf(value), dtype, stride: columns };
  }

  #toBf16(from: number, to: number, length: number): void {
    // The copy would be captured instead of made now.
    if (this.#held) throw new Error("a weight was first used inside a graph capture");
    this.#elementwise("convert_f32_bf16", length / 8, [{ ptr: from }, { ptr: to }, { i64: length }]);
  }

  /** Calls `use` with the buffer in the given type, converting it if needed. */
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

  /** Adds the sum of x's rows to out. */
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
}
