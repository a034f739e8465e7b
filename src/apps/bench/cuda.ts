// Speed of the CUDA device at real model sizes: the GPU's limits, each kernel against them, training steps and sampling.
import type { CudaDevice } from "../../lm/devices/cuda/device.ts";
import type { Buffer, Device, HeadShape, TokenLayout, Weight } from "../../lm/devices/index.ts";
import type { Datum, LocalEngine } from "../../lm/engine/index.ts";
import type { ModelConfig } from "../../lm/model/config.ts";
import { KNOWN_MODELS } from "../../lm/model/formats/known.ts";
import { forestLayout, layoutOf, type NewTokens } from "../../lm/model/layout.ts";
import { createModel, type Model, parameterCount, parametersChanged } from "../../lm/model/parameters.ts";
import { random } from "../../random.ts";
import { median } from "./median.ts";

const BASE = {
  architecture: "Qwen3ForCausalLM",
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  rope_scaling: null,
  max_position_embeddings: 4096,
  vocab_size: 151_936,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 8,
  head_dim: 128,
  tie_word_embeddings: true,
  qk_norm: true,
  qkv_bias: false,
  bos_token_id: null,
  eos_token_ids: [151_645],
  pad_token_id: null,
} as const;

/** Architectures of the measured models; their weights are random. */
export const CUDA_MODELS: Readonly<Record<string, ModelConfig>> = {
  "qwen3-0.6b": { ...BASE, hidden_size: 1024, intermediate_size: 3072 },
  "qwen3-1.7b": { ...BASE, hidden_size: 2048, intermediate_size: 6144 },
  "qwen2.5-1.5b": shapeOf("Qwen/Qwen2.5-1.5B-Instruct"),
  "llama-3.2-1b": shapeOf("meta-llama/Llama-3.2-1B-Instruct"),
  "smollm2-135m": shapeOf("HuggingFaceTB/SmolLM2-135M-Instruct"),
};

function shapeOf(name: string): ModelConfig {
  return { ...KNOWN_MODELS[name]!.config, max_position_embeddings: BASE.max_position_embeddings };
}

/** Sizes of the measurements; the peer gets the same. */
export const CUDA_SPEC = { sequences: 8, length: 1024, prompt: 512, new_tokens: 128, batch_sizes: [1, 8, 64] } as const;

export interface RooflineRow {
  readonly kernel: string;
  readonly milliseconds: number;
  /** Time of one call. */
  readonly gigabytes: number;
  readonly teraflops: number;
  /** Share of the limit that bounds it. */
  readonly share: number;
  readonly bound: "memory" | "arithmetic";
}

export interface TrainingRate {
  readonly tokens_per_s: number;
  readonly seconds: number;
  readonly forward_backward_s: number;
  readonly optimizer_s: number;
  readonly tflops: number;
  /** Share of the measured matmul limit. */
  readonly share: number;
  readonly peak_bytes: number;
}

export interface DecodeRate {
  readonly batch_size: number;
  readonly decode_tokens_per_s: number;
  readonly tokens_per_s: number;
  readonly step_ms: number;
  readonly prefill_tokens_per_s: number;
}

/** The GPU's limits, measured. */
export interface Ceilings {
  readonly tflops: number;
  readonly terabytes_per_s: number;
}

/** Matmuls of 8192³ and copies of 4 GB, to which everything else is compared. */
export function measureCeilings(device: CudaDevice): Ceilings {
  return device.scope(() => {
    const n = 8192;
    const { activations: A } = device;
    const value = device.alloc("f32", n * n);
    randomize(device, value, 0.02);
    const weight: Weight = { name: "ceiling", rows: n, columns: n, value, grad: null };
    const [x, out] = [device.alloc(A, n * n), device.alloc(A, n * n)];
    randomize(device, x, 1);
    const milliseconds = medianTime(device, () => device.linear(weight, x, out, n));
    const [from, to] = [device.alloc("f32", 2 ** 30), device.alloc("f32", 2 ** 30)];
    const copy = medianTime(device, () => device.copy(from, to));
    return { tflops: (2 * n ** 3) / milliseconds / 1e9, terabytes_per_s: (2 * 4 * 2 ** 30) / copy / 1e9 };
  });
}

/** A model with random weights on the device. */
export function randomModel(device: CudaDevice, config: ModelConfig, trains: boolean): Model {
  const model = createModel(device, config, { trains });
  for (const { shape, value } of model.tensors) {
    if (shape.length === 1) device.fill(value, 1);
    else randomize(device, value, 0.02);
  }
  parametersChanged(model);
  return model;
}

/** Forward, backward and AdamW over a batch of random sequences. */
export async function measureTraining(
  engine: LocalEngine,
  device: CudaDevice,
  ceilings: Ceilings,
  { sequences, length }: { readonly sequences: number; readonly length: number } = CUDA_SPEC,
): Promise<TrainingRate> {
  const { config } = engine.model;
  const batch = contexts(config.vocab_size, sequences, length).map(
    (tokens): Datum => ({ tokens, weights: tokens.map((_, i) => (i === 0 ? 0 : 1)) }),
  );
  const [learning, moving, whole]: number[][] = [[], [], []];
  for (let i = 0; i < 6; i++) {
    const start = performance.now();
    await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } });
    device.synchronize();
    const middle = performance.now();
    await engine.optimStep({ learning_rate: 1e-6 });
    device.synchronize();
    const end = performance.now();
    if (i < 2) continue; // warmup
    learning!.push(middle - start);
    moving!.push(end - middle);
    whole!.push(end - start);
  }
  const seconds = median(whole!) / 1000;
  const tokens = sequences * length;
  const { num_hidden_layers: L, num_attention_heads: H, head_dim: d } = config;
  // Per token and parameter 2 FLOPs forward and 4 backward; attention's two matmuls over half the square, likewise.
  const flops = 6 * parameterCount(engine.model) * tokens + 6 * L * H * d * tokens * length;
  const tflops = flops / seconds / 1e12;
  return {
    tokens_per_s: tokens / seconds,
    seconds,
    forward_backward_s: median(learning!) / 1000,
    optimizer_s: median(moving!) / 1000,
    tflops,
    share: tflops / ceilings.tflops,
    peak_bytes: device.memory.reserved,
  };
}

/** New tokens per second, each sequence with its own prompt, or `prompts` prompts for all. */
export async function measureDecode(
  engine: LocalEngine,
  batch_size: number,
  {
    prompt,
    new_tokens,
    prompts: different = batch_size,
  }: { readonly prompt: number; readonly new_tokens: number; readonly prompts?: number } = CUDA_SPEC,
): Promise<DecodeRate> {
  const own = contexts(engine.model.config.vocab_size, batch_size, prompt);
  const prompts = own.map((_, i) => own[i % different]!);
  const run = async (max_new_tokens: number) => {
    engine.forgetCache();
    const start = performance.now();
    await Promise.all(
      prompts.map((tokens, i) => engine.sample({ prompt: tokens, max_new_tokens, stop_ids: [], key: ["bench", i] })),
    );
    return (performance.now() - start) / 1000;
  };
  const timesOf = async (n: number) => {
    await run(n);
    return median([await run(n), await run(n), await run(n)]);
  };
  const [whole, first] = [await timesOf(new_tokens), await timesOf(1)];
  return {
    batch_size,
    decode_tokens_per_s: (batch_size * (new_tokens - 1)) / (whole - first),
    tokens_per_s: (batch_size * new_tokens) / whole,
    step_ms: (1000 * (whole - first)) / (new_tokens - 1),
    prefill_tokens_per_s: (batch_size * prompt) / first,
  };
}

/** Every kernel of a training step at its real size, against the GPU's limits. */
export function measureRoofline(
  model: Model,
  device: CudaDevice,
  ceilings: Ceilings,
  tokens = 8192,
  length = 1024,
): RooflineRow[] {
  const { config } = model;
  const {
    hidden_size: D,
    intermediate_size: F,
    num_attention_heads: H,
    num_key_value_heads: G,
    head_dim: d,
    vocab_size: V,
  } = config;
  const layer = model.layers[0]!;
  const A = device.activations;
  const a = A === "bf16" ? 2 : 4; // bytes
  const T = tokens;
  const rows: RooflineRow[] = [];
  device.scope(() => {
    const shape = { heads: H, kvHeads: G, headDim: d, eps: 1e-6 };
    const runs = contexts(V, T / length, length).map((ids) => ({ tokens: ids, parent: null }));
    const { layout, kvLength } = forestLayout(device, runs, shape);
    const act = (width: number) => {
      const buffer = device.alloc(A, T * width);
      randomize(device, buffer, 1);
      return buffer;
    };
    const floats = (width: number, count = T) => {
      const buffer = device.alloc("f32", count * width);
      randomize(device, buffer, 1);
      return buffer;
    };
    const measure = (kernel: string, bytes: number, flops: number, work: () => void) => {
      const milliseconds = medianTime(device, work);
      const [byMemory, byArithmetic] = [bytes / ceilings.terabytes_per_s / 1e9, flops / ceilings.tflops / 1e9];
      rows.push({
        kernel,
        milliseconds,
        gigabytes: bytes / 1e9,
        teraflops: flops / 1e12,
        share: Math.max(byMemory, byArithmetic) / milliseconds,
        bound: byMemory > byArithmetic ? "memory" : "arithmetic",
      });
    };
    const ids = device.alloc("i32", T);
    device.write(ids, Int32Array.from(runs.flatMap(({ tokens }) => tokens)));
    const [x, dx, h, rstd] = [floats(D), floats(D), act(D), floats(1)];
    const width = (H + 2 * G) * d;
    const [qkv, dqkv, q, attended, dAttended] = [act(width), act(width), act(H * d), act(H * d), act(H * d)];
    const [headRstd, lse, store] = [floats(H + G), floats(H), device.alloc(A, kvLength)];
    const [gateUp, dGateUp, activated] = [act(2 * F), act(2 * F), act(F)];
    measure("embed", T * D * 8, 0, () => device.embed(model.embedding, ids, x, T));
    measure("rmsNorm with residual", T * D * (8 + 2 * a), 0, () =>
      device.rmsNorm(x, h, layer.attentionNorm, h, rstd, T, 1e-6),
    );
    const linear = (name: string, weight: Weight, from: Buffer, to: Buffer) => {
      const { rows: n, columns: k } = weight;
      measure(`${name} [${T}, ${k}]·[${k}, ${n}]`, a * (T * k + k * n + T * n), 2 * T * k * n, () =>
        device.linear(weight, from, to, T),
      );
    };
    const back = (name: string, weight: Weight, from: Buffer, dy: Buffer, to: Buffer) => {
      const { rows: n, columns: k } = weight;
      measure(`${name}, backward (dx and dW)`, a * 2 * (T * k + T * n) + (a + 8) * k * n, 4 * T * k * n, () =>
        device.linearBackward(weight, from, dy, to, T),
      );
    };
    linear("qkv", layer.qkv, h, qkv);
    measure("rotate", 2 * T * width * a, 0, () =>
      device.rotate(qkv, layer.headNorms, q, headRstd, store, layout, model.rotary, shape, layer.qkvBias),
    );
    const square = ((T / length) * (length * (length + 1))) / 2;
    const attentionBytes = a * T * (2 * H + 2 * G) * d;
    measure("attention", attentionBytes, 4 * square * H * d, () =>
      device.attention(q, store, attended, lse, layout, shape),
    );
    linear("output", layer.output, attended, h);
    linear("gate and up", layer.gateUp, h, gateUp);
    measure("swiGlu", 3 * T * F * a, 0, () => device.swiGlu(gateUp, activated, T, F));
    linear("down", layer.down, activated, h);
    back("down", layer.down, activated, dx, activated);
    measure("swiGlu backward", 5 * T * F * a, 0, () => device.swiGluBackward(gateUp, activated, dGateUp, T, F));
    back("gate and up", layer.gateUp, h, dGateUp, h);
    measure("rmsNorm backward", T * D * (12 + a), 0, () => device.rmsNormBackward(x, layer.mlpNorm, rstd, h, dx, T));
    back("output", layer.output, attended, dx, dAttended);
    measure("attention backward", 2 * attentionBytes, 10 * square * H * d, () =>
      device.attentionBackward(q, store, attended, dAttended, lse, dqkv, layout, shape),
    );
    measure("rotate backward", 3 * T * (H + G) * d * a, 0, () =>
      device.rotateBackward(dqkv, qkv, layer.headNorms, headRstd, layout, model.rotary, shape, layer.qkvBias),
    );
    back("qkv", layer.qkv, h, dqkv, h);
    measure("embed backward", T * D * 12, 0, () => device.embedBackward(model.embedding, ids, dx, T));
    const out = { logp: floats(1), entropy: floats(1), lse: floats(1) };
    const head = model.head;
    const logits = T * device.outStride(head);
    measure("LM head: matmul and log-probs", a * (T * D + V * D) + 8 * logits, 2 * T * D * V, () =>
      device.scope(() => device.logProbs(head, h, ids, 1, T, out)),
    );
    const [dLogp, dEntropy] = [floats(1), floats(1)];
    measure("LM head: forward and backward", a * 3 * (T * D + V * D) + (12 + 3 * a) * logits, 6 * T * D * V, () =>
      device.scope(() => {
        device.logProbs(head, h, ids, 1, T, out);
        device.logProbsBackward(head, h, ids, 1, T, out, dLogp, dEntropy, attended);
      }),
    );
    measure("copy of the residual stream", 8 * T * D, 0, () => device.copy(x, dx));
  });
  return rows;
}

/** The kernels of a decode step in a CUDA graph, time per call; each runs over all layers, so weights are not cached. */
export function measureDecodeRoofline(
  model: Model,
  device: CudaDevice,
  ceilings: Ceilings,
  rows: number,
  context = CUDA_SPEC.prompt,
): RooflineRow[] {
  const { config, layers } = model;
  const { hidden_size: D, intermediate_size: F, num_attention_heads: H, num_key_value_heads: G, head_dim: d } = config;
  const A = device.activations;
  const a = A === "bf16" ? 2 : 4; // bytes
  const shape = { heads: H, kvHeads: G, headDim: d, eps: 1e-6 };
  return device.scope(() => {
    const make = (dtype: Buffer["dtype"], length: number, value: number) => {
      const buffer = device.alloc(dtype, length);
      device.fill(buffer, value);
      return buffer;
    };
    const act = (width: number) => make(A, rows * width, 0.01);
    const floats = (width: number, value = 1) => make("f32", rows * width, value);
    const [h, qkv, q, attended, activated] = [act(D), act((H + 2 * G) * d), act(H * d), act(H * d), act(F)];
    const [gateUp, added] = [act(2 * F), act(D)];
    const [x, rstd, headRstd, logits] = [floats(D), floats(1), floats(H + G), floats(device.outStride(model.head))];
    const capacity = (context + 8) & ~7;
    const unit = 2 * G * d * capacity;
    const news = Array.from({ length: rows }, (_, i) => ({
      ...{ own: { block: i * unit, capacity }, start: context - 1, count: 1, ancestors: [] },
    }));
    const stores = layers.map(() => make(A, (rows + 1) * unit, 0.01));
    const one = [{ block: rows * unit, capacity, tokens: context - 1, row: 0 }];
    const shared = news.map(({ own }) => ({ own, start: 0, count: 1, ancestors: one }));
    const [layout, sharedLayout] = [decodeLayout(device, news, shape), decodeLayout(device, shared, shape)];
    const attend = (i: number, of: TokenLayout) => {
      const { headNorms, qkvBias } = layers[i]!;
      if (device.rotateAttend?.(qkv, headNorms, stores[i]!, attended, of, model.rotary, shape, qkvBias)) return;
      device.rotate(qkv, headNorms, q, headRstd, stores[i]!, of, model.rotary, shape, qkvBias);
      device.attention(q, stores[i]!, attended, null, of, shape);
    };
    const [draw, out] = [
      { temperatures: floats(1), uniforms: floats(1, 0.5) },
      { tokens: make("i32", rows, 0), logp: floats(1) },
    ];
    const weightBytes = (n: number, k: number) => a * (n * k + rows * (n + k));
    const project = (i: number, which: "output" | "down", from: Buffer) => {
      const weight = layers[i]![which];
      if (!device.linearAdd?.(weight, from, x, rows)) device.linear(weight, from, added, rows);
    };
    const normed = (i: number) => {
      const { qkv: weight, attentionNorm } = layers[i]!;
      if (device.linearNormed?.(weight, x, attentionNorm, 1e-6, qkv, rows)) return;
      device.rmsNorm(x, null, attentionNorm, h, rstd, rows, 1e-6);
      device.linear(weight, h, qkv, rows);
    };
    const gated = (i: number) => {
      const { gateUp: weight, mlpNorm } = layers[i]!;
      if (device.linearNormed?.(weight, x, mlpNorm, 1e-6, activated, rows, true)) return;
      device.rmsNorm(x, null, mlpNorm, h, rstd, rows, 1e-6);
      if (device.linearSwiGlu?.(weight, h, activated, rows)) return;
      device.linear(weight, h, gateUp, rows);
      device.swiGlu(gateUp, activated, rows, F);
    };
    const kernels: readonly (readonly [name: string, bytes: number, work: (layer: number) => void])[] = [
      ["rmsNorm", rows * D * (4 + a), (i) => device.rmsNorm(x, null, layers[i]!.attentionNorm, h, rstd, rows, 1e-6)],
      ["norm and qkv", weightBytes((H + 2 * G) * d, D), normed],
      [
        ...(["positions and attention", a * rows * (2 * (H + G) * d + 2 * G * d * context)] as const),
        (i) => attend(i, layout),
      ],
      [
        ...(["… one prompt for all", a * (rows * 2 * (H + 2 * G) * d + 2 * G * d * context)] as const),
        (i) => attend(i, sharedLayout),
      ],
      ["output, added", weightBytes(D, H * d), (i) => project(i, "output", attended)],
      ["norm, gate, up and SwiGLU", weightBytes(2 * F, D), gated],
      ["down, added", weightBytes(D, F), (i) => project(i, "down", activated)],
      ["head", weightBytes(config.vocab_size, D), () => device.linear(model.head, h, logits, rows)],
      [
        ...(["sample", 4 * rows * config.vocab_size] as const),
        () => device.sample(logits, config.vocab_size, device.outStride(model.head), rows, draw, out),
      ],
    ];
    for (const [, , work] of kernels) work(0); // makes the weights' copies and compiles kernels
    return kernels.map(([kernel, bytes, work]): RooflineRow => {
      const graph = device.decoding!.capture(() => layers.forEach((_, i) => void work(i)));
      const milliseconds = medianTime(device, () => graph.launch()) / layers.length;
      graph.free();
      const share = bytes / ceilings.terabytes_per_s / 1e9 / milliseconds;
      return {
        kernel: `${kernel}, ${rows} rows`,
        milliseconds,
        gigabytes: bytes / 1e9,
        teraflops: 0,
        share,
        bound: "memory",
      };
    });
  });
}

/** A layout with the tables of decoding. */
function decodeLayout(device: CudaDevice, news: readonly NewTokens[], shape: HeadShape): TokenLayout {
  const layout = layoutOf(device, news, [0]);
  const table = device.decoding?.sharing;
  if (!table) return layout;
  const words = new Int32Array(table.length(news.length, shape));
  const [spans, ranges] = [layout.spans, layout.ranges].map((buffer) => device.read(buffer) as Int32Array);
  table.fill(words, news.length, spans!, ranges!, shape);
  const sharing = device.alloc("i32", words.length);
  device.write(sharing, words);
  return { ...layout, sharing };
}

/** Contexts of random tokens. */
function contexts(vocabulary: number, count: number, length: number): number[][] {
  const r = random("bench cuda", count, length);
  return Array.from({ length: count }, () => Array.from({ length }, () => r.int(1, vocabulary - 1)));
}

const BLOCK = 2 ** 20;

/** Normally distributed numbers, one block repeated: a gigabyte of fresh ones would take a minute. */
export function randomize(device: Device, buffer: Buffer, deviation: number): void {
  const block = blockOf(deviation).subarray(0, buffer.length);
  device.write(buffer, block);
  for (let done = block.length; done < buffer.length; done *= 2) {
    const count = Math.min(done, buffer.length - done);
    device.copy(device.part(buffer, 0, count), device.part(buffer, done, count));
  }
}

const blocks = new Map<number, Float32Array>();

function blockOf(deviation: number): Float32Array {
  let block = blocks.get(deviation);
  if (!block) {
    const r = random("block", deviation);
    block = Float32Array.from({ length: BLOCK }, () => r.normal(0, deviation));
    blocks.set(deviation, block);
  }
  return block;
}

/** Median GPU milliseconds of several calls, after warmup. */
function medianTime(device: CudaDevice, work: () => void): number {
  for (let i = 0; i < 3; i++) work();
  return median(Array.from({ length: 9 }, () => device.time(work)));
}
