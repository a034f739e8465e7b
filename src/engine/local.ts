// An engine in this thread: the model, its optimizer and its sampler on one device.

import type { Buffer } from "../devices/index.ts";
import { UsageError } from "../errors.ts";
import { freeModel, type Model, parametersChanged } from "../model/params.ts";
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
import { evaluate, learn } from "./learner.ts";
import { Sampler } from "./sampler.ts";

/** What the optimizer remembers. */
export interface OptimizerState {
  readonly m: Buffer;
  readonly v: Buffer;
  step: number;
}

/** Samples from a model and trains it. Verbs that change the weights wait until nobody samples. */
export class LocalEngine implements Engine {
  readonly model: Model;
  readonly #sampler: Sampler;
  #optimizer: OptimizerState | undefined;
  #poisoned = false;

  constructor(model: Model) {
    this.model = model;
    this.#sampler = new Sampler(model);
  }

  async sample(request: SampleRequest): Promise<Sample> {
    checkRequest(request, this.model);
    return this.#sampler.sample(request);
  }

  async forwardBackward(batch: readonly Datum[], options: ForwardBackwardOptions): Promise<ForwardBackwardOutput> {
    if (!this.model.grads)
      throw new UsageError({ what: "this model was loaded for sampling only", remedy: "load it with trains: true" });
    const output = learn(this.model, batch, options);
    if (!Number.isFinite(output.loss)) this.#poisoned = true;
    return output;
  }

  async optimStep(adam: AdamParams): Promise<OptimOutput> {
    const { device, grads, values } = this.model;
    if (!grads)
      throw new UsageError({ what: "this model was loaded for sampling only", remedy: "load it with trains: true" });
    if (!this.#sampler.idle)
      throw new UsageError({ what: "optimStep while samples are running", remedy: "await them first" });
    const { learning_rate, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, max_grad_norm = Infinity } = adam;
    const optimizer = this.optimizer;
    const grad_norm = Math.sqrt(device.sumSquares(grads));
    const skipped = this.#poisoned || !Number.isFinite(grad_norm);
    if (!skipped) {
      optimizer.step++;
      const gradient_scale = Math.min(1, max_grad_norm / (grad_norm + 1e-6)); // as torch.nn.utils.clip_grad_norm_
      const rates = { learning_rate, beta1, beta2, eps, weight_decay, gradient_scale };
      device.adamW(values, grads, optimizer.m, optimizer.v, { ...rates, step: optimizer.step });
      parametersChanged(this.model);
      this.#sampler.cache.clear();
    }
    device.fill(grads, 0);
    this.#poisoned = false;
    return { grad_norm, skipped, step: optimizer.step };
  }

  async logprobs(batch: readonly Datum[], { temperature = 1 }: LogprobOptions = {}): Promise<Float32Array[]> {
    return evaluate(this.model, batch, temperature);
  }

  /** Made when first needed. */
  get optimizer(): OptimizerState {
    if (!this.#optimizer) {
      const { device, values } = this.model;
      const zeros = () => {
        const buffer = device.alloc("f32", values.length);
        device.fill(buffer, 0);
        return buffer;
      };
      this.#optimizer = { m: zeros(), v: zeros(), step: 0 };
    }
    return this.#optimizer;
  }

  async close(): Promise<void> {
    this.#sampler.cache.close();
    const { device } = this.model;
    if (this.#optimizer) for (const buffer of [this.#optimizer.m, this.#optimizer.v]) device.free(buffer);
    freeModel(this.model);
    device.close();
  }
}

/** Refuses what would fail deep inside. */
function checkRequest({ prompt, max_new_tokens, temperature = 1 }: SampleRequest, { config, rotary }: Model): void {
  const window = rotary.length / config.head_dim;
  if (prompt.length === 0) throw new UsageError({ what: "the prompt is empty" });
  if (max_new_tokens < 1) throw new UsageError({ what: "max_new_tokens must be at least 1", value: max_new_tokens });
  if (prompt.length + max_new_tokens > window) {
    throw new UsageError({
      what: "prompt and new tokens are longer than the model's window",
      value: `${prompt.length} + ${max_new_tokens} > ${window}`,
      remedy: "lower max_new_tokens or max_context_tokens",
    });
  }
  if (!(temperature >= 0)) throw new UsageError({ what: "temperature must not be negative", value: temperature });
  const bad = prompt.find((token) => !(Number.isInteger(token) && token >= 0 && token < config.vocab_size));
  if (bad !== undefined)
    throw new UsageError({
      what: "token id outside the vocabulary",
      value: bad,
      remedy: `ids are below ${config.vocab_size}`,
    });
}
