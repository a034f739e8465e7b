// GRPO: the whole algorithm, to be read from top to bottom.
//
//     sqlenv train --preset starter          or in code: new GRPOTrainer({ model, data, config }).train()
//
// The environment is text in, text and reward out (environment.ts); with `data` it is the SQL environment on that data set.
//
// A batch has B episodes: each of its tasks played G times (num_generations); the episodes of one task are a group.
// Episode i has turns, and T_i tokens that the model wrote in them. π is the model now, π_old the one that sampled.
//
//     sample      episode_i ~ π_old in the environment                                 [B]              rollout.ts
//     reward      r_i = Σ_k weight_k · reward_k(episode_i)                             [B]              rewards.ts
//     advantage   A_i = (r_i − mean(r of its group)) / (std(r of its group) + 1e-4)    [B]              advantages.ts
//     ratio       w_it = π(token_it) / π_old(token_it)                                 [Σ T_i]          loss.ts
//     clip        s_it = min(w_it · A_i, clip(w_it, 1 − ε, 1 + ε_high) · A_i)          [Σ T_i]          loss.ts
//     loss        L = −mean over the tokens of all episodes (s_it − β · KL_it)         [1]              loss.ts
//     step        θ ← AdamW(θ, ∂L/∂θ); the next batch is sampled by the new model
//
// These are the defaults: other settings of scale_rewards and loss_type change one line each (see those files). turn_credit
// makes A differ by turn, [B × turns], and self_distillation by token.
//
// How it departs from TRL's GRPOTrainer, whose formulas, order and names it keeps:
//  1. What one optimizer step learns from goes to the engine as one batch, not in pieces of per_device_train_batch_size:
//     the engine packs it, computes shared prefixes once, and cuts it to fit memory. Sums are the same; bnpo, whose mean is
//     over a piece, has it over the whole (docs/decisions/0009-one-batch-per-optimizer-step.md).
//  2. Groups whose rewards are all equal have no gradient; they are counted and not computed (unless β, an entropy bonus
//     or an entropy quantile needs them). Their tokens stay in the denominators. With dynamic_sampling they are replaced,
//     and the denominators count what is learned from (docs/decisions/0027-dynamic-sampling.md).
//  3. An episode whose history was cut is learned from in segments, each with exactly the context it was sampled in.
//
// Every random number has a name (seed, purpose, generation, episode, position), so no generator state needs saving: with
// weights, optimizer and the counters in TrainerState a resumed training continues to the same bits.

import { SqlEnvError, UsageError } from "../errors.ts";
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { Engine } from "../lm/engine/index.ts";
import type { Tokenizer, TurnEncoder } from "../lm/model/index.ts";
import { episodeLines, makeRolloutBatch, promptTokens, type RolloutBatch } from "./batch.ts";
import {
  buildData,
  bySegment,
  cutIntoSlices,
  isOffPolicy,
  type Logprobs,
  learnsFromAll,
  policySpec,
  samplingMismatch,
  withAdvantage,
} from "./batch-data.ts";
import { evaluationMetrics, type TrainerCallback, type TrainingView } from "./callbacks.ts";
import { type Batching, batchingOf, type GRPOConfig, learningRateAt, stepsOf } from "./config.ts";
import { warningsAt } from "./diagnostics.ts";
import { awaitable } from "./dynamic-sampling.ts";
import type { Environment, Task, TaskSplit } from "./environment.ts";
import { evaluateModel, previewEpisodes } from "./evaluate-model.ts";
import { added, meansOf, type Sums } from "./metrics.ts";
import { checkRewards, REWARD_FUNCTIONS, type RewardFunction, rewardName, score } from "./rewards.ts";
import { rollOut } from "./rollout.ts";
import { RolloutClock } from "./rollout-clock.ts";
import type { Episode, EpisodeLine, Evaluation, MetricLine } from "./run/records.ts";
import { MemoryStore, type RestPoint, type RunStore, type TrainerState } from "./run/store.ts";
import { type SampledBatch, sampleBatch } from "./sample-batch.ts";
import { distill } from "./self-distillation.ts";
import { createSqlEnvironment, type SqlEnvironmentOptions } from "./sql/sql-environment.ts";
import { StepClock } from "./step-clock.ts";
import { easyTasks } from "./task-order.ts";
import type { QueueState } from "./task-queue.ts";

/** An engine whose weights and optimizer state can be checkpointed and restored. */
export interface TrainableEngine extends Engine {
  saveState?(dir: string): Promise<void>;
  loadState?(dir: string): Promise<void>;
}

export interface TrainableModel {
  readonly engine: TrainableEngine;
  readonly tokenizer: Tokenizer;
  readonly turns: TurnEncoder;
}

/** Give `environment`, or `data` (and `environments`) for the SQL environment on a data set. */
export interface TrainerOptions extends Partial<Omit<SqlEnvironmentOptions, "config">> {
  readonly model: TrainableModel;
  readonly config: GRPOConfig;
  readonly environment?: Environment | undefined;
  /** @default correctness, progress and operational */
  readonly rewardFuncs?: readonly RewardFunction[];
  readonly callbacks?: readonly TrainerCallback[];
  /** @default memory */
  readonly store?: RunStore;
}

export interface TrainOutput {
  readonly steps: number;
  readonly interrupted: boolean;
  /** Lines of metrics.jsonl written by this call. */
  readonly metrics: readonly MetricLine[];
}

/**
 * Trains a model in the environment.
 *
 * @example
 * const trainer = new GRPOTrainer({ model, data, config: resolveConfig(presetNamed("starter")) });
 * const { metrics } = await trainer.train();
 * await model.engine.saveModel("trained");
 */
export class GRPOTrainer {
  readonly config: GRPOConfig;
  readonly environment: Environment;
  readonly model: TrainableModel;
  readonly store: RunStore;
  readonly tasks: readonly Task[];
  /** Optimizer steps of the whole training. */
  readonly total_steps: number;
  readonly #batching: Batching;
  readonly #easy: readonly Task[];
  /** Number of batches at the beginning that have easy tasks only. */
  readonly #easyBatches: number;
  readonly #rewardFuncs: readonly RewardFunction[];
  readonly #callbacks: readonly TrainerCallback[];
  readonly #lines: MetricLine[] = [];
  #clock = new StepClock();
  #state: TrainerState = {
    step: 0,
    generation: 0,
    episodes: 0,
    tokens: 0,
    elapsed: 0,
    evaluated: 0,
    since_log: {},
    warned: [],
  };
  /** Metrics since the last optimizer step, for the warnings. */
  #ofStep: Sums = {};
  /** Slices whose gradients wait for an optimizer step, and the groups of that step so far. */
  #accumulated = 0;
  #groups = 0;
  /** Share of the last batch's groups that had spread: how many to start early, which changes no result. */
  #spread = 1;
  #saved = -1;
  /** The last moment at which no gradient was waiting. */
  #rest: RestPoint | undefined;

  constructor(options: TrainerOptions) {
    const { model, config, rewardFuncs = REWARD_FUNCTIONS, callbacks = [], store } = options;
    this.model = model;
    this.config = config;
    this.environment = environmentOf(options);
    this.store = store ?? new MemoryStore();
    this.tasks = this.environment.tasks("train");
    this.#batching = batchingOf(config);
    const { slices, accumulations } = this.#batching;
    this.#easyBatches = Math.ceil((config.easy_steps * accumulations) / (slices * config.num_iterations));
    this.#easy = this.#easyBatches > 0 ? easyTasks(this.tasks, this.environment.name) : [];
    if (this.#easy.length > 0) stepsOf(config, this.#easy.length); // enough for a batch
    this.#rewardFuncs = rewardFuncs;
    this.#callbacks = callbacks;
    this.total_steps = stepsOf(config, this.tasks.length);
    checkRewards(rewardFuncs, config.reward_weights);
  }

  get state(): TrainerState {
    return this.#state;
  }

  /** Lines of metrics.jsonl this trainer wrote. */
  get metrics(): readonly MetricLine[] {
    return this.#lines;
  }

  /** Trains to the end, or until the signal; continues from the store's newest checkpoint where there is one. */
  async train({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<TrainOutput> {
    await this.#resume();
    await this.#notify("on_train_begin");
    await this.#warn({}); // of the settings
    this.#clock = new StepClock();
    try {
      while (this.#state.step < this.total_steps) {
        await this.#evaluateWhenDue(signal);
        await this.#saveWhenDue();
        // Waiting gradients are in no checkpoint: a step that has begun is finished before an interruption counts,
        // unless a reward function does not let it.
        if (this.#accumulated === 0) this.#rest = { state: this.#state, logs: this.store.lengths() };
        await this.#trainOnBatch(signal);
      }
    } catch (error) {
      const isReward = error instanceof SqlEnvError && error.code === "reward_failed";
      if (isReward) await this.save().catch(() => {}); // keep what was learned; the function's failure is the error to report
      if (!signal?.aborted || error !== signal.reason) throw error;
    }
    await this.save();
    const interrupted = this.#state.step < this.total_steps;
    if (!interrupted) await this.#notify("on_train_end");
    return { steps: this.#state.step, interrupted, metrics: this.#lines };
  }

  /** GRPO on one batch: sample → reward → advantage → (ratio, clip, loss → step) num_iterations times over each slice. */
  async #trainOnBatch(signal: AbortSignal | undefined): Promise<void> {
    const { config } = this;
    const reward_names = this.#rewardFuncs.map(rewardName);

    // Sample: episodes [B], each with its tokens, their log π_old and who wrote them.
    const { episodes, isLearned, metrics, queue } = await this.#rollOut(signal);

    // Reward: rows [B × reward functions].
    const { rows, metrics: rewardMetrics } = await this.#clock.time("rewards", () =>
      score(episodes, this.#rewardFuncs, this.#state.step + 1, { timeout: config.reward_timeout, signal }),
    );

    // Advantage: A_i = (r_i − mean(r of its group)) / (std(r of its group) + 1e-4), r = rows · weights: [B];
    // with turn_credit [B × turns], with self_distillation by token.
    const played = makeRolloutBatch({ episodes, rows, reward_names, isLearned }, config, this.environment);
    this.#addMetrics({ ...played.metrics, ...metrics, ...rewardMetrics });
    this.#countEpisodes(episodes, queue);
    const batch = config.self_distillation > 0 ? await this.#distill(played) : played;

    const { num_generations } = config;
    const lines = episodeLines(batch, {
      step: this.#state.step + 1,
      firstGroup: this.#groups,
      reward_names,
      num_generations,
    });
    this.#groups += episodes.length / num_generations;
    this.store.append("episodes.jsonl", ...lines);
    const slices = cutIntoSlices(batch.learned, this.#batching.slices, [config.seed, this.#state.generation]);
    const logprobs = await this.#clock.time("training", () => this.#logprobs(batch));
    this.#update({ generation: this.#state.generation + 1 });

    for (let iteration = 0; iteration < config.num_iterations; iteration++) {
      for (const members of slices) {
        if (this.#state.step >= this.total_steps) return; // max_steps may end within a batch
        await this.#clock.time("training", async () => {
          // Loss, per token of the slice, with w = exp(log π − log π_old):
          //     −min(w · A, clip(w, 1 − ε, 1 + ε_high) · A) + β · KL(π, π_ref)
          await this.#addGradient(batch, members, logprobs);
          this.#accumulated = (this.#accumulated + 1) % this.#batching.accumulations;
          // Step: θ ← AdamW(θ, Σ of the gradients).
          if (this.#accumulated === 0) await this.#step();
        });
        if (this.#accumulated === 0) await this.#endStep(lines);
      }
    }
  }

  /** Plays each task of the next batch num_generations times. */
  async #rollOut(requested: AbortSignal | undefined): Promise<SampledBatch> {
    const { config, environment, model } = this;
    const { engine, settled } = awaitable(model.engine);
    const { generation, queue } = this.#state;
    const clock = new RolloutClock();
    const workedBefore = environment.workSeconds ?? 0;
    const started = performance.now();
    const batch = await sampleBatch({
      config,
      batching: this.#batching,
      ...this.#tasksAt(generation),
      generation,
      queue,
      expected: this.#spread,
      play: (tasks, key, options) =>
        rollOut(environment, tasks, { model: { ...model, engine }, config, key, clock, ...options }),
      signal: this.#accumulated > 0 ? undefined : requested,
    }).finally(settled);
    const { isLearned, metrics } = batch;
    if (isLearned) this.#spread = metrics["groups/kept"]! / metrics["groups/asked"]!;
    this.#clock.rollout(clock, batch, {
      seconds: (performance.now() - started) / 1000,
      elsewhere: (environment.workSeconds ?? 0) - workedBefore,
    });
    return batch;
  }

  /** The tasks that a batch draws from, and the first batch that does. */
  #tasksAt(generation: number): { readonly tasks: readonly Task[]; readonly first: number } {
    const isEasy = generation < this.#easyBatches;
    return isEasy ? { tasks: this.#easy, first: 0 } : { tasks: this.tasks, first: this.#easyBatches };
  }

  /** The batch with advantages by token, from self-distillation, for groups in which every episode is wrong. */
  async #distill(played: RolloutBatch): Promise<RolloutBatch> {
    const { advantages: distilled, metrics } = await this.#clock.time("training", () =>
      distill(played.episodes, this.model, this.environment, this.config),
    );
    this.#addMetrics(metrics);
    return { ...played, distilled };
  }

  /** log π_old where π changes before it has learned from all slices, and log π_ref where there is a KL term. */
  async #logprobs(batch: RolloutBatch): Promise<Logprobs> {
    const { engine } = this.model;
    const { beta, temperature } = this.config;
    const data = buildData(batch, batch.learned, { old: null, reference: null }, this.config);
    return {
      old: isOffPolicy(this.config, this.#batching)
        ? bySegment(batch, await engine.logprobs(data, { temperature }))
        : null,
      reference:
        beta === 0 ? null : bySegment(batch, await engine.logprobs(data, { temperature, weights: "reference" })),
    };
  }

  /** Adds the gradient of the loss over one slice of a batch. */
  async #addGradient(batch: RolloutBatch, members: readonly number[], logprobs: Logprobs): Promise<void> {
    const { config } = this;
    const all = buildData(batch, members, logprobs, config);
    const data = learnsFromAll(config) ? all : withAdvantage(all);
    const groups = new Set(members.map((i) => Math.floor(i / config.num_generations)));
    const computed = new Set(data.map(({ sequence }) => Math.floor(sequence! / config.num_generations)));
    this.#addMetrics({ "groups/skipped": 1 - computed.size / groups.size });
    if (data.length === 0) return this.#addMetrics({ loss: 0 });
    const tokens = all.reduce((sum, { weights }) => sum + Array.from(weights).reduce((n, w) => n + w, 0), 0);
    const output = await this.model.engine.forwardBackward(data, {
      loss: policySpec(config, this.#batching, batch),
      temperature: config.temperature,
      totals: { sequences: members.length, tokens },
    });
    // Losses of a step's slices add up, and metrics are averaged over them.
    this.#addMetrics({ loss: output.loss * this.#batching.accumulations, ...output.metrics });
    // On policy, sampling and learning compute log-probs of the same model: they must agree.
    if (!logprobs.old) this.#addMetrics(samplingMismatch(batch, data, output.logprobs));
  }

  async #step(): Promise<void> {
    const { weight_decay, adam_beta1: beta1, adam_beta2: beta2, adam_epsilon: eps, max_grad_norm } = this.config;
    const step = this.#state.step + 1;
    const learning_rate = learningRateAt(step, this.total_steps, this.config);
    const rates = { learning_rate, beta1, beta2, eps, weight_decay, max_grad_norm };
    const { grad_norm, skipped } = await this.model.engine.optimStep(rates);
    this.#update({ step });
    this.#addMetrics({ grad_norm, learning_rate, "steps/skipped": skipped ? 1 : 0 });
  }

  /** Warnings, metrics and callbacks of an optimizer step. */
  async #endStep(episodes: readonly EpisodeLine[]): Promise<void> {
    const { config, store } = this;
    const { step, tokens, generation, queue, elapsed } = this.#state;
    const timing = this.#clock.take(step, elapsed, config);
    this.#update({ elapsed: timing.elapsed });
    store.append("timings.jsonl", timing);

    await this.#warn(meansOf(this.#ofStep));
    this.#ofStep = {};
    this.#groups = 0;

    if (step % config.logging_steps === 0 || step === this.total_steps) {
      const epoch = queue
        ? queue.position / this.#tasksAt(generation - 1).tasks.length
        : generation / Math.floor(this.tasks.length / this.#batching.questions);
      const line: MetricLine = { step, epoch, num_tokens: tokens, ...meansOf(this.#state.since_log) };
      this.#update({ since_log: {} });
      this.#write(line);
      await this.#notify("on_log", line);
    }
    await this.#notify("on_step_end", { timing, episodes });
  }

  /** Reports what has begun to go wrong. */
  async #warn(metrics: Readonly<Record<string, number>>): Promise<void> {
    const { warnings, ...health } = warningsAt(this.#state.step, metrics, this.config, this.#state);
    this.#update(health);
    for (const warning of warnings) {
      this.store.append("warnings.jsonl", warning);
      await this.#notify("on_warning", warning);
    }
  }

  async #evaluateWhenDue(signal: AbortSignal | undefined): Promise<void> {
    const { step, evaluated } = this.#state;
    const { eval_steps, eval_episodes: episodes } = this.config;
    if (eval_steps === 0 || !passedMultiple(eval_steps, evaluated, step) || this.#accumulated > 0) return;
    const evaluation = await evaluateModel(this.environment, this.model, this.config, { episodes, signal });
    this.#update({ evaluated: step });
    await this.record(evaluation);
  }

  /** Logs an evaluation at the current step. */
  async record(evaluation: Evaluation): Promise<void> {
    this.#write(evaluationMetrics(this.#state.step, evaluation));
    await this.#notify("on_evaluate", evaluation);
  }

  async #saveWhenDue(): Promise<void> {
    if (passedMultiple(this.config.save_steps, Math.max(0, this.#saved), this.#state.step)) await this.save();
  }

  /** Writes a checkpoint unless this step has one; while gradients wait, of the moment before them. */
  async save(): Promise<void> {
    const { engine } = this.model;
    const rest = this.#accumulated > 0 ? this.#rest : { state: this.#state, logs: this.store.lengths() };
    // A step may begin within a batch, whose remaining slices cannot be learned from again.
    if (this.#saved === this.#state.step || rest?.state.step !== this.#state.step || !engine.saveState) return;
    const { state, logs } = rest;
    await this.store.checkpoint(state, (dir) => engine.saveState!(dir), this.config.save_total_limit, logs);
    this.#saved = this.#state.step;
    await this.#notify("on_save", this.store.name);
  }

  /** Restores the newest checkpoint: weights, counters, and the length of every log. */
  async #resume(): Promise<void> {
    const newest = this.store.newest();
    if (!newest?.dir || !this.model.engine.loadState) return;
    await this.model.engine.loadState(newest.dir);
    this.store.rewind();
    this.#state = newest.state;
    this.#saved = newest.state.step;
  }

  /** Counts a batch that was scored, and moves the queue past its questions. */
  #countEpisodes(episodes: readonly Episode[], queue: QueueState | undefined): void {
    const { episodes: count, tokens } = this.#state;
    const added = episodes.map((episode) => promptTokens(episode) + episode.completion_tokens);
    this.#update({
      ...(queue && { queue }),
      episodes: count + episodes.length,
      tokens: added.reduce((sum, n) => sum + n, tokens),
    });
  }

  #update(change: Partial<TrainerState>): void {
    this.#state = { ...this.#state, ...change };
  }

  /** Adds to the means of the next line of metrics.jsonl. */
  #addMetrics(metrics: Readonly<Record<string, number>>): void {
    this.#update({ since_log: added(this.#state.since_log, metrics) });
    this.#ofStep = added(this.#ofStep, metrics);
  }

  #write(line: MetricLine): void {
    this.store.append("metrics.jsonl", line);
    this.#lines.push(line);
  }

  #preview(split: TaskSplit, episodes: number): Promise<EpisodeRecord[]> {
    const seed = this.config.seed + this.#state.step;
    return previewEpisodes(this.environment, this.model, this.config, { split, episodes, seed });
  }

  async #notify<E extends keyof TrainerCallback>(event: E, ...about: EventArguments<E>): Promise<void> {
    const { config, state, total_steps } = this;
    const view: TrainingView = { config, state, total_steps, play: (split, n) => this.#preview(split, n) };
    for (const callback of this.#callbacks)
      await (callback[event] as ((view: TrainingView, ...about: unknown[]) => unknown) | undefined)?.call(
        callback,
        view,
        ...about,
      );
  }
}

/** The environment of the options; what the config needs of it is checked. */
function environmentOf({ environment, data, environments, config }: TrainerOptions): Environment {
  if (environment && data)
    throw new UsageError({ what: "both `environment` and `data` are given", remedy: "give one" });
  if (!environment && !data)
    throw new UsageError({ what: "a trainer needs an environment", remedy: "give `environment`, or `data` for SQL" });
  const given = environment ?? createSqlEnvironment({ data: data!, config, environments });
  for (const [key, method] of [
    ["turn_credit", "milestone"],
    ["self_distillation", "failures"],
  ] as const)
    if (config[key] > 0 && !given[method])
      throw new UsageError({
        what: `${key} needs an environment with ${method}(); this one has none`,
        value: given.name,
        remedy: `set ${key} to 0`,
      });
  return given;
}

/** Whether something done every n steps is due; a batch of several steps may skip the exact one. */
function passedMultiple(every: number, last: number, step: number): boolean {
  return Math.floor(step / every) > Math.floor(last / every);
}

type EventArguments<E extends keyof TrainerCallback> =
  Parameters<NonNullable<TrainerCallback[E]>> extends [TrainingView, ...infer Rest] ? Rest : never;
