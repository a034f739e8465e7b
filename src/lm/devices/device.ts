// Where arithmetic runs. A device owns memory, executes kernels in the order they are called, and hides how a weight is laid
// out. The model is written once against this interface; shapes: T rows (tokens), D width, H heads of d, G kv heads, V words.

/** bf16 only on devices whose `activations` are. */
export type Dtype = "f32" | "i32" | "bf16";

/** A piece of device memory. Where it lies means something to its device only. */
export interface Buffer {
  readonly dtype: Dtype;
  /** Elements. */
  readonly length: number;
  readonly address: number;
}

/** A matrix the model multiplies by, [rows, columns] with y = x · Wᵀ; the device keeps copies of it in whatever form is fast. */
export interface Weight {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly value: Buffer;
  /** Added to by backward kernels; absent where nothing is learned. */
  readonly grad: Buffer | null;
}

/** A learned vector: a norm's factors, or a bias. */
export interface Scale {
  readonly name: string;
  readonly value: Buffer;
  readonly grad: Buffer | null;
}

/**
 * Which tokens attend to which: runs of tokens ("segments") in a tree. A segment sees its ancestors and, up to each token,
 * itself. A plain batch of sequences is a forest of single segments; a group's shared prompt is a parent of its completions.
 */
export interface TokenLayout {
  /** T. */
  readonly tokens: number;
  readonly positions: Buffer;
  /** For each token: its run's block in the KV store, that block's capacity, and the token's index in the run. */
  readonly blocks: Buffer;
  readonly capacities: Buffer;
  readonly indices: Buffer;
  readonly segments: Buffer;
  readonly segmentCount: number;
  readonly ranges: Buffer;
  readonly rangeRows: Buffer;
  readonly runs: Buffer;
  readonly runCount: number;
  readonly trees: Buffer;
  readonly treeCount: number;
  /** The longest context of any token, itself included. */
  readonly maxContext: number;
  /** A table of the device's own, where decoding made one: `Decoding.sharing`. */
  readonly sharing?: Buffer;
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
  /** From 1. */
  readonly step: number;
  /** Factor for the gradient: clipping. */
  readonly gradient_scale: number;
}

/** Work that can be queued again. */
export interface Recording {
  run(): void;
  free(): void;
}

/** The heads that keys and values have. */
export type KvShape = Pick<HeadShape, "kvHeads" | "headDim">;

/** Where a run's keys and values lie in a store: `block` counts numbers, for kv head 0, `capacity` tokens. */
export interface RunPlace {
  readonly block: number;
  readonly capacity: number;
}

/** What lets steps of decoding, one token a row, follow each other on the device. */
export interface Decoding {
  /**
   * Records what `work` queues, without running it; the recording then runs as often as wanted on what its buffers hold, at
   * little cost. Memory allocated inside stays with it. `work` must not read, write or wait.
   */
  record(work: () => void): Recording;
  /** The random number of each row's key (two words a row) for the position behind the row's own: lm/engine/sampling/counter-rng.ts. */
  uniforms(seeds: Buffer, positions: Buffer, out: Buffer, rows: number): void;
  /** Turns the tables of a step into those of the next, in which each row's input is its token. */
  advance(tokens: Buffer, ids: Buffer, layout: TokenLayout): void;
  /** What a buffer holds at this point of the queue; the function waits for it. */
  readLater(buffer: Buffer): () => Int32Array;
  /** Where rows can read together what their contexts have in common: a table of a batch, made of its segments and ranges. */
  readonly sharing?: {
    /** Words for a batch of so many rows. */
    length(rows: number, shape: HeadShape): number;
    fill(out: Int32Array, rows: number, segments: Int32Array, ranges: Int32Array, shape: HeadShape): void;
  };
}

export interface Device {
  readonly name: string;
  /** What the same bits depend on: device, SIMD variant. */
  readonly variant: string;
  readonly threads: number;
  /**
   * How activations are stored: outputs of products, norms, attention and SwiGLU, the KV store, and the gradients of these. The
   * residual stream and its gradient, statistics (1/rms, log-sum-exps, log-probs), logits and parameters are f32 on every device.
   */
  readonly activations: Dtype;

  alloc(dtype: Dtype, length: number): Buffer;
  free(buffer: Buffer): void;
  /** Frees what was allocated inside when it ends. */
  scope<T>(work: () => T): T;
  /** A part of a buffer. */
  part(buffer: Buffer, offset: number, length: number): Buffer;
  write(buffer: Buffer, data: Float32Array | Int32Array): void;
  /** A copy. */
  read(buffer: Buffer): Float32Array | Int32Array;
  fill(buffer: Buffer, value: number): void;
  /** Converts where the types differ. */
  copy(from: Buffer, to: Buffer): void;

  /** Tells that a weight's value changed: copies of it are stale. */
  changed(weight: Weight): void;
  /** Gives up the device's own copies of a weight, before its memory is freed. */
  forget(weight: Weight): void;

  embed(weight: Weight, ids: Buffer, out: Buffer, rows: number): void;
  embedBackward(weight: Weight, ids: Buffer, dOut: Buffer, rows: number): void;
  /** out[T, rows] = x[T, columns] · Wᵀ; rows of `out` are `outStride(weight)` apart. */
  linear(weight: Weight, x: Buffer, out: Buffer, rows: number): void;
  /** out = swiGlu(x · Wᵀ), W being gate and up, in one go; false, and nothing done, where there is no kernel for it. */
  linearSwiGlu?(weight: Weight, x: Buffer, out: Buffer, rows: number): boolean;
  /** out = norm(x) · scale · Wᵀ, or swiGlu of it, x being the stream, likewise. */
  linearNormed?(
    weight: Weight,
    x: Buffer,
    scale: Scale,
    eps: number,
    out: Buffer,
    rows: number,
    isGated?: boolean,
  ): boolean;
  /** stream += x · Wᵀ, likewise. */
  linearAdd?(weight: Weight, x: Buffer, stream: Buffer, rows: number): boolean;
  /** dx = dy · W (or += with `add`), grad += dyᵀ · x. */
  linearBackward(weight: Weight, x: Buffer, dy: Buffer, dx: Buffer | null, rows: number, add?: boolean): void;
  /** Elements between rows of a product with this weight. */
  outStride(weight: Weight): number;

  /** into = x + residual (if given; `into` is x itself unless told); out = norm(into) · scale; 1/rms of each row is kept in `rstd`. */
  rmsNorm(
    x: Buffer,
    residual: Buffer | null,
    scale: Scale,
    out: Buffer,
    rstd: Buffer,
    rows: number,
    eps: number,
    into?: Buffer,
  ): void;
  /** dx += …; the scale's gradient too. */
  rmsNormBackward(x: Buffer, scale: Scale, rstd: Buffer, dOut: Buffer, dx: Buffer, rows: number): void;

  /**
   * q with norm and rotary position; k likewise and v into the store. `bias` is added to the rows of qkv first: here, since
   * this kernel reads them anyway, a bias costs no pass of its own. Norms and a bias never come together.
   */
  rotate(
    qkv: Buffer,
    norms: { readonly q: Scale; readonly k: Scale } | null,
    q: Buffer,
    rstd: Buffer,
    store: Buffer,
    layout: TokenLayout,
    rotary: Buffer,
    shape: HeadShape,
    bias?: Scale | null,
  ): void;
  /** Copies the keys and values of a run's first tokens to another place; absent where a context in pieces is as good as in one. */
  moveRun?(store: Buffer, from: RunPlace, to: RunPlace, tokens: number, shape: KvShape): void;
  /** `rotate` and `attention` of one new token a row; false, and nothing done, where there is no kernel for it. */
  rotateAttend?(
    qkv: Buffer,
    norms: { readonly q: Scale; readonly k: Scale } | null,
    store: Buffer,
    out: Buffer,
    layout: TokenLayout,
    rotary: Buffer,
    shape: HeadShape,
    bias?: Scale | null,
  ): boolean;
  /** In place: from the gradient of what `rotate` wrote to that of its rows; those of scales and bias are added to. */
  rotateBackward(
    dqkv: Buffer,
    qkv: Buffer,
    norms: { readonly q: Scale; readonly k: Scale } | null,
    rstd: Buffer,
    layout: TokenLayout,
    rotary: Buffer,
    shape: HeadShape,
    bias?: Scale | null,
  ): void;
  /** Each row's log-sum-exp is kept for the way back, unless there is none. */
  attention(q: Buffer, store: Buffer, out: Buffer, lse: Buffer | null, layout: TokenLayout, shape: HeadShape): void;
  /** dqkv (turned): its q part is set, its k and v parts are added to. */
  attentionBackward(
    q: Buffer,
    store: Buffer,
    out: Buffer,
    dOut: Buffer,
    lse: Buffer,
    dqkv: Buffer,
    layout: TokenLayout,
    shape: HeadShape,
  ): void;

  /** out = silu(gate) · up. */
  swiGlu(gateUp: Buffer, out: Buffer, rows: number, width: number): void;
  swiGluBackward(gateUp: Buffer, dOut: Buffer, dGateUp: Buffer, rows: number, width: number): void;

  gather(x: Buffer, ids: Buffer, out: Buffer, rows: number, width: number): void;
  /** x[ids[t]] += y[t], in order of t. */
  scatterAdd(y: Buffer, ids: Buffer, x: Buffer, rows: number, width: number): void;
  addTo(x: Buffer, y: Buffer): void;

  /** Log-prob of each row's target, entropy and log-sum-exp of logits / temperature, in chunks of rows. */
  logProbs(
    head: Weight,
    x: Buffer,
    targets: Buffer,
    temperature: number,
    rows: number,
    out: { readonly logp: Buffer; readonly entropy: Buffer; readonly lse: Buffer },
  ): void;
  /** dx = …, grad of the head += …, given the gradients of log-prob and entropy. */
  logProbsBackward(
    head: Weight,
    x: Buffer,
    targets: Buffer,
    temperature: number,
    rows: number,
    kept: { readonly entropy: Buffer; readonly lse: Buffer },
    dLogp: Buffer,
    dEntropy: Buffer,
    dx: Buffer,
  ): void;

  /** logits[T, V] of hidden states; rows are `outStride(head)` apart. A token and its log-prob for each row, drawn with `uniforms`. */
  sample(
    logits: Buffer,
    vocabulary: number,
    stride: number,
    rows: number,
    draw: { readonly temperatures: Buffer; readonly uniforms: Buffer },
    out: { readonly tokens: Buffer; readonly logp: Buffer },
  ): void;

  adamW(value: Buffer, grad: Buffer, m: Buffer, v: Buffer, step: AdamStep): void;
  /** Σ x². */
  sumSquares(x: Buffer): number;

  /** For decoding step after step without the host; absent where nothing would be gained. */
  readonly decoding?: Decoding;

  close(): void;
}
