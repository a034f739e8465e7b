// The interface of a device, where arithmetic runs. A device owns memory, executes kernels in the order of calls, and
// hides how a weight is laid out. The model is written once against this interface. Shapes: T rows (tokens), D width, H
// heads of size d, G kv heads, V tokens in the vocabulary.
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
} from "./device-args.ts";
import type { BlockAddress, TokenLayout } from "./layout.ts";

export type { BlockAddress, TokenLayout } from "./layout.ts";

/** bf16 exists only on devices whose `activations` are bf16. */
export type Dtype = "f32" | "i32" | "bf16";

/** A piece of device memory. Only its device can interpret the address. */
export interface Buffer {
  readonly dtype: Dtype;
  /** Number of elements. */
  readonly length: number;
  readonly address: number;
}

/**
 * A matrix that the model multiplies by, row-major [rows, columns]: y = x · Wᵀ. A device may keep copies in the form
 * its matmul reads (panels on the CPU, bf16 on a GPU): call `changed` after writing `value`, and `forget` before
 * freeing it.
 */
export interface Weight {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly value: Buffer;
  /** Backward kernels add to it; null if the weight is frozen. */
  readonly grad: Buffer | null;
}

/** A learned vector: the scale of a norm, or a bias. */
export interface Scale {
  readonly name: string;
  readonly value: Buffer;
  readonly grad: Buffer | null;
}

export interface HeadShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly eps: number;
}

export interface AdamStep {
  readonly learning_rate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weight_decay: number;
  /** Step number, starting at 1. */
  readonly step: number;
  /** Factor applied to the gradient, for gradient clipping. */
  readonly gradient_scale: number;
}

/** The shape of the heads of keys and values. */
export type KvShape = Pick<HeadShape, "kvHeads" | "headDim">;

/** Captured work that can be queued again: on a GPU, an instantiated CUDA graph. */
export interface CapturedGraph {
  /** Queues the work again; it reads what its buffers hold by then. */
  launch(): void;
  /** Frees the graph and the memory allocated inside it. */
  free(): void;
}

/**
 * Decoding steps (one new token per row) that follow each other on the device without the host. A step is captured once
 * (`capture`) and launched repeatedly: `advance` moves its tables to the next token, `uniforms` draws the random
 * numbers, and `readLater` fetches sampled tokens while later steps run. See lm/engine/sampling/graph-decoder.ts.
 */
export interface Decoding {
  /**
   * Captures what `work` queues, without running it. Buffers keep their addresses, memory allocated inside belongs to
   * the graph, and launching it is cheap. `work` must not read, write or wait.
   */
  capture(work: () => void): CapturedGraph;
  /**
   * For each row, computes the random number of its seeds (two words) for the position after its own:
   * lm/engine/sampling/counter-rng.ts.
   */
  uniforms(seeds: Buffer, positions: Buffer, out: Buffer, rows: number): void;
  /** Advances the tables of a step to the next one, whose inputs (`ids`) are the sampled `tokens`. */
  advance(tokens: Buffer, ids: Buffer, layout: TokenLayout): void;
  /** Reads a buffer at this point of the queue; the returned function waits for the values. */
  readLater(buffer: Buffer): () => Int32Array;
  /**
   * Present if rows can read the common prefix of their contexts once, using a table built from a batch's spans and
   * ranges.
   */
  readonly sharing?: {
    /** Number of words in the table for a batch of `rows`. */
    length(rows: number, shape: HeadShape): number;
    fill(out: Int32Array, rows: number, spans: Int32Array, ranges: Int32Array, shape: HeadShape): void;
  };
}

export interface Device {
  readonly name: string;
  /** Everything that determines the bits of results: device, SIMD variant, library versions. */
  readonly variant: string;
  readonly threads: number;
  /**
   * Type of activations: outputs of matmuls, norms, attention and SwiGLU, the KV cache, and their gradients. The
   * residual stream and its gradient, statistics (1/rms, log-sum-exps, log-probs), logits and parameters are f32 on
   * every device.
   */
  readonly activations: Dtype;

  alloc(dtype: Dtype, length: number): Buffer;
  free(buffer: Buffer): void;
  /**
   * Runs `work`, then frees every buffer allocated inside it, even if it throws. Scopes nest; memory allocated outside
   * any scope is freed only by `free`.
   */
  scope<T>(work: () => T): T;
  /** A view of part of a buffer; offset and length are in elements. */
  part(buffer: Buffer, offset: number, length: number): Buffer;
  write(buffer: Buffer, data: Float32Array | Int32Array): void;
  /** Copies a buffer to the host; waits for queued work. */
  read(buffer: Buffer): Float32Array | Int32Array;
  fill(buffer: Buffer, value: number): void;
  /** Copies, converting if the types differ. */
  copy(from: Buffer, to: Buffer): void;

  /** Must be called when a weight's value has changed: copies of it are then outdated. */
  changed(weight: Weight): void;
  /** Frees the device's copies of a weight; call it before freeing the weight. */
  forget(weight: Weight): void;

  embed(weight: Weight, ids: Buffer, out: Buffer, rows: number): void;
  embedBackward(weight: Weight, ids: Buffer, dOut: Buffer, rows: number): void;
  /** out[T, rows] = x[T, columns] · Wᵀ; rows of `out` are `outStride(weight)` apart. */
  linear(weight: Weight, x: Buffer, out: Buffer, rows: number): void;
  /**
   * Computes out = swiGlu(x · Wᵀ) in one kernel, where W holds gate and up. Returns false and does nothing if no kernel
   * supports these sizes.
   */
  linearSwiGlu?(weight: Weight, x: Buffer, out: Buffer, rows: number): boolean;
  /**
   * Computes out = norm(x) · scale · Wᵀ, or swiGlu of it, where x is the residual stream. May return false like
   * `linearSwiGlu`.
   */
  linearNormed?(args: LinearNormedArgs): boolean;
  /** Computes stream += x · Wᵀ. May return false like `linearSwiGlu`. */
  linearAdd?(weight: Weight, x: Buffer, stream: Buffer, rows: number): boolean;
  /** Computes dx = dy · W (or += with `add`) and grad += dyᵀ · x. */
  linearBackward(args: LinearBackwardArgs): void;
  /** Number of elements between rows of `linear`'s output for this weight. */
  outStride(weight: Weight): number;

  /**
   * Computes into = x + residual (if given; `into` defaults to x), out = norm(into) · scale, and rstd = 1/rms of each
   * row for backward.
   */
  rmsNorm(args: RmsNormArgs): void;
  /** Adds to dx and to the scale's gradient. */
  rmsNormBackward(args: RmsNormBackwardArgs): void;

  /**
   * Computes q = rotary(norm(q of qkv)); writes k, treated likewise, and v to the KV cache. `bias` is added to the rows
   * of qkv first: this kernel reads them anyway, so a bias needs no separate pass. Norms and a bias are never given
   * together.
   */
  rotate(args: RotateArgs): void;
  /**
   * Copies the first tokens of a KV block to another address. Absent on devices where fragmented contexts cost nothing.
   */
  moveBlock?(kvCache: Buffer, from: BlockAddress, to: BlockAddress, tokens: number, shape: KvShape): void;
  /**
   * Runs `rotate` and `attention` for one new token per row in one kernel. Returns false and does nothing if there is
   * none.
   */
  rotateAttend?(args: RotateAttendArgs): boolean;
  /**
   * In place: turns gradients of rotated q, k and v into gradients of qkv; adds to the gradients of scales and bias.
   */
  rotateBackward(args: RotateBackwardArgs): void;
  /** Computes out = softmax(q · kᵀ / √d) · v over the keys and values that the layout lets each row see. */
  attention(args: AttentionArgs): void;
  /** Computes dqkv (gradients of rotated q and k, and v): writes the q part, adds to the k and v parts. */
  attentionBackward(args: AttentionBackwardArgs): void;

  /** Computes out = silu(gate) · up. */
  swiGlu(gateUp: Buffer, out: Buffer, rows: number, width: number): void;
  swiGluBackward(gateUp: Buffer, dOut: Buffer, dGateUp: Buffer, rows: number, width: number): void;

  gather(x: Buffer, ids: Buffer, out: Buffer, rows: number, width: number): void;
  /** Computes x[ids[t]] += y[t], in order of t. */
  scatterAdd(y: Buffer, ids: Buffer, x: Buffer, rows: number, width: number): void;
  addTo(x: Buffer, y: Buffer): void;

  /**
   * Computes, for each row, the target's log-prob, entropy and log-sum-exp of logits / temperature, in chunks of rows:
   * see lm-head.ts.
   */
  logProbs(args: LogProbsArgs): void;
  /** Writes dx and adds to head.grad, given the gradients of log-prob and entropy. */
  logProbsBackward(args: LogProbsBackwardArgs): void;

  /**
   * For each row of logits[T, V], `stride` elements apart: samples a token with the row's uniform number, and computes
   * its log-prob.
   */
  sample(args: SampleArgs): void;

  adamW(value: Buffer, grad: Buffer, m: Buffer, v: Buffer, step: AdamStep): void;
  /** Computes Σ x². */
  sumSquares(x: Buffer): number;

  /** Decoding steps without the host; absent if nothing would be gained. */
  readonly decoding?: Decoding;

  close(): void;
}
