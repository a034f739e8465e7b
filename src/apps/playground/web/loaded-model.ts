// The model in the worker: loaded on demand, used as a player, and trained with live events.

import { messageOf, OOMError, UsageError } from "../../../errors.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import { DEFAULT_RULES, type EnvironmentRules, SQLEnvironment } from "../../../gym/env/index.ts";
import { type EpisodeRecord, evaluate, playEpisode } from "../../../gym/evaluation/index.ts";
import { modelPlayer, type Player } from "../../../gym/players/index.ts";
import type { WebModel } from "../../../lm/engine/load.web.ts";
import { parameterShapes } from "../../../lm/model/config.ts";
import { tensorsOf } from "../../../lm/model/formats/load.ts";
import { encodeHeader } from "../../../lm/model/formats/safetensors.ts";
import { type GRPOConfig, resolveConfig } from "../../../rl/config.ts";
import { loadTrainableWebModel } from "../../../rl/load.ts";
import { presetNamed } from "../../../rl/presets.ts";
import {
  MODEL_METADATA_FILE,
  type ModelMetadata,
  PRETRAINED_METADATA,
  parseModelMetadata,
} from "../../../rl/run/model-metadata.ts";
import { MemoryStore } from "../../../rl/run/store.ts";
import { trainSft } from "../../../rl/sft/sft.ts";
import { sqlPlayer } from "../../../rl/sql/sql-player.ts";
import { GRPOTrainer } from "../../../rl/trainer.ts";
import { demonstrations } from "./demonstrations.ts";
import type {
  Calls,
  Evaluation,
  ModelChoice,
  ModelFacts,
  PlayerChoice,
  TeachingChoice,
  TrainingChoice,
  WorkerEvent,
} from "./worker-protocol.ts";

/** Questions of a test, before, during and after training. */
const TEST_QUESTIONS = 16;

/** Steps that a taught model may take for a question. */
const TAUGHT_BUDGET = 10;

/** Maximum number of tests during a training; one takes about as long as half a step. */
const TESTS = 10;

/** The same for demonstrations, whose steps take less time than a test. */
const TAUGHT_TESTS = 4;

const OURS: ModelMetadata = { prompt: { prompt: "compact", shots: 0 }, rules: DEFAULT_RULES };

export class LoadedModel {
  readonly #model: WebModel;
  readonly #use: ModelMetadata;
  readonly facts: ModelFacts;
  readonly #emit: (event: WorkerEvent) => void;
  #training: AbortController | undefined;
  /** Whether its weights are others than the loaded ones. */
  isTrained = false;

  private constructor(model: WebModel, name: string, use: ModelMetadata, emit: (event: WorkerEvent) => void) {
    this.#model = model;
    this.#use = use;
    this.#emit = emit;
    const { parameters, variant } = model.facts;
    this.facts = { name, parameters, variant, device: deviceWords(model.facts), noGpu: model.noGpu };
  }

  /** Loads a model from the URL of a folder, or from the files in one. */
  static async load({ from, device }: ModelChoice, emit: (event: WorkerEvent) => void): Promise<LoadedModel> {
    const onProgress = (received: number, total: number) => emit({ event: "loading", received, total });
    if (typeof from === "string") {
      const options = { device, onProgress, files: await listed(from) };
      return new LoadedModel(await loadTrainableWebModel(from, options), "", OURS, emit);
    }
    const byName = new Map(from.map((file) => [file.name, file]));
    const read = async (name: string) => {
      const file = byName.get(name);
      return file ? new Uint8Array(await file.arrayBuffer()) : null;
    };
    const name = from[0]?.webkitRelativePath.split("/")[0] || "your files";
    const metadata = await byName.get(MODEL_METADATA_FILE)?.text();
    const use =
      metadata === undefined ? PRETRAINED_METADATA : parseModelMetadata(metadata, `${name}/${MODEL_METADATA_FILE}`);
    return new LoadedModel(await loadTrainableWebModel(read, { name, device }), name, use, emit);
  }

  /** Why the GPU failed; undefined if it still works, or if the model is on the CPU. */
  gpuFailure(error: unknown): string | undefined {
    const { device, values } = this.#model.engine.model;
    if (device.name !== "webgpu") return undefined;
    if (error instanceof OOMError) return error.message;
    try {
      device.read(device.part(values, 0, 1));
      return undefined;
    } catch (failure) {
      return messageOf(failure);
    }
  }

  /** The rules by which it is asked: trainings here are by the default rules. */
  get rules(): EnvironmentRules {
    return this.isTrained ? DEFAULT_RULES : this.#use.rules;
  }

  /** The step budget with which it is asked; undefined for the default. */
  get stepBudget(): number | undefined {
    return this.#use.step_budget;
  }

  /** The model as a player; each sampled token is reported, unless it is `quiet`. */
  player({ temperature }: Pick<PlayerChoice, "temperature">, quiet = false): Player {
    if (this.#training) throw new UsageError({ what: "the model is being trained", remedy: "wait, or stop it" });
    const { engine, tokenizer, turns } = this.#model;
    const { prompt } = this.#use;
    const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
    if (quiet) return modelPlayer({ engine, turns, decode, temperature, prompt, ...this.#lengths });
    const sample: typeof engine.sample = async (request) => {
      const sampled: number[] = [];
      const onToken = (token: number) => {
        sampled.push(token);
        this.#emit({ event: "sampled", text: decode(sampled) });
      };
      const start = performance.now();
      const reply = await engine.sample({ ...request, onToken });
      const seconds = (performance.now() - start) / 1000;
      this.#emit({ event: "replied", tokens: reply.tokens.length, seconds });
      return reply;
    };
    return modelPlayer({ engine: { sample }, turns, decode, temperature, prompt, ...this.#lengths });
  }

  stop(): void {
    this.#training?.abort(new Error("stopped"));
  }

  async close(): Promise<void> {
    this.stop();
    await this.#model.engine.close();
  }

  /** A few GRPO steps on the training questions. */
  train(data: DataSet, choice: TrainingChoice): Promise<Calls["train"]["result"]> {
    const config = this.#config(choice);
    return this.#tested(data, config, { ...choice, tests: TESTS }, async (signal, onStep) => {
      this.#emit({ event: "phase", phase: "training" });
      const trainer = new GRPOTrainer(this.#trainerParts(data, config, onStep));
      return (await trainer.train({ signal })).steps;
    });
  }

  /** SFT steps on demonstrations of the training questions. */
  teach(data: DataSet, choice: TeachingChoice): Promise<Calls["train"]["result"]> {
    const { engine, turns } = this.#model;
    const { steps, learning_rate } = choice;
    const config = this.#config({ ...choice, questions: 1, episodes: 2, step_budget: TAUGHT_BUDGET, seed: 0 });
    return this.#tested(data, config, { ...choice, tests: TAUGHT_TESTS }, async (signal, onStep) => {
      this.#emit({ event: "phase", phase: "teaching" });
      const shown = await demonstrations(data, this.#use.prompt, turns);
      let start = performance.now();
      const report = await trainSft(engine, shown, {
        ...{ steps, learning_rate, signal, max_context_tokens: config.max_context_tokens },
        onStep: async ({ step, loss, tokens }) => {
          this.isTrained = true;
          this.#emit({ event: "taught", step, loss, tokens, seconds: (performance.now() - start) / 1000 });
          await onStep(step);
          start = performance.now();
        },
      });
      return report.steps;
    });
  }

  /** Runs a training with tests before, during and after it; `work` gets what to call after each step. */
  async #tested(
    data: DataSet,
    config: GRPOConfig,
    { steps: planned, watched, tests }: { readonly steps: number; readonly watched: string; readonly tests: number },
    work: (signal: AbortSignal, onStep: (step: number) => Promise<void>) => Promise<number>,
  ): Promise<Calls["train"]["result"]> {
    if (this.#training) throw new UsageError({ what: "a training is running" });
    const abort = new AbortController();
    this.#training = abort;
    try {
      const test = async (step: number) => {
        const evaluation = await this.#evaluate(data, config, watched);
        this.#emit({ event: "tested", step, evaluation });
        return evaluation;
      };
      const every = Math.max(1, Math.floor(planned / tests));
      const onStep = async (step: number) => {
        const isDue = step % every === 0 && step < planned; // the last one is tested below
        if (isDue && !abort.signal.aborted) await test(step);
      };
      this.#emit({ event: "phase", phase: "before" });
      const before = await test(0);
      const steps = await work(abort.signal, onStep);
      this.#emit({ event: "phase", phase: "after" });
      return { before, after: await test(steps), steps };
    } finally {
      this.#training = undefined;
    }
  }

  /** The current weights as a safetensors file. */
  weights(): Blob {
    const { model } = this.#model.engine;
    const shapes = parameterShapes(model.config);
    const { bytes } = encodeHeader(shapes, "F32", { format: "pt" });
    const tensors = new Map([...tensorsOf(model)].map(({ name, data }) => [name, Float32Array.from(data)]));
    return new Blob([bytes, ...[...shapes.keys()].map((name) => tensors.get(name)!)]);
  }

  get #lengths() {
    const usual = this.#use.prompt.shots ? 4096 : 2048; // examples take room
    const max_context_tokens = Math.min(usual, this.#model.config.max_position_embeddings);
    return { max_context_tokens, max_new_tokens: Math.min(160, Math.floor(max_context_tokens / 4)) };
  }

  #config({ steps, questions, episodes, ...choice }: TrainingChoice): GRPOConfig {
    const { learning_rate, step_budget, seed } = choice;
    const { prompt, shots = 0 } = this.#use.prompt;
    const { max_context_tokens, max_new_tokens } = this.#lengths;
    const { reward_weights, scale_rewards } = presetNamed("starter");
    return resolveConfig({
      model_name: "playground",
      ...(prompt !== undefined && { prompt, shots }),
      max_steps: steps,
      learning_rate,
      step_budget,
      seed,
      num_generations: episodes,
      per_device_train_batch_size: questions * episodes,
      gradient_accumulation_steps: 1,
      num_train_epochs: 1000,
      lr_scheduler_type: "constant",
      max_context_tokens,
      max_new_tokens,
      max_completion_length: Math.max(400, max_new_tokens),
      reward_weights,
      scale_rewards,
      logging_steps: 1,
      eval_steps: 0,
    });
  }

  #trainerParts(data: DataSet, config: GRPOConfig, onStep: (step: number) => Promise<void>) {
    const { engine, tokenizer, turns } = this.#model;
    // A page never resumes: an engine without saveState is not checkpointed.
    const model = { engine, tokenizer, turns };
    let metrics: Extract<WorkerEvent, { event: "step" }>["metrics"] | undefined;
    const emit = this.#emit;
    return {
      model,
      data,
      config,
      store: new MemoryStore(),
      callbacks: [
        {
          on_log: (_: unknown, line: NonNullable<typeof metrics>) => {
            metrics = line;
          },
          on_step_end: async (
            _: unknown,
            { timing, episodes }: Omit<Extract<WorkerEvent, { event: "step" }>, "event" | "metrics">,
          ) => {
            this.isTrained = true;
            emit({ event: "step", metrics: metrics!, timing, episodes });
            await onStep(metrics!.step);
          },
          on_warning: (_: unknown, warning: Extract<WorkerEvent, { event: "warning" }>["warning"]) =>
            emit({ event: "warning", warning }),
        },
      ],
    };
  }

  /** Plays the test questions and the watched question greedily. */
  async #evaluate(data: DataSet, config: GRPOConfig, watched: string): Promise<Evaluation> {
    const { step_budget, difficulty_filter: difficulty, seed } = config;
    const player = sqlPlayer(this.#model, "greedy", config);
    const split = data.questions.some((q) => q.split === "eval") ? "eval" : "train";
    const options = {
      split,
      episodes: TEST_QUESTIONS,
      difficulty,
      seed,
      step_budget,
      concurrency: TEST_QUESTIONS,
    } as const;
    let [right, of] = [0, 0];
    let episode: EpisodeRecord | undefined;
    await evaluate(data, player, {
      ...options,
      onEpisode: (record) => {
        of++;
        right += record.correctness ?? 0;
        if (record.question_id === watched) episode = record;
      },
    });
    episode ??= await this.#playWatched(data, player, watched, step_budget);
    if (episode.error !== null) throw new Error(episode.error);
    return { episode, right, of };
  }

  #playWatched(data: DataSet, player: Player, watched: string, step_budget: number): Promise<EpisodeRecord> {
    const question = data.questions.find(({ question_id }) => question_id === watched) ?? data.questions[0]!;
    const seen = data.questions.some(
      ({ split, database_name }) => split === "train" && database_name === question.database_name,
    );
    return playEpisode(new SQLEnvironment(data, { step_budget }), player, { question, seen });
  }
}

/** Where a model runs, in words. */
function deviceWords({ device, variant, threads }: WebModel["facts"]): string {
  if (device === "webgpu") return `the GPU: ${variant.replace(/^webgpu /, "")}`;
  return threads === 1 ? "one thread" : `${threads} threads`;
}

/** The files that the site lists for its model; undefined without a list, as on a hand-made site. */
async function listed(folder: string): Promise<string[] | undefined> {
  const response = await fetch(new URL("files.json", folder)).catch(() => null);
  const list: unknown = response?.ok ? await response.json().catch(() => null) : null;
  return Array.isArray(list) ? list.map(String) : undefined;
}
