// Measures the CUDA device at real model sizes: the GPU's limits, training steps and sampling.
import type { CudaDevice } from "../../lm/devices/cuda/device.ts";
import type { Buffer, Device, Weight } from "../../lm/devices/index.ts";
import type { Datum, LocalEngine } from "../../lm/engine/index.ts";
import type { ModelConfig } from "../../lm/model/config.ts";
import { KNOWN_MODELS } from "../../lm/model/formats/known.ts";
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

/** Architectures of the measured models, whose weights are random. */
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

/** Sizes of the measurements; the peer uses the same. */
export const CUDA_SPEC = { sequences: 8, length: 1024, prompt: 512, new_tokens: 128, batch_sizes: [1, 8, 64] } as const;

export interface TrainingRate {
  readonly tokens_per_s: number;
  readonly seconds: number;
  readonly forward_backward_s: number;
  readonly optimizer_s: number;
  readonly tflops: number;
  /** Share of the measured matmul peak. */
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

/** The GPU's measured limits. */
export interface Ceilings {
  readonly tflops: number;
  readonly terabytes_per_s: number;
}

/** Measures matmuls of 8192³ and copies of 4 GB, to which everything else is compared. */
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

/** Creates a model with random weights on the device. */
export function randomModel(device: CudaDevice, config: ModelConfig, trains: boolean): Model {
  const model = createModel(device, config, { trains });
  for (const { shape, value } of model.tensors) {
    if (shape.length === 1) device.fill(value, 1);
    else randomize(device, value, 0.02);
  }
  parametersChanged(model);
  return model;
}

/** Measures forward, backward and AdamW over a batch of random sequences. */
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
  // Per token and parameter, 2 FLOPs forward and 4 backward. Attention has two matmuls over half of the square, counted
  // the same way.
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

/** Measures new tokens per second; each sequence has its own prompt, or `prompts` prompts are shared. */
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

/** Makes contexts of random tokens. */
export function contexts(vocabulary: number, count: number, length: number): number[][] {
  const r = random("bench cuda", count, length);
  return Array.from({ length: count }, () => Array.from({ length }, () => r.int(1, vocabulary - 1)));
}

const BLOCK = 2 ** 20;

/** Fills a buffer with normally distributed numbers, repeating one block: generating a gigabyte would take a minute. */
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

/** Median GPU milliseconds over several calls, after warmup. */
export function medianTime(device: CudaDevice, work: () => void): number {
  for (let i = 0; i < 3; i++) work();
  return median(Array.from({ length: 9 }, () => device.time(work)));
}
