// Measures WebGPU beside the other devices of this machine, with the same code for each: a matmul, training, decoding.
import type { Buffer, Device, Weight } from "../../lm/devices/index.ts";
import type { WebGpuDevice } from "../../lm/devices/webgpu/device.ts";
import { program } from "../../lm/devices/webgpu/program.ts";
import { LocalEngine } from "../../lm/engine/index.ts";
import type { ModelConfig } from "../../lm/model/config.ts";
import { createModel, parameterCount, parametersChanged } from "../../lm/model/parameters.ts";
import { contexts, randomize } from "./cuda.ts";
import { ENGINE_MODELS } from "./engine.ts";
import { median } from "./median.ts";

/** The measured models: the starter's shape, one of 82M parameters, which other WebGPU trainers report, and a tiny one. */
export const WEBGPU_MODELS: Readonly<Record<string, ModelConfig>> = {
  starter: ENGINE_MODELS.starter!,
  "82m": {
    ...ENGINE_MODELS.starter!,
    vocab_size: 50_257,
    hidden_size: 768,
    intermediate_size: 2048,
    num_attention_heads: 12,
    num_key_value_heads: 12,
    head_dim: 64,
  },
  tiny: {
    ...ENGINE_MODELS.starter!,
    vocab_size: 64,
    hidden_size: 32,
    intermediate_size: 64,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    num_key_value_heads: 2,
    head_dim: 16,
  },
};

/** Sizes of the measurements: tokens of a training sequence, of a prompt and of its completion; batches. */
export interface WebGpuSpec {
  readonly matmul: number;
  readonly models: readonly string[];
  readonly length: number;
  readonly prompt: number;
  readonly new_tokens: number;
  readonly batch_sizes: readonly number[];
}

export const WEBGPU_SPEC: WebGpuSpec = {
  matmul: 4096,
  models: ["starter", "82m"],
  length: 512,
  prompt: 128,
  new_tokens: 64,
  batch_sizes: [1, 8, 64],
};

/** Sizes for a software adapter, which shows only that everything runs: it reaches a thousandth of a small GPU's rate. */
export const SOFTWARE_SPEC: WebGpuSpec = {
  matmul: 64,
  models: ["tiny"],
  length: 8,
  prompt: 4,
  new_tokens: 4,
  batch_sizes: [1],
};

export interface ModelRates {
  readonly model: string;
  readonly parameters: number;
  /** Forward, backward and AdamW over one sequence. */
  readonly training_tokens_per_s: number;
  /** Null where decoding took too little time to measure beside the prompts. */
  readonly sampling: readonly { readonly batch_size: number; readonly decode_tokens_per_s: number | null }[];
}

export interface DeviceRates {
  readonly device: string;
  readonly variant: string;
  /** Rate of a square matmul. */
  readonly matmul_gflops: number;
  readonly models: readonly ModelRates[];
}

const SUMS = 8; // independent ones per invocation, so that they overlap

/** Multiply-adds in registers; the sums are written, so that the compiler cannot drop any. */
const MULTIPLY_ADDS = program({
  name: "multiplyAdds",
  writes: { sums: "f32" },
  ints: ["rounds"],
  body: `
  let x = vec4f(0.5, 0.25, 0.125, 0.0625);
  let y = vec4f(f32(lane), 1.0, 2.0, 3.0);
  ${sums((i) => `var s${i} = vec4f(${i}.0);`)}
  for (var i = 0u; i < p.rounds; i++) {
    ${sums((i) => `s${i} = fma(s${i}, x, y);`)}
  }
  let sum = ${sums((i) => `s${i}`, " + ")};
  set_sums(group.x * 256u + lane, sum.x + sum.y + sum.z + sum.w);
`,
});

function sums(each: (i: number) => string, join = "\n    "): string {
  return Array.from({ length: SUMS }, (_, i) => each(i)).join(join);
}

/** The GPU's rate of multiply-adds in registers, in GFLOP/s: no kernel can exceed it. */
export function measureRate(device: WebGpuDevice): number {
  return device.scope(() => {
    const groups = device.adapter.software ? 16 : 4096;
    const out = device.alloc("f32", 256 * groups);
    const run = (rounds: number) =>
      secondsOf(() => {
        device.runProgram(MULTIPLY_ADDS, groups, { sums: out }, { rounds });
        device.synchronize();
      });
    let rounds = 8;
    while (run(rounds) < 0.05 && rounds < 2 ** 20) rounds *= 2;
    const seconds = median([run(rounds), run(rounds), run(rounds)]);
    return (256 * groups * rounds * SUMS * 4 * 2) / seconds / 1e9;
  });
}

/** The rate of a matmul of size³ in GFLOP/s. */
export function measureMatmul(device: Device, size: number): number {
  return device.scope(() => {
    const floats = () => {
      const buffer = device.alloc(device.activations, size * size);
      randomize(device, buffer, 1);
      return buffer;
    };
    const value = device.alloc("f32", size * size);
    randomize(device, value, 0.02);
    const weight: Weight = { name: "bench", rows: size, columns: size, value, grad: null };
    const [x, out] = [floats(), floats()];
    const run = (times: number) =>
      secondsOf(() => {
        for (let i = 0; i < times; i++) device.linear(weight, x, out, size);
        wait(device, out);
      });
    run(1);
    const times = Math.min(100, Math.max(1, Math.round(0.1 / run(1))));
    const seconds = median(Array.from({ length: 5 }, () => run(times))) / times;
    device.forget(weight);
    return (2 * size ** 3) / seconds / 1e9;
  });
}

/** Training and decoding of a model with random weights; closes the device. */
export async function measureModel(device: Device, name: string, spec: WebGpuSpec): Promise<ModelRates> {
  const config = WEBGPU_MODELS[name]!;
  const model = createModel(device, config, { trains: true });
  for (const { shape, value } of model.tensors) {
    if (shape.length === 1) device.fill(value, 1);
    else randomize(device, value, 0.02);
  }
  parametersChanged(model);
  const engine = new LocalEngine(model);
  const { length, prompt, new_tokens, batch_sizes } = spec;
  const [tokens] = contexts(config.vocab_size, 1, length);
  const batch = [{ tokens: tokens!, weights: tokens!.map((_, i) => (i === 0 ? 0 : 1)) }];
  const train = async () => {
    await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } });
    await engine.optimStep({ learning_rate: 1e-6 });
    wait(device, model.values);
  };
  const training_tokens_per_s = length / (await medianOf(train));
  const sampling = [];
  for (const batch_size of batch_sizes) {
    const prompts = contexts(config.vocab_size, batch_size, prompt);
    const sample = async (max_new_tokens: number) => {
      engine.forgetCache();
      const all = prompts.map((ids, i) => ({ prompt: ids, max_new_tokens, stop_ids: [], key: ["bench", i] }));
      await Promise.all(all.map((request) => engine.sample(request)));
    };
    const decode = (await medianOf(() => sample(new_tokens))) - (await medianOf(() => sample(1)));
    sampling.push({ batch_size, decode_tokens_per_s: decode > 0 ? (batch_size * (new_tokens - 1)) / decode : null });
  }
  const parameters = parameterCount(model);
  await engine.close();
  return { model: name, parameters, training_tokens_per_s, sampling };
}

/** Median milliseconds of a kernel, by the host's clock over many calls: not every adapter has timestamps of its own. */
export function kernelTime(device: WebGpuDevice): (work: () => void) => number {
  return (work) => {
    const run = (times: number) =>
      secondsOf(() => {
        for (let i = 0; i < times; i++) work();
        device.synchronize();
      });
    run(1);
    const times = Math.min(200, Math.max(1, Math.round(0.02 / run(1))));
    return (1000 * median([run(times), run(times), run(times)])) / times;
  };
}

/** Gigabytes per second of a copy, read and written. */
export function measureCopy(device: WebGpuDevice, floats: number): number {
  return device.scope(() => {
    const [from, to] = [device.alloc("f32", floats), device.alloc("f32", floats)];
    return (2 * 4 * floats) / kernelTime(device)(() => device.copy(from, to)) / 1e6;
  });
}

/** Waits until queued work is done. */
function wait(device: Device, buffer: Buffer): void {
  device.read(device.part(buffer, 0, 1));
}

function secondsOf(work: () => void): number {
  const start = performance.now();
  work();
  return (performance.now() - start) / 1000;
}

/** Median seconds of three calls, after one for warmup. */
async function medianOf(work: () => Promise<void>): Promise<number> {
  const seconds: number[] = [];
  for (let i = 0; i < 4; i++) {
    const start = performance.now();
    await work();
    seconds.push((performance.now() - start) / 1000);
  }
  return median(seconds.slice(1));
}
