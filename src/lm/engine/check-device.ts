// Checks a device by a tiny model: what it samples and learns must be what the CPU does. A GPU's driver that computes
// something else would otherwise be noticed only by a model that learns nothing.
import { SqlEnvError } from "../../errors.ts";
import { createCpuDevice } from "../devices/cpu/device.ts";
import type { Device } from "../devices/index.ts";
import type { ModelConfig } from "../model/config.ts";
import { createModel, freeModel, parametersChanged } from "../model/parameters.ts";
import type { Datum } from "./engine.ts";
import { computeLogprobs, learn } from "./learning/learner.ts";
import { Sampler } from "./sampling/sampler.ts";

/** Rounding differs by less than 1e-4. */
const TOLERANCE = 1e-2;

const TINY: ModelConfig = {
  architecture: "Qwen3ForCausalLM",
  vocab_size: 48,
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  rope_scaling: null,
  max_position_embeddings: 128,
  tie_word_embeddings: true,
  qk_norm: true,
  qkv_bias: false,
  bos_token_id: null,
  eos_token_ids: [],
  pad_token_id: null,
};

/** Throws `webgpu` if a device computes other numbers than the CPU, and what the device throws. */
export async function checkDevice(device: Device): Promise<void> {
  const cpu = createCpuDevice();
  try {
    const [want, got] = [await numbersOf(cpu), await numbersOf(device)];
    const at = want.findIndex((value, i) => !(Math.abs(got[i]! - value) <= TOLERANCE * Math.max(1, Math.abs(value))));
    if (at < 0) return;
    throw new SqlEnvError("webgpu", {
      what: "the GPU computes wrong numbers",
      value: `${got[at]} instead of ${want[at]}`,
      remedy: "update its driver or the browser",
    });
  } finally {
    cpu.close();
  }
}

/** Tokens and log-probs that a tiny model samples greedily, and losses and log-probs of a training step. */
async function numbersOf(device: Device): Promise<number[]> {
  const model = createModel(device, TINY, { trains: true });
  const sampler = new Sampler(model);
  const { values, grads } = model;
  const moments = [device.alloc("f32", values.length), device.alloc("f32", values.length)] as const;
  try {
    for (const { shape, value } of model.tensors) {
      const numbers = Float32Array.from({ length: value.length }, (_, i) => Math.sin(i * i + 7 * value.length));
      device.write(value, shape.length === 1 ? numbers.map((one) => 1 + one / 4) : numbers.map((one) => one / 3));
    }
    for (const moment of moments) device.fill(moment, 0);
    parametersChanged(model);
    const prompts = [some(37, 1), some(5, 2), some(21, 3)];
    const batch: Datum[] = prompts.map((tokens) => ({ tokens, weights: tokens.map((_, i) => (i < 2 ? 0 : 1)) }));
    const samples = await Promise.all(
      prompts.map((prompt, i) =>
        sampler.sample({ prompt, max_new_tokens: 8, stop_ids: [], temperature: 0, key: ["check", i] }),
      ),
    );
    const { loss } = learn(model, batch, { loss: { type: "cross_entropy" } });
    const squares = device.sumSquares(grads!);
    const adam = { learning_rate: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, step: 1 };
    device.adamW(values, grads!, ...moments, { ...adam, gradient_scale: 1 });
    parametersChanged(model);
    return [
      ...samples.flatMap(({ tokens, logprobs }) => [...tokens, ...logprobs]),
      ...[loss, Math.sqrt(squares)],
      ...computeLogprobs(model, batch, 1).flatMap((one) => [...one]),
    ];
  } finally {
    sampler.close(new Error("checked"));
    for (const moment of moments) device.free(moment);
    freeModel(model);
  }
}

/** Token ids. */
function some(count: number, seed: number): number[] {
  return Array.from({ length: count }, (_, i) => (i * i + 11 * seed * i + seed) % TINY.vocab_size);
}
