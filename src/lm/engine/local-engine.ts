// An engine in the calling thread: the model, its optimizer and its sampler on one device.

import { UsageError } from "../../errors.ts";
import type { Buffer, Device } from "../devices/index.ts";
import { mergeLora } from "../model/lora.ts";
import { freeModel, type Model, parametersChanged, type Trained, trainedOf, windowOf } from "../model/parameters.ts";
import type {
  AdamParams,
  Datum,
  Engine,
  ForwardBackwardOptions,
  ForwardBackwardOutput,
  LogprobOptions,
  OptimOutput,
  Sample,
  SampleRequest,
} from "./engine.ts";
import { computeLogprobs, type LearnOptions, learn } from "./learning/learner.ts";
import type { LossTable } from "./learning/loss.ts";
import { Sampler } from "./sampling/sampler.ts";

/** AdamW's moments and step count. */
export interface OptimizerState {
  readonly m: Buffer;
  readonly v: Buffer;
  step: number;
}

export interface LocalOptions {
  /** Maximum tokens in the prefix cache. @default 131072 */
  readonly maxCachedTokens?: number;
  /** Recompute activations in backward instead of saving them: slower, far less memory. @default false */
  readonly recompute?: boolean;
  /** Maximum rows computed together, in training and for prompts. @default the limits in learner.ts and sampler.ts */
  readonly maxRows?: number;
  /**
   * Keep a copy of the current weights (with LoRA, of the adapters only) for `logprobs(…, { weights: "reference" })`.
   * @default false
   */
  readonly reference?: boolean;
  /** Loss functions by name, besides cross_entropy. @default none */
  readonly losses?: LossTable;
}

/** Values that `mixReference` reads from the device at a time. */
const MIXED_AT_ONCE = 1 << 20;

type Range = Trained["ranges"][number];
type Four = [Buffer, Buffer, Buffer, Buffer];

/** Samples from a model and trains it. The weights cannot change while samples are running. */
export class LocalEngine implements Engine {
  readonly model: Model;
  /** Whether the reference weights are others than the loaded ones, so that a checkpoint must have them. */
  isReferenceMixed = false;
  readonly #sampler: Sampler;
  readonly #learning: LearnOptions;
  readonly #reference: Buffer | undefined;
  #optimizer: OptimizerState | undefined;
  #poisoned = false;

  constructor(
    model: Model,
    { maxCachedTokens, recompute = false, maxRows, reference = false, losses = {} }: LocalOptions = {},
  ) {
    this.model = model;
    this.#learning = { recompute, losses, ...(maxRows !== undefined && { maxRows }) };
    if (reference) this.#reference = copyOf(model.device, this.#trained().values);
    this.#sampler = new Sampler(model, {
      ...(maxCachedTokens !== undefined && { maxTokens: maxCachedTokens }),
      ...(maxRows !== undefined && { maxStepTokens: maxRows }),
    });
  }

  async sample(request: SampleRequest): Promise<Sample> {
    checkRequest(request, this.model);
    return this.#sampler.sample(request);
  }

  async forwardBackward(batch: readonly Datum[], options: ForwardBackwardOptions): Promise<ForwardBackwardOutput> {
    this.#trained();
    checkBatch(batch, this.model, ["weights", "advantage", "old_logp", "ref_logp"]);
    const output = learn(this.model, batch, options, this.#learning);
    if (!Number.isFinite(output.loss)) this.#poisoned = true;
    return output;
  }

  async optimStep(adam: AdamParams): Promise<OptimOutput> {
    const { device } = this.model;
    const { values, grads, ranges } = this.#trained();
    if (!this.#sampler.idle)
      throw new UsageError({ what: "optimStep while samples are running", remedy: "await them first" });
    const { learning_rate, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, max_grad_norm = Infinity } = adam;
    const optimizer = this.optimizer;
    const cut = (buffer: Buffer, { from, length }: Range) => device.part(buffer, from, length);
    // If a stored value is `factor` times its parameter, its gradient is smaller by that factor.
    const grad_norm = Math.sqrt(
      ranges.reduce((sum, range) => sum + range.factor ** 2 * device.sumSquares(cut(grads, range)), 0),
    );
    const skipped = this.#poisoned || !Number.isFinite(grad_norm);
    if (!skipped) {
      optimizer.step++;
      const gradient_scale = Math.min(1, max_grad_norm / (grad_norm + 1e-6)); // like torch.nn.utils.clip_grad_norm_
      const { step, m, v } = optimizer;
      for (const range of ranges) {
        const { factor } = range;
        const [value, grad, ...moments] = [values, grads, m, v].map((buffer) => cut(buffer, range)) as Four;
        device.adamW(value, grad, ...moments, {
          beta1,
          beta2,
          gradient_scale,
          step,
          learning_rate: learning_rate * factor,
          eps: eps / factor,
          weight_decay: weight_decay / factor,
        });
      }
      this.changed();
    }
    device.fill(grads, 0);
    this.#poisoned = false;
    return { grad_norm, skipped, step: optimizer.step };
  }

  async logprobs(
    batch: readonly Datum[],
    { temperature = 1, weights = "current" }: LogprobOptions = {},
  ): Promise<Float32Array[]> {
    checkBatch(batch, this.model);
    const compute = () => computeLogprobs(this.model, batch, temperature, this.#learning);
    return weights === "current" ? compute() : this.#withReference(compute);
  }

  #trained(): Trained {
    const trained = trainedOf(this.model);
    if (trained) return trained;
    throw new UsageError({ what: "this model was loaded for sampling only", remedy: "load it with trains: true" });
  }

  /** Moves the reference weights towards the current ones: reference ← (1 − α) · reference + α · current. */
  async mixReference(alpha: number): Promise<void> {
    const { device, lora } = this.model;
    if (lora)
      throw new UsageError({
        what: "the reference of a model with adapters cannot be mixed",
        remedy: "mixed adapters are not the adapters of mixed weights; train all weights",
      });
    const [reference, { values }] = [this.reference, this.#trained()];
    // On the host, so that every device gives the same bits; this is done once in many steps.
    for (let from = 0; from < values.length; from += MIXED_AT_ONCE) {
      const length = Math.min(MIXED_AT_ONCE, values.length - from);
      const part = device.part(reference, from, length);
      const mixed = device.read(part) as Float32Array;
      const current = device.read(device.part(values, from, length));
      for (let i = 0; i < length; i++) mixed[i] = Math.fround((1 - alpha) * mixed[i]!) + alpha * current[i]!;
      device.write(part, mixed);
    }
    this.isReferenceMixed = true;
  }

  /** The reference weights. */
  get reference(): Buffer {
    if (this.#reference) return this.#reference;
    throw new UsageError({
      what: "this engine kept no reference weights",
      remedy: "load the model with reference: true",
    });
  }

  /** Runs `work` with the reference weights instead of the current ones. */
  #withReference<T>(work: () => T): T {
    const { device } = this.model;
    const { values } = this.#trained();
    const { reference } = this;
    const current = copyOf(device, values);
    const put = (weights: Buffer) => {
      device.copy(weights, values);
      this.#refresh();
    };
    try {
      put(reference);
      return work();
    } finally {
      put(current);
      device.free(current);
    }
  }

  /** AdamW's state, allocated when first needed. */
  get optimizer(): OptimizerState {
    if (!this.#optimizer) {
      const { device } = this.model;
      const { values } = this.#trained();
      const zeros = () => {
        const buffer = device.alloc("f32", values.length);
        device.fill(buffer, 0);
        return buffer;
      };
      this.#optimizer = { m: zeros(), v: zeros(), step: 0 };
    }
    return this.#optimizer;
  }

  /** Must be called after writing to the trained values: copies and cached contexts are then stale. */
  changed(): void {
    this.#refresh();
    this.forgetCache();
  }

  #refresh(): void {
    if (this.model.lora) mergeLora(this.model);
    else parametersChanged(this.model);
  }

  /** Number of tokens that the prefix cache holds without growing. */
  get cacheCapacity(): number {
    return this.#sampler.cache.capacity;
  }

  /** Clears the prefix cache. */
  forgetCache(): void {
    this.#sampler.cache.clear();
  }

  async close(): Promise<void> {
    this.#sampler.close(new UsageError({ what: "the engine was closed while samples were running" }));
    const { device } = this.model;
    try {
      if (this.#optimizer) for (const buffer of [this.#optimizer.m, this.#optimizer.v]) device.free(buffer);
      if (this.#reference) device.free(this.#reference);
      freeModel(this.model);
    } finally {
      device.close(); // even if freeing fails, as on a lost GPU
    }
  }
}

/** Copies values into a new buffer. */
function copyOf(device: Device, values: Buffer): Buffer {
  const copy = device.alloc("f32", values.length);
  device.copy(values, copy);
  return copy;
}

/** Throws for requests that would fail later. */
function checkRequest({ prompt, max_new_tokens, temperature = 1 }: SampleRequest, model: Model): void {
  const window = windowOf(model.config);
  if (prompt.length === 0) throw new UsageError({ what: "the prompt is empty" });
  if (!Number.isInteger(max_new_tokens) || max_new_tokens < 1) {
    throw new UsageError({ what: "max_new_tokens must be a whole number from 1", value: max_new_tokens });
  }
  if (prompt.length + max_new_tokens > window) {
    throw new UsageError({
      what: "prompt and new tokens are longer than the model's window",
      value: `${prompt.length} + ${max_new_tokens} > ${window}`,
      remedy: "lower max_new_tokens or max_context_tokens",
    });
  }
  if (!(temperature >= 0)) throw new UsageError({ what: "temperature must not be negative", value: temperature });
  checkTokens(prompt, model);
}

/** Throws for data that would give wrong results; the named `arrays` must be as long as the tokens. */
function checkBatch(
  batch: readonly Datum[],
  model: Model,
  arrays: readonly ("weights" | "advantage" | "old_logp" | "ref_logp")[] = [],
) {
  const window = windowOf(model.config);
  for (const [i, datum] of batch.entries()) {
    const { length } = datum.tokens;
    if (length === 0) throw new UsageError({ what: "a datum has no tokens", value: `datum ${i}` });
    if (length > window) {
      const remedy = "lower max_context_tokens";
      throw new UsageError({
        what: "a datum is longer than the model's window",
        value: `${length} > ${window}`,
        remedy,
      });
    }
    for (const key of arrays) {
      const array = datum[key];
      if (array && typeof array !== "number" && array.length !== length) {
        throw new UsageError({ what: `datum ${i}: ${key} for ${length} tokens`, value: array.length });
      }
    }
    checkTokens(datum.tokens, model);
  }
}

function checkTokens(tokens: readonly number[], { config: { vocab_size } }: Model): void {
  const bad = tokens.find((token) => !(Number.isInteger(token) && token >= 0 && token < vocab_size));
  if (bad === undefined) return;
  throw new UsageError({ what: "token id outside the vocabulary", value: bad, remedy: `ids are below ${vocab_size}` });
}
