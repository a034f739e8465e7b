// Measures the memory of a GRPO step and compares it with the estimate: full and LoRA training, with and without
// recomputation and a KL term. Weights and episodes are random, since only sizes matter.
import type { CpuDevice } from "../../lm/devices/cpu/device.ts";
import type { CudaDevice } from "../../lm/devices/cuda/device.ts";
import {
  cudaLimits,
  type Datum,
  estimateMemory,
  LocalEngine,
  type MemoryEstimate,
  type MemoryPlace,
} from "../../lm/engine/index.ts";
import { packContexts } from "../../lm/engine/learning/pack.ts";
import type { ModelConfig } from "../../lm/model/config.ts";
import { addLora, type LoraSpec, loraLength } from "../../lm/model/lora.ts";
import { createModel, parameterCount, parametersChanged } from "../../lm/model/parameters.ts";
import { random } from "../../random.ts";
import { POLICY_LOSSES } from "../../rl/loss.ts";
import { CUDA_MODELS, randomize } from "./cuda.ts";

/** Architectures that can be measured. */
export const MEMORY_MODELS: Readonly<Record<string, ModelConfig>> = {
  small: {
    ...CUDA_MODELS["qwen3-0.6b"]!,
    hidden_size: 256,
    intermediate_size: 768,
    num_hidden_layers: 6,
    vocab_size: 4_096,
    num_attention_heads: 8,
    num_key_value_heads: 4,
    head_dim: 32,
    eos_token_ids: [1],
  },
  ...CUDA_MODELS,
};

/** A training setup. */
export interface MemoryCase {
  readonly lora?: LoraSpec | undefined;
  readonly recompute: boolean;
  /** Whether there is a KL term. */
  readonly reference: boolean;
}

/** Size of a step: questions, episodes per question, and tokens per prompt and completion. */
export interface StepSize {
  readonly questions: number;
  readonly generations: number;
  readonly prompt: number;
  readonly completion: number;
}

export interface MemoryMeasure extends MemoryCase {
  readonly estimate: MemoryEstimate;
  /** Peak bytes as counted by the device. */
  readonly peak: number;
  /** The estimate divided by the peak. */
  readonly ratio: number;
  readonly parameters: number;
  readonly learned: number;
  readonly rows: number;
  /** Seconds per phase of the second step; the first is warmup. */
  readonly seconds: {
    readonly sampling: number;
    readonly reference: number;
    readonly learning: number;
    readonly all: number;
  };
  readonly tokens: number;
}

/** Runs two steps on the device, then closes it. */
export async function measureMemory(
  device: CpuDevice | CudaDevice,
  config: ModelConfig,
  { lora, recompute, reference }: MemoryCase,
  size: StepSize,
): Promise<MemoryMeasure> {
  const place: MemoryPlace =
    "gpu" in device ? { device: "cuda", precision: device.precision, memory: device.gpu.memory } : { device: "cpu" };
  const options = { trains: true, recompute, lora, reference };
  const limits = "gpu" in device ? cudaLimits("the model", config, device, options) : undefined;
  const weights = lora && device.activations === "bf16" ? "bf16" : "f32";
  const plain = createModel(device, config, { trains: !lora, weights });
  for (const { shape, value } of plain.tensors) {
    if (shape.length === 1) device.fill(value, 1);
    else randomize(device, value, 0.02);
  }
  parametersChanged(plain);
  const model = lora ? addLora(plain, lora, "gpu" in device ? { base: "bf16" } : {}) : plain;
  const engine = new LocalEngine(model, { recompute, reference, losses: POLICY_LOSSES, ...limits });
  try {
    const parameters = parameterCount(model);
    let seconds = { sampling: 0, reference: 0, learning: 0, all: 0 };
    let batch: Datum[] = [];
    for (let step = 0; step < 2; step++) ({ batch, seconds } = await grpoStep(engine, size, step, reference));
    const part = largestPart(batch, size, limits?.maxRows);
    const contexts = size.questions * size.generations;
    const cacheTokens = engine.cacheCapacity;
    const promptRows = Math.min(size.questions * size.prompt, (limits?.maxRows ?? Infinity) + size.prompt);
    const sizes = { rows: part.rows, learned: part.learned, contexts, cacheTokens, promptRows };
    const estimate = estimateMemory(config, { ...options, place, ...sizes });
    const { peak } = device.memory;
    const learned = lora ? loraLength(config, lora) : parameters;
    const tokens = batch.reduce((sum, datum) => sum + datum.tokens.length, 0);
    const ratio = estimate.total / peak;
    return { lora, recompute, reference, estimate, peak, ratio, parameters, learned, rows: part.rows, seconds, tokens };
  } finally {
    await engine.close();
  }
}

/** Samples completions, computes reference log-probs for a KL term, and takes an optimizer step. */
async function grpoStep(engine: LocalEngine, size: StepSize, step: number, reference: boolean) {
  const { questions, generations, prompt, completion } = size;
  const { vocab_size } = engine.model.config;
  const clock = (since: number) => (performance.now() - since) / 1000;
  const started = performance.now();
  const samples = await Promise.all(
    Array.from({ length: questions * generations }, async (_, i) => {
      const draw = random("memory", step, Math.floor(i / generations));
      const ids = Array.from({ length: prompt }, () => draw.int(0, vocab_size - 1));
      const key = ["memory", step, i];
      const { tokens } = await engine.sample({ prompt: ids, max_new_tokens: completion, stop_ids: [], key });
      return { ids, tokens };
    }),
  );
  const sampling = clock(started);
  const plain = samples.map(({ ids, tokens }, i): Datum => {
    const weights = [...ids.map(() => 0), ...tokens.map(() => 1)];
    return { tokens: [...ids, ...tokens], weights, sequence: i, advantage: (i % generations) - (generations - 1) / 2 };
  });
  const inferenceStarted = performance.now();
  const ref_logp = reference ? await engine.logprobs(plain, { weights: "reference" }) : null;
  const inference = clock(inferenceStarted);
  const learning = performance.now();
  const batch = ref_logp ? plain.map((datum, i) => ({ ...datum, ref_logp: ref_logp[i]! })) : plain;
  await engine.forwardBackward(batch, { loss: { type: "policy", loss_type: "dapo", beta: reference ? 0.04 : 0 } });
  await engine.optimStep({ learning_rate: 1e-6, max_grad_norm: 1 });
  return { batch, seconds: { sampling, reference: inference, learning: clock(learning), all: clock(started) } };
}

/** Number of rows in the largest part that the learner splits a batch into, and how many of them are trained on. */
function largestPart(batch: readonly Datum[], { completion }: StepSize, maxRows = 4_096) {
  let members: Datum[] = [];
  let best = { rows: 0, learned: 0 };
  for (const datum of batch) {
    const tried = [...members, datum];
    const { rows } = packContexts(tried.map(({ tokens }) => tokens));
    if (rows > maxRows && members.length > 0) {
      members = [datum];
      continue;
    }
    members = tried;
    if (rows > best.rows) best = { rows, learned: tried.length * completion };
  }
  return best;
}
