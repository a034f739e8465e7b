// The trainer: GRPO in one file, to be read from top to bottom.
//
//     play      every question of a generation is played num_generations times       (rollout.ts)
//     score     reward functions judge the episodes                                  (rewards.ts)
//     compare   an episode's advantage is how much better than its group it did      (grpo.ts, lm/engine/advantages.ts)
//     learn     its tokens become likelier or less likely, within bounds             (lm/engine/loss.ts)
//     step      AdamW moves the weights, and the next generation is played by the new model
//
// How it departs from TRL's GRPOTrainer, whose formulas, order and names it keeps:
//  1. What one optimizer step learns from goes to the engine as one batch, not in pieces of per_device_train_batch_size:
//     the engine packs it, computes what a group shares once, and cuts it to fit memory. Sums are the same; bnpo, whose
//     mean is over a piece, has it over the whole (docs/decisions/0009-batches.md).
//  2. Groups in which all did equally well have no gradient; they are counted and not computed (unless β, an entropy bonus
//     or an entropy quantile needs them). Their tokens stay in the denominators. With dynamic_sampling they are replaced,
//     and the denominators count what is learned from (docs/decisions/0027-refill.md).
//  3. An episode whose history was cut is learned from in segments, each with exactly the context it was sampled in.
//
// Every random number has a name (seed, purpose, generation, episode, position), so nothing about chance needs saving:
// weights, optimizer and the counters in TrainerState are all that a resumed training needs to go on to the same bits.

import { SqlEnvError } from "../errors.ts";
import { type DataSet, filterQuestions } from "../gym/data/index.ts";
import { type EnvironmentSource, type EpisodeRecord, evaluate, localEnvironments } from "../gym/evaluation/index.ts";
import type { Engine } from "../lm/engine/index.ts";
import type { Tokenizer, TurnEncoder } from "../lm/model/index.ts";
import { playBatch } from "./batch.ts";
import { evaluationMetrics, type TrainerCallback, type TrainingView } from "./callbacks.ts";
import { type Batching, batchingOf, environmentOptionsOf, type GRPOConfig, learningRateAt, stepsOf } from "./config.ts";
import { warningsAt } from "./diagnostics.ts";
import {
  dataOf,
  disagreement,
  episodeLines,
  type Generation,
  generationOf,
  isOffPolicy,
  type Logprobs,
  learnsFromAll,
  lossOf,
  promptTokens,
  slicesOf,
  withAdvantage,
} from "./grpo.ts";
import { added, meansOf, type Sums } from "./metrics.ts";
import { easyPrompts, loadQuestionPrompts, type QuestionPrompt } from "./prompts.ts";
import { awaitable } from "./refill.ts";
import { checkRewards, REWARD_FUNCTIONS, type RewardFunction, rewardName, score } from "./rewards.ts";
import { rolloutFunc } from "./rollout.ts";
import { RolloutClock } from "./rollout-clock.ts";
import type { EpisodeLine, MetricLine, Standing, TimingLine } from "./run/records.ts";
import { rewardedQuestions } from "./run/split.ts";
import { MemoryStore, type RestPoint, type RunStore, type TrainerState } from "./run/store.ts";
import { distill } from "./self-distillation.ts";
import { playerOf, standingOf } from "./standing.ts";

/** An engine that can also be put away and taken up again. */
export interface TrainableEngine extends Engine {
  saveState?(dir: string): Promise<void>;
  loadState?(dir: string): Promise<void>;
}

export interface TrainableModel {
  readonly engine: TrainableEngine;
  readonly tokenizer: Tokenizer;
  readonly turns: TurnEncoder;
}

export interface TrainerOptions {
  readonly model: TrainableModel;
  readonly data: DataSet;
  readonly config: GRPOConfig;
  /** @default correctness, progress and operational */
  readonly rewardFuncs?: readonly RewardFunction[];
  readonly callbacks?: readonly TrainerCallback[];
  /** @default memory */
  readonly store?: RunStore;
  /** Where episodes find their environments. @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
}

export interface TrainOutput {
  readonly steps: number;
  readonly interrupted: boolean;
  /** Lines of metrics.jsonl written by this call. */
  readonly metrics: readonly MetricLine[];
}

/** Seconds of the running step, by what they went into. */
interface Stopwatch {
  sampling: number;
  environment: number;
  environment_work: number;
  stopped_groups: number;
  rewards: number;
  training: number;
  tokens: number;
}

const idle = (): Stopwatch => ({
  ...{ sampling: 0, environment: 0, environment_work: 0, stopped_groups: 0, rewards: 0, training: 0, tokens: 0 },
});

/** Trains a model in the environment. */
export class GRPOTrainer {
  readonly config: GRPOConfig;
  readonly data: DataSet;
  readonly model: TrainableModel;
  readonly store: RunStore;
  readonly prompts: readonly QuestionPrompt[];
  /** Optimizer steps there will be. */
  readonly total_steps: number;
  readonly #batching: Batching;
  readonly #easy: readonly QuestionPrompt[];
  /** Generations that ask easy questions only. */
  readonly #easyGenerations: number;
  readonly #rewardFuncs: readonly RewardFunction[];
  readonly #callbacks: readonly TrainerCallback[];
  readonly #environments: EnvironmentSource;
  readonly #lines: MetricLine[] = [];
  #state: TrainerState = {
    ...{ step: 0, generation: 0, episodes: 0, tokens: 0, elapsed: 0, evaluated: 0 },
    ...{ since_log: {}, warned: [] },
  };
  /** Metrics since the last optimizer step, for the warnings. */
  #ofStep: Sums = {};
  /** Generations whose gradients wait for an optimizer step, and the groups of that step so far. */
  #accumulated = 0;
  #groups = 0;
  /** Share of the last generation's groups that had spread: how many to start early, which changes no result. */
  #spread = 1;
  #saved = -1;
  /** Where everything was when no gradient was waiting. */
  #rest: RestPoint | undefined;

  constructor(options: TrainerOptions) {
    const { model, data, config, rewardFuncs = REWARD_FUNCTIONS, callbacks = [], store, environments } = options;
    this.model = model;
    this.data = data;
    this.config = config;
    this.store = store ?? new MemoryStore();
    this.prompts = loadQuestionPrompts(data, config);
    this.#batching = batchingOf(config);
    const { slices, accumulations } = this.#batching;
    this.#easyGenerations = Math.ceil((config.easy_steps * accumulations) / (slices * config.num_iterations));
    this.#easy = this.#easyGenerations > 0 ? easyPrompts(this.prompts, data) : [];
    if (this.#easy.length > 0) stepsOf(config, this.#easy.length); // enough for a generation
    this.#rewardFuncs = rewardFuncs;
    this.#callbacks = callbacks;
    this.#environments = environments ?? localEnvironments(data);
    this.total_steps = stepsOf(config, this.prompts.length);
    checkRewards(rewardFuncs, config.reward_weights);
  }

  get state(): TrainerState {
    return this.#state;
  }

  /** Lines of metrics.jsonl this trainer wrote. */
  get metrics(): readonly MetricLine[] {
    return this.#lines;
  }

  /** Trains to the end, or until the signal; goes on from the store's newest checkpoint where there is one. */
  async train({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<TrainOutput> {
    await this.#takeUp();
    await this.#tell("on_train_begin");
    await this.#warn({}); // of the settings
    const watch = idle();
    try {
      while (this.#state.step < this.total_steps) {
        await this.#evaluateWhenDue(signal);
        await this.#saveWhenDue();
        // Waiting gradients are in no checkpoint: a step that has begun is finished before an interruption counts,
        // unless a reward function does not let it.
        if (this.#accumulated === 0) this.#rest = { state: this.#state, logs: this.store.lengths() };
        const generation = await this.#play(watch, signal);
        await this.#learn(generation, watch);
      }
    } catch (error) {
      const isReward = error instanceof SqlEnvError && error.code === "reward_failed";
      if (isReward) await this.save().catch(() => {}); // what was learned is kept; that a function failed is what is told
      if (!signal?.aborted || error !== signal.reason) throw error;
    }
    await this.save();
    const interrupted = this.#state.step < this.total_steps;
    if (!interrupted) await this.#tell("on_train_end");
    return { steps: this.#state.step, interrupted, metrics: this.#lines };
  }

  /** One generation: rollout → rewards → advantages. */
  async #play(watch: Stopwatch, requested: AbortSignal | undefined): Promise<Generation> {
    const { config, data } = this;
    const signal = this.#accumulated > 0 ? undefined : requested;
    const { generation, step } = this.#state;
    const { prompts, first } = this.#promptsAt(generation);
    const { tokenizer, turns } = this.model;
    const { engine, settled } = awaitable(this.model.engine);
    const clock = new RolloutClock();
    const workedBefore = this.#environments.workSeconds ?? 0;
    const started = performance.now();
    const batch = await playBatch({
      ...{ config, batching: this.#batching, prompts, generation, first, signal },
      ...{ queue: this.#state.queue, expected: this.#spread },
      play: (asked, key, options) =>
        rolloutFunc(asked, engine, tokenizer, config, {
          ...{ data, turns, key, environments: this.#environments, clock, ...options },
        }),
    }).finally(settled);
    const { episodes, isLearned, queue } = batch;
    if (isLearned) this.#spread = batch.metrics["groups/kept"]! / batch.metrics["groups/asked"]!;
    watch.environment += clock.waited;
    watch.stopped_groups += batch.stopped;
    watch.environment_work += clock.worked + (this.#environments.workSeconds ?? 0) - workedBefore;
    watch.sampling += (performance.now() - started) / 1000 - clock.waited;
    watch.tokens += episodes.reduce((sum, { segments }) => sum + segments.reduce((n, s) => n + s.tokens.length, 0), 0);

    const scoring = performance.now();
    const { rows, metrics } = await score(episodes, this.#rewardFuncs, step + 1, {
      timeout: config.reward_timeout,
      signal: requested,
    });
    watch.rewards += (performance.now() - scoring) / 1000;
    const played = generationOf(episodes, rows, this.#rewardFuncs.map(rewardName), config, isLearned);
    this.#count({ ...played.metrics, ...batch.metrics, ...metrics });
    this.#update({
      ...(queue && { queue }),
      episodes: this.#state.episodes + episodes.length,
      tokens:
        this.#state.tokens +
        episodes.reduce((sum, episode) => sum + promptTokens(episode) + episode.completion_tokens, 0),
    });
    return played;
  }

  /** What a generation may ask, and the first generation that may ask it. */
  #promptsAt(generation: number): { readonly prompts: readonly QuestionPrompt[]; readonly first: number } {
    const isEasy = generation < this.#easyGenerations;
    return isEasy ? { prompts: this.#easy, first: 0 } : { prompts: this.prompts, first: this.#easyGenerations };
  }

  /** What a generation teaches: loss → optimizer step → log, num_iterations times over each of its slices. */
  async #learn(played: Generation, watch: Stopwatch): Promise<void> {
    const { config } = this;
    const generation = config.self_distillation > 0 ? await this.#distill(played, watch) : played;
    const names = this.#rewardFuncs.map(rewardName);
    const lines = episodeLines(generation, this.#state.step + 1, this.#groups, names, config);
    this.#groups += generation.episodes.length / config.num_generations;
    this.store.append("episodes.jsonl", ...lines);
    const slices = slicesOf(generation.learned, this.#batching.slices, [config.seed, this.#state.generation]);
    const started = performance.now();
    const logprobs = await this.#logprobsOf(generation);
    watch.training += (performance.now() - started) / 1000;
    this.#update({ generation: this.#state.generation + 1 });
    for (let iteration = 0; iteration < config.num_iterations; iteration++) {
      for (const members of slices) {
        if (this.#state.step >= this.total_steps) return; // max_steps may end within a generation
        const training = performance.now();
        await this.#addGradient(generation, members, logprobs);
        this.#accumulated = (this.#accumulated + 1) % this.#batching.accumulations;
        if (this.#accumulated === 0) await this.#step();
        watch.training += (performance.now() - training) / 1000;
        if (this.#accumulated > 0) continue;
        await this.#endStep(watch, lines);
        Object.assign(watch, idle());
      }
    }
  }

  /** A generation whose groups that are wrong throughout have advantages by self-distillation. */
  async #distill(played: Generation, watch: Stopwatch): Promise<Generation> {
    const started = performance.now();
    const { advantages: distilled, metrics } = await distill(played.episodes, this.model, this.config);
    watch.training += (performance.now() - started) / 1000;
    this.#count(metrics);
    return { ...played, distilled };
  }

  /** Log-probs of the model that played and of the one training began with, where the loss compares with them. */
  async #logprobsOf(generation: Generation): Promise<Logprobs> {
    const { engine } = this.model;
    const { beta, temperature } = this.config;
    const { episodes, learned } = generation;
    const data = dataOf(generation, learned, { old: null, reference: null }, this.config);
    const bySegment = (flat: readonly Float32Array[]) => {
      let at = 0;
      const found: Float32Array[][] = episodes.map(() => []);
      for (const i of learned) found[i] = episodes[i]!.segments.map(() => flat[at++]!);
      return found;
    };
    return {
      old: isOffPolicy(this.config, this.#batching) ? bySegment(await engine.logprobs(data, { temperature })) : null,
      reference: beta === 0 ? null : bySegment(await engine.logprobs(data, { temperature, weights: "reference" })),
    };
  }

  /** The gradient of one slice of a generation. */
  async #addGradient(generation: Generation, members: readonly number[], logprobs: Logprobs): Promise<void> {
    const { config } = this;
    const all = dataOf(generation, members, logprobs, config);
    const data = learnsFromAll(config) ? all : withAdvantage(all);
    const groups = new Set(members.map((i) => Math.floor(i / config.num_generations)));
    const taught = new Set(data.map(({ sequence }) => Math.floor(sequence! / config.num_generations)));
    this.#count({ "groups/skipped": 1 - taught.size / groups.size });
    if (data.length === 0) {
      this.#count({ loss: 0 });
      return;
    }
    const tokens = all.reduce((sum, { weights }) => sum + Array.from(weights).reduce((n, w) => n + w, 0), 0);
    const {
      loss,
      metrics,
      logprobs: now,
    } = await this.model.engine.forwardBackward(data, {
      loss: lossOf(config, this.#batching, generation),
      temperature: config.temperature,
      totals: { sequences: members.length, tokens },
    });
    this.#count({ loss: loss * this.#batching.accumulations, ...metrics }); // parts are averaged, and add up to a step's
    // On the first pass the model is still the one that played: what sampling and learning compute must agree.
    if (!logprobs.old) this.#count(disagreement(generation, data, now));
  }

  async #step(): Promise<void> {
    const { weight_decay, adam_beta1: beta1, adam_beta2: beta2, adam_epsilon: eps, max_grad_norm } = this.config;
    const step = this.#state.step + 1;
    const learning_rate = learningRateAt(step, this.total_steps, this.config);
    const rates = { learning_rate, beta1, beta2, eps, weight_decay, max_grad_norm };
    const { grad_norm, skipped } = await this.model.engine.optimStep(rates);
    this.#update({ step });
    this.#count({ grad_norm, learning_rate, "steps/skipped": skipped ? 1 : 0 });
  }

  /** Warnings, metrics and callbacks of an optimizer step. */
  async #endStep(watch: Stopwatch, episodes: readonly EpisodeLine[]): Promise<void> {
    const { config, store } = this;
    const { step, tokens, generation, queue } = this.#state;
    const { sampling, environment, environment_work, rewards, training } = watch;
    const step_time = sampling + environment + rewards + training;
    const elapsed = this.#state.elapsed + step_time;
    const timing: TimingLine = {
      ...{ step, step_time, sampling, environment, environment_work, rewards, training, elapsed },
      tokens_per_s: watch.tokens / step_time,
      ...(config.dynamic_sampling > 0 && { stopped_groups: watch.stopped_groups }),
    };
    this.#update({ elapsed });
    store.append("timings.jsonl", timing);

    await this.#warn(meansOf(this.#ofStep));
    this.#ofStep = {};
    this.#groups = 0;

    if (step % config.logging_steps === 0 || step === this.total_steps) {
      const epoch = queue
        ? queue.position / this.#promptsAt(generation - 1).prompts.length
        : generation / Math.floor(this.prompts.length / this.#batching.questions);
      const line: MetricLine = { step, epoch, num_tokens: tokens, ...meansOf(this.#state.since_log) };
      this.#update({ since_log: {} });
      this.#write(line);
      await this.#tell("on_log", line);
    }
    await this.#tell("on_step_end", { timing, episodes });
  }

  /** Says what has begun to go wrong. */
  async #warn(metrics: Readonly<Record<string, number>>): Promise<void> {
    const { warnings, ...health } = warningsAt(this.#state.step, metrics, this.config, this.#state);
    this.#update(health);
    for (const warning of warnings) {
      this.store.append("warnings.jsonl", warning);
      await this.#tell("on_warning", warning);
    }
  }

  async #evaluateWhenDue(signal: AbortSignal | undefined): Promise<void> {
    const { step, evaluated } = this.#state;
    const { eval_steps, eval_episodes: episodes } = this.config;
    if (eval_steps === 0 || !passedMultiple(eval_steps, evaluated, step) || this.#accumulated > 0) return;
    const standing = await standingOf(this.data, this.model, this.config, {
      ...{ episodes, signal, environments: this.#environments },
    });
    this.#update({ evaluated: step });
    await this.record(standing);
  }

  /** Logs an evaluation as of the step that was reached. */
  async record(standing: Standing): Promise<void> {
    this.#write(evaluationMetrics(this.#state.step, standing));
    await this.#tell("on_evaluate", standing);
  }

  async #saveWhenDue(): Promise<void> {
    if (passedMultiple(this.config.save_steps, Math.max(0, this.#saved), this.#state.step)) await this.save();
  }

  /** Writes a checkpoint, unless this step has one: of now, or with gradients waiting of when the step began. */
  async save(): Promise<void> {
    const { engine } = this.model;
    const rest = this.#accumulated > 0 ? this.#rest : { state: this.#state, logs: this.store.lengths() };
    // A step may begin within a generation, whose rest is not played again.
    if (this.#saved === this.#state.step || rest?.state.step !== this.#state.step || !engine.saveState) return;
    const { state, logs } = rest;
    await this.store.checkpoint(state, (dir) => engine.saveState!(dir), this.config.save_total_limit, logs);
    this.#saved = this.#state.step;
    await this.#tell("on_save", this.store.name);
  }

  /** Goes back to the newest checkpoint: weights, counters, and the length of every log. */
  async #takeUp(): Promise<void> {
    const newest = this.store.newest();
    if (!newest?.dir || !this.model.engine.loadState) return;
    await this.model.engine.loadState(newest.dir);
    this.store.rewind();
    this.#state = newest.state;
    this.#saved = newest.state.step;
  }

  #update(change: Partial<TrainerState>): void {
    this.#state = { ...this.#state, ...change };
  }

  /** Adds numbers to those of the next line of metrics. */
  #count(metrics: Readonly<Record<string, number>>): void {
    this.#update({ since_log: added(this.#state.since_log, metrics) });
    this.#ofStep = added(this.#ofStep, metrics);
  }

  #write(line: MetricLine): void {
    this.store.append("metrics.jsonl", line);
    this.#lines.push(line);
  }

  async #tell<E extends keyof TrainerCallback>(event: E, ...about: EventArguments<E>): Promise<void> {
    const { config, state, total_steps } = this;
    const view: TrainingView = { config, state, total_steps, play: (split, n) => this.#show(split, n) };
    for (const callback of this.#callbacks)
      await (callback[event] as ((view: TrainingView, ...about: unknown[]) => unknown) | undefined)?.call(
        callback,
        view,
        ...about,
      );
  }

  /** A few episodes to look at; they change nothing. */
  async #show(split: "train" | "eval", episodes: number): Promise<EpisodeRecord[]> {
    const { difficulty_filter: difficulty, seed } = this.config;
    const shown: EpisodeRecord[] = [];
    const isTrain = split === "train"; // of the training questions those that are rewarded
    const { data, config } = this;
    const pool = isTrain ? rewardedQuestions(data, config) : filterQuestions(data.questions, { split, difficulty });
    if (pool.length === 0) return shown;
    const databases = [...new Set(pool.map(({ database_name }) => database_name))];
    await evaluate(this.data, playerOf(this.model, "greedy", this.config), {
      ...{ split, episodes, difficulty, databases, seed: seed + this.#state.step, concurrency: episodes },
      environment: () => this.#environments.open(environmentOptionsOf(this.config)),
      onEpisode: (record) => shown.push(record),
    });
    return shown;
  }
}

/** Whether something done every so many steps is due; a generation of several steps may pass over the exact one. */
function passedMultiple(every: number, last: number, step: number): boolean {
  return Math.floor(step / every) > Math.floor(last / every);
}

type EventArguments<E extends keyof TrainerCallback> =
  Parameters<NonNullable<TrainerCallback[E]>> extends [TrainingView, ...infer Rest] ? Rest : never;
