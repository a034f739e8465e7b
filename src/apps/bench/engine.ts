// Measures the engine on this machine: matmul, training, sampling, and how they scale.
import type { CpuDevice, Weight } from "../../lm/devices/index.ts";
import { type Datum, LocalEngine } from "../../lm/engine/index.ts";
import type { ModelConfig } from "../../lm/model/config.ts";
import { createModel, parameterCount, parametersChanged } from "../../lm/model/parameters.ts";
import { random } from "../../random.ts";
import { median } from "./median.ts";

/** Context and batch sizes of the measurements; the peer uses the same. */
export const ENGINE_SPEC = {
  context: 300,
  new_tokens: 64,
  batch_sizes: [1, 8, 32, 128],
  sequences: 8,
  /** Rows of the measured matmuls. */
  matmul_rows: 1024,
  /** Number of the 300 tokens per sequence that a group shares in the shared measurement. */
  shared_prompt: 180,
} as const;

const BASE = {
  architecture: "Qwen3ForCausalLM",
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  rope_scaling: null,
  max_position_embeddings: 2048,
} as const;
const TOKENS = {
  bos_token_id: null,
  eos_token_ids: [0],
  pad_token_id: null,
  tie_word_embeddings: true,
  qk_norm: true,
  qkv_bias: false,
} as const;

/** The measured model sizes. */
export const ENGINE_MODELS: Readonly<Record<string, ModelConfig>> = {
  starter: {
    ...BASE,
    ...TOKENS,
    vocab_size: 640,
    hidden_size: 256,
    intermediate_size: 640,
    num_hidden_layers: 6,
    num_attention_heads: 8,
    num_key_value_heads: 8,
    head_dim: 32,
  },
  "2m": {
    ...BASE,
    ...TOKENS,
    vocab_size: 1024,
    hidden_size: 192,
    intermediate_size: 640,
    num_hidden_layers: 4,
    num_attention_heads: 6,
    num_key_value_heads: 2,
    head_dim: 32,
  },
  "25m": {
    ...BASE,
    ...TOKENS,
    vocab_size: 6400,
    hidden_size: 512,
    intermediate_size: 1408,
    num_hidden_layers: 8,
    num_attention_heads: 8,
    num_key_value_heads: 2,
    head_dim: 64,
  },
};

export interface SamplingRate {
  readonly batch_size: number;
  /** New tokens per second over the whole call, including prompts. */
  readonly tokens_per_s: number;
  /** New tokens per second after the prompts. */
  readonly decode_tokens_per_s: number;
  readonly prefill_tokens_per_s: number;
}

/** A matmul of `matmul_rows` rows with a weight. */
export interface MatmulRate {
  readonly name: string;
  /** Outputs and inputs. */
  readonly rows: number;
  readonly columns: number;
  readonly gflops: number;
}

export interface EngineBench {
  readonly model: string;
  readonly parameters: number;
  readonly threads: number;
  readonly variant: string;
  /** Whether matmul ran as machine code, and for which instruction set. */
  readonly native: boolean;
  readonly instruction_set: string | null;
  readonly gemm: {
    /** The largest of `shapes`. */
    readonly gflops: number;
    readonly peak_gflops: number;
    readonly share: number;
    /** Rates of the model's matmuls with 1,024 rows. */
    readonly shapes: readonly MatmulRate[];
  };
  readonly training: {
    readonly plain_tokens_per_s: number;
    /** Rate for groups of 8 with a common prompt; tokens are counted as if nothing were shared. */
    readonly shared_tokens_per_s: number;
    readonly optimizer_ms: number;
  };
  readonly sampling: readonly SamplingRate[];
  /** 32 sequences as in training: four prompts with eight samples each. */
  readonly sampling_groups: SamplingRate;
  readonly peak_bytes: number;
  readonly scaling: Scaling;
}

/** How the cost scales with batch size, length and turns. */
export interface Scaling {
  /** Training tokens per second by number of sequences in the batch. */
  readonly training_by_sequences: Readonly<Record<string, number>>;
  /** Training tokens per second by length of the sequences, with the same total. */
  readonly training_by_length: Readonly<Record<string, number>>;
  /** Milliseconds per decode step (8 sequences of 300 tokens) by number of earlier turns. */
  readonly decode_ms_by_turns: Readonly<Record<string, number>>;
}

const REPEATS = 3;

/** Measures one model on a new device; `quick` skips the scaling tables and the largest batch. */
export async function benchEngine(
  name: string,
  makeDevice: () => CpuDevice,
  { quick = false, onProgress = () => {} }: { quick?: boolean; onProgress?: (what: string) => void } = {},
): Promise<EngineBench> {
  const config = ENGINE_MODELS[name]!;
  const device = makeDevice();
  const engine = randomEngine(device, config);
  try {
    onProgress("matmul");
    const gemm = measureGemm(device, config);
    onProgress("training");
    const training = await measureTraining(engine);
    const sampling: SamplingRate[] = [];
    for (const size of ENGINE_SPEC.batch_sizes.filter((size) => !quick || size <= 32)) {
      onProgress(`sampling, ${size} at a time`);
      sampling.push(await measureSampling(engine, size));
    }
    const sampling_groups = await measureSampling(engine, 32, 8);
    onProgress("growth");
    const scaling = quick ? NO_SCALING : await measureScaling(engine);
    const { threads, variant, native, instructionSet: instruction_set, memory } = device;
    const parameters = parameterCount(engine.model);
    return {
      model: name,
      parameters,
      threads,
      variant,
      native,
      instruction_set,
      gemm,
      training,
      sampling,
      sampling_groups,
      peak_bytes: memory.peak,
      scaling,
    };
  } finally {
    await engine.close();
  }
}

const NO_SCALING: Scaling = { training_by_sequences: {}, training_by_length: {}, decode_ms_by_turns: {} };

/** An engine with random weights. */
export function randomEngine(device: CpuDevice, config: ModelConfig): LocalEngine {
  const model = createModel(device, config, { trains: true });
  const r = random("bench engine");
  for (const { shape, value } of model.tensors) {
    const data = Float32Array.from({ length: value.length }, () => (shape.length === 1 ? 1 : r.normal(0, 0.02)));
    device.write(value, data);
  }
  parametersChanged(model);
  return new LocalEngine(model);
}

/** The weights of a layer, as [name, outputs, inputs]. */
export function layerMatmuls(config: ModelConfig): readonly (readonly [name: string, rows: number, columns: number])[] {
  const { hidden_size: D, intermediate_size: F, num_attention_heads: heads, num_key_value_heads: kv } = config;
  const width = heads * config.head_dim;
  return [
    ["qkv", width + 2 * kv * config.head_dim, D],
    ["output", D, width],
    ["gate and up", 2 * F, D],
    ["down", D, F],
  ];
}

/** Measures the matmuls of a layer, and matmuls small enough for the L1 cache. */
function measureGemm(device: CpuDevice, config: ModelConfig) {
  const rate = (rows: number, columns: number, T: number) =>
    device.scope(() => {
      const floats = (length: number) => {
        const buffer = device.alloc("f32", length);
        device.fill(buffer, 0.5);
        return buffer;
      };
      const weight: Weight = { name: "bench", rows, columns, value: floats(rows * columns), grad: null };
      const [x, out] = [floats(T * columns), floats(T * rows)];
      const flops = 2 * T * rows * columns;
      const times = Math.max(1, Math.round(4e8 / flops));
      const seconds = Array.from({ length: 7 }, () =>
        timed(() => {
          for (let i = 0; i < times; i++) device.linear(weight, x, out, T);
        }),
      );
      return (flops * times) / Math.min(...seconds) / 1e9;
    });
  const shapes = layerMatmuls(config).map(([name, rows, columns]) => ({
    name,
    rows,
    columns,
    gflops: rate(rows, columns, ENGINE_SPEC.matmul_rows),
  }));
  const gflops = Math.max(...shapes.map((shape) => shape.gflops));
  const peak_gflops = Math.max(rate(64, 128, 64 * device.threads), gflops);
  return { gflops, peak_gflops, share: gflops / peak_gflops, shapes };
}

/** Makes contexts of random tokens; groups of `group` contexts share their first `shared` tokens. */
export function contexts(engine: LocalEngine, count: number, length: number, shared = 0, group = count): number[][] {
  const r = random("contexts", count, length, shared);
  const draw = (n: number) => Array.from({ length: n }, () => r.int(1, engine.model.config.vocab_size - 1));
  let prompt: number[] = [];
  return Array.from({ length: count }, (_, i) => {
    if (i % group === 0) prompt = draw(shared);
    return [...prompt, ...draw(length - shared)];
  });
}

async function trainingRate(
  engine: LocalEngine,
  tokens: readonly (readonly number[])[],
  untrained: number,
): Promise<number> {
  const batch: Datum[] = tokens.map((context) => ({
    tokens: context,
    weights: context.map((_, i) => (i < untrained ? 0 : 1)),
  }));
  const count = tokens.reduce((sum, { length }) => sum + length, 0);
  const seconds = await medianOf(() => engine.forwardBackward(batch, { loss: { type: "cross_entropy" } }));
  return count / seconds;
}

async function measureTraining(engine: LocalEngine) {
  const { sequences, context, shared_prompt } = ENGINE_SPEC;
  const plain_tokens_per_s = await trainingRate(engine, contexts(engine, sequences, context), 1);
  const shared_tokens_per_s = await trainingRate(
    engine,
    contexts(engine, sequences, context, shared_prompt),
    shared_prompt,
  );
  const optimizer_ms = 1000 * (await medianOf(() => engine.optimStep({ learning_rate: 0 })));
  return { plain_tokens_per_s, shared_tokens_per_s, optimizer_ms };
}

/** Measures sampling; `group` sequences share a prompt. */
async function measureSampling(engine: LocalEngine, size: number, group = 1): Promise<SamplingRate> {
  const { context, new_tokens } = ENGINE_SPEC;
  const prompts = contexts(engine, size, context - new_tokens, context - new_tokens, group);
  const run = (max_new_tokens: number) =>
    Promise.all(prompts.map((prompt, i) => engine.sample({ prompt, max_new_tokens, stop_ids: [], key: ["bench", i] })));
  const fresh = async (max_new_tokens: number) => {
    engine.forgetCache();
    await run(max_new_tokens);
  };
  const whole = await medianOf(() => fresh(new_tokens));
  const first = await medianOf(() => fresh(1));
  return {
    batch_size: size,
    tokens_per_s: (size * new_tokens) / whole,
    decode_tokens_per_s: (size * (new_tokens - 1)) / (whole - first),
    prefill_tokens_per_s: (size * (context - new_tokens)) / first,
  };
}

async function measureScaling(engine: LocalEngine): Promise<Scaling> {
  const rates = async (shapes: readonly (readonly [label: number, count: number, length: number])[]) => {
    const entries: [string, number][] = [];
    for (const [label, count, length] of shapes) {
      entries.push([String(label), await trainingRate(engine, contexts(engine, count, length), 1)]);
    }
    return Object.fromEntries(entries);
  };
  const byTurns: [string, number][] = [];
  for (const turns of [1, 4, 16]) byTurns.push([String(turns), await decodeStep(engine, turns)]);
  return {
    training_by_sequences: await rates([1, 2, 4, 8, 16].map((count) => [count, count, 256])),
    training_by_length: await rates([64, 128, 256, 512, 1024].map((length) => [length, 2048 / length, length])),
    decode_ms_by_turns: Object.fromEntries(byTurns),
  };
}

/** Milliseconds per decode step for 8 contexts of 300 tokens that were sampled in `turns` turns. */
async function decodeStep(engine: LocalEngine, turns: number): Promise<number> {
  const texts = contexts(engine, 8, 300);
  const sample = (tokens: number, max_new_tokens: number) =>
    Promise.all(
      texts.map((text, i) =>
        engine.sample({ prompt: text.slice(0, tokens), max_new_tokens, stop_ids: [], key: ["turns", i] }),
      ),
    );
  engine.forgetCache();
  for (let turn = 1; turn <= turns; turn++) await sample(Math.floor((300 * turn) / turns), 1);
  const seconds = await medianOf(() => sample(300, 32));
  return (1000 * seconds) / 32;
}

function timed(work: () => void): number {
  const start = performance.now();
  work();
  return (performance.now() - start) / 1000;
}

/** Median seconds over several repetitions, after one for warmup. */
async function medianOf(work: () => Promise<unknown>): Promise<number> {
  await work();
  const times: number[] = [];
  for (let i = 0; i < REPEATS; i++) {
    const start = performance.now();
    await work();
    times.push((performance.now() - start) / 1000);
  }
  return median(times);
}
