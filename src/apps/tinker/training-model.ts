// A model that a client trains: an engine with adapters, and its requests in the order of their numbers.
//
// Requests may arrive in any order: one waits for those with lower numbers. Samples run between them; the weights change
// only when no sample is running.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelEngine } from "../../lm/engine/index.node.ts";
import { encodePassOutput, type ForwardBackwardRequest } from "../../lm/engine/remote/messages.ts";
import { outputOf, passOf } from "./convert.ts";
import type { Result } from "./futures.ts";
import { Problem } from "./problem.ts";
import type { AdamBody, LoraConfig } from "./schemas.ts";

interface Job {
  readonly run: () => Promise<Result>;
  readonly resolve: (result: Promise<Result>) => void;
}

/** The adapters of a checkpoint, beside the engine's files. */
export const LORA_FILE = "lora.json";

/** A model's folder: ids have colons, which not every file system takes. */
export function folderName(model_id: string): string {
  return model_id.replaceAll(":", "-");
}

/** Requests that may wait for one with a lower number. */
const MAX_HELD = 4_096;

export interface TrainingModelOptions {
  readonly id: string;
  readonly lora: LoraConfig;
  readonly engine: ModelEngine;
  /** The base model's name in the config of saved adapters. */
  readonly base: string;
  /** Folder for checkpoints. */
  readonly folder: string;
}

export class TrainingModel {
  readonly id: string;
  readonly lora: LoraConfig;
  readonly engine: ModelEngine;
  readonly folder: string;
  readonly #base: string;
  /** Optimizer steps and loads so far: which weights the engine has. */
  #version = 0;
  readonly #samples = new Set<Promise<unknown>>();
  readonly #held = new Map<number, Job>();
  #next = 1;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor({ id, lora, engine, base, folder }: TrainingModelOptions) {
    this.id = id;
    this.lora = lora;
    this.engine = engine;
    this.folder = join(folder, folderName(id));
    this.#base = base;
  }

  get version(): number {
    return this.#version;
  }

  /** Runs a request when all with lower numbers have run; one without a number when it arrives. */
  submit(seq_id: number | null | undefined, run: () => Promise<Result>): Promise<Result> {
    if (this.#closed) return Promise.reject(unloaded(this.id));
    if (seq_id === null || seq_id === undefined) return this.#run(run);
    if (seq_id === 0 && this.#next === 1) this.#next = 0; // some clients count from 0
    if (seq_id < this.#next)
      return Promise.reject(new Problem(409, `seq_id ${seq_id} has been used; next is ${this.#next}`));
    if (this.#held.size >= MAX_HELD) return Promise.reject(new Problem(429, "too many requests are waiting"));
    return new Promise((resolve) => {
      this.#held.set(seq_id, { run, resolve });
      for (let job = this.#held.get(this.#next); job; job = this.#held.get(this.#next)) {
        this.#held.delete(this.#next++);
        job.resolve(this.#run(job.run));
      }
    });
  }

  async forwardBackward(request: ForwardBackwardRequest, trainedOnly: boolean): Promise<Result> {
    const { data, loss_fn, loss_fn_config } = request.forward_backward_input;
    const { batch, options } = passOf(data, loss_fn, loss_fn_config ?? {}, trainedOnly);
    const { engine } = this;
    const { logprobs, loss } = request.forward_only
      ? { logprobs: await engine.logprobs(batch), loss: null }
      : await engine.forwardBackward(batch, options);
    const output = outputOf(logprobs, loss);
    const type = request.forward_only ? "forward" : "forward_backward";
    return {
      json: { type, loss_fn_output_type: "ArrayRecord", ...output },
      proto: () => encodePassOutput(output),
    };
  }

  async optimStep({ learning_rate, beta1, beta2, eps, weight_decay, grad_clip_norm }: AdamBody): Promise<Result> {
    await this.#quiet();
    const max = grad_clip_norm > 0 ? { max_grad_norm: grad_clip_norm } : {};
    const adam = { learning_rate, beta1, beta2, eps, weight_decay, ...max };
    const { grad_norm, skipped, step } = await this.engine.optimStep(adam);
    this.#version++;
    return { json: { type: "optim_step", metrics: { grad_norm, skipped: skipped ? 1 : 0, step } } };
  }

  async saveWeights(name: string): Promise<Result> {
    const dir = this.#newFolder("weights", name);
    await this.engine.saveState(dir);
    writeFileSync(join(dir, LORA_FILE), `${JSON.stringify(this.lora)}\n`);
    return { json: { type: "save_weights", path: `tinker://${this.id}/weights/${name}` } };
  }

  /** Saves the adapters as a PEFT folder; returns the path to sample from. */
  async saveAdapter(name: string): Promise<string> {
    await this.engine.saveAdapter(this.#newFolder("sampler_weights", name), this.#base);
    return `tinker://${this.id}/sampler_weights/${name}`;
  }

  async loadWeights(dir: string, optimizer: boolean): Promise<Result> {
    await this.#quiet();
    await this.engine.loadState(dir, { optimizer });
    this.#version++;
    return { json: { type: "load_weights" } };
  }

  /** Counts a sample, which must end before the weights may change. */
  sampling<T>(work: () => Promise<T>): Promise<T> {
    const sample = work();
    const done = sample.then(
      () => {},
      () => {},
    );
    this.#samples.add(done);
    void done.then(() => this.#samples.delete(done));
    return sample;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { resolve } of this.#held.values()) resolve(Promise.reject(unloaded(this.id)));
    this.#held.clear();
    await this.engine.close();
  }

  #run(run: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(run);
    this.#last = result.catch(() => {});
    return result;
  }

  async #quiet(): Promise<void> {
    while (this.#samples.size > 0) await Promise.all(this.#samples);
  }

  #newFolder(kind: string, name: string): string {
    const dir = join(this.folder, kind, name);
    if (existsSync(dir)) throw new Problem(409, `this model has a checkpoint ${name} already`);
    return dir;
  }
}

export function unloaded(model_id: string): Problem {
  return new Problem(404, `no model ${model_id}: it was unloaded, or its session has ended`);
}
