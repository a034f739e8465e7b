// GRPO: the whole algorithm, top to bottom.
//
//     sqlenv train --preset starter          or in code: new GRPOTrainer({ model, data, config }).train()
//
// The environment is text in, text and reward out (environment.ts): { env, tasks } of your own, or `data` for SQL.
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
// These are the defaults; scale_rewards and loss_type change one line each (see those files). With turn_credit A differs
// by turn, [B × turns], with self_distillation by token.
//
// Usually a batch is learned from once: then π = π_old, every ratio is 1 and the clip does nothing, which leaves
// L = −mean(A_i · log π(token_it)) in its gradient. Ratio and clip act when num_iterations or steps_per_generation give
// several updates per batch. The starter preset also sets scale_rewards to none (A_i = r_i − mean) and has β = 0.
//
// Formulas, order and names are those of TRL's GRPOTrainer, with these differences:
//  1. The data of an optimizer step goes to the engine as one batch, not in pieces of per_device_train_batch_size: the
//     engine packs it, computes shared prefixes once, and splits it to fit memory. Sums are the same; bnpo's mean is over
//     the whole batch instead of a piece (docs/decisions/0009-one-batch-per-optimizer-step.md).
//  2. Groups whose rewards are all equal have no gradient; they are counted and not computed (unless β, an entropy bonus
//     or an entropy quantile needs them). Their tokens stay in the denominators. With dynamic_sampling they are replaced,
//     and the denominators count only what is learned from (docs/decisions/0027-dynamic-sampling.md).
//  3. An episode whose history was truncated is learned from in segments, each with the exact context it was sampled in.
//
// Every random number is keyed by seed, purpose, batch, episode and position, so no generator state is saved: with the
// weights, the optimizer state and the counters in TrainerState, a resumed training continues to the same bits.

import { SqlEnvError } from "../errors.ts";
import { bonusCoefficient, controlEntropy } from "./adaptive-entropy.ts";
import { computeAdvantages } from "./advantages.ts";
import { type EventDetails, notify, type TrainerCallback, type TrainerEvent, type TrainingView } from "./callbacks.ts";
import { type Batching, batchingOf, type GRPOConfig, learningRateAt, stepsOf } from "./config.ts";
import { warningsAt } from "./diagnostics.ts";
import type { Environment, Task } from "./environment.ts";
import { evaluateModel, evaluationMetrics, previewEpisodes } from "./evaluate-model.ts";
import { computeLogprobs, cutIntoSlices, type Logprobs, policySpec, selectData } from "./loss-inputs.ts";
import { samplingMismatch } from "./loss-metrics.ts";
import { added, meansOf, type Sums } from "./metrics.ts";
import { checkRewards, type RewardFunction, rewardEnvironment, rewardName, score } from "./rewards.ts";
import { episodeLines, learnedEpisodes, makeRolloutBatch, playedTokens, type RolloutBatch } from "./rollout-batch.ts";
import type { EpisodeLine, Evaluation, MetricLine } from "./run/records.ts";
import { INITIAL_STATE, MemoryStore, type ResumePoint, type RunStore, type TrainerState } from "./run/store.ts";
import { type SampledBatch, sampleBatch } from "./sample-batch.ts";
import { isEvaluationDue, isSaveDue, type TaskPool, taskPools } from "./schedule.ts";
import { distill } from "./self-distillation.ts";
import { type EnvironmentChoice, resolveEnvironment } from "./sql/resolve-environment.ts";
import type { QueueState } from "./task-queue.ts";
import { RolloutClock, StepClock } from "./timing.ts";
import { checkTrainable, type TrainableModel } from "./trainable-model.ts";

export interface TrainerOptions extends EnvironmentChoice {
  readonly model: TrainableModel;
  /** @default those of the environment; for SQL correctness, progress and operational */
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
  /** The tasks that a batch draws from, by its number. */
  readonly #poolAt: (batch: number) => TaskPool;
  readonly #rewardFuncs: readonly RewardFunction[];
  readonly #callbacks: readonly TrainerCallback[];
  readonly #lines: MetricLine[] = [];
  #clock = new StepClock();
  #state = INITIAL_STATE;
  /** Metrics since the last optimizer step, for the warnings. */
  #stepMetrics: Sums = {};
  /** Slices whose gradients are accumulated for the next optimizer step. */
  #accumulated = 0;
  /** Entropies of the tokens of the next optimizer step so far: their sum and number. */
  #entropies = { sum: 0, tokens: 0 };
  /** Groups logged so far for the next optimizer step. */
  #groups = 0;
  /** Share of the last batch's groups that were kept; decides how many to start early, which changes no result. */
  #keptShare = 1;
  #saved = -1;
  /** The last point at which no gradients were accumulated: what a checkpoint holds. */
  #resumePoint: ResumePoint | undefined;

  constructor(options: TrainerOptions) {
    const { model, config, callbacks = [], store } = options;
    this.model = model;
    this.config = config;
    this.environment = resolveEnvironment(options);
    this.store = store ?? new MemoryStore();
    this.tasks = this.environment.tasks("train");
    this.#batching = batchingOf(config);
    this.#poolAt = taskPools(this.tasks, config, this.#batching, this.environment.name);
    this.#rewardFuncs = options.rewardFuncs ?? this.environment.rewardFuncs ?? [rewardEnvironment];
    this.#callbacks = callbacks;
    this.total_steps = stepsOf(config, this.tasks.length);
    checkTrainable(model, config);
    checkRewards(this.#rewardFuncs, config.reward_weights);
  }

  get state(): TrainerState {
    return this.#state;
  }

  /** Lines of metrics.jsonl that this trainer has written. */
  get metrics(): readonly MetricLine[] {
    return this.#lines;
  }

  /** Trains to the end, or until aborted; resumes from the store's newest checkpoint if there is one. */
  async train({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<TrainOutput> {
    const { config } = this;
    await this.#resume();
    await this.#notify("on_train_begin");
    await this.#warn({}); // warnings about the settings alone
    this.#clock = new StepClock();
    try {
      while (this.#state.step < this.total_steps) {
        await this.#evaluateWhenDue(signal);
        if (isSaveDue(config, this.#state, this.#saved)) await this.save();
        // Accumulated gradients are in no checkpoint: a step that has begun is finished before an interruption takes
        // effect, unless a reward function or the environment fails.
        if (this.#accumulated === 0) this.#resumePoint = { state: this.#state, logs: this.store.lengths() };
        await this.#trainOnBatch(signal);
      }
    } catch (error) {
      const isTheirs = error instanceof SqlEnvError && ["reward_failed", "environment_failed"].includes(error.code);
      if (isTheirs) await this.save().catch(() => {}); // keep what was learned; this failure is the one to report
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

    // Sample: episodes [B], each with its tokens, their log π_old and a mask of those that the model wrote.
    const { episodes, isLearned, metrics, queue } = await this.#rollOut(signal);

    // Reward: rows [B × reward functions].
    const { rows, metrics: rewardMetrics } = await this.#clock.time("rewards", () =>
      score(episodes, this.#rewardFuncs, this.#state.step + 1, { timeout: config.reward_timeout, signal }),
    );

    // Advantage: A_i = (r_i − mean(r of its group)) / (std(r of its group) + 1e-4), r = rows · weights: [B];
    // with turn_credit [B × turns], with self_distillation by token.
    const learned = learnedEpisodes(episodes.length, config.num_generations, isLearned);
    const { num_generations, reward_weights, scale_rewards, multi_objective_aggregation } = config;
    const normalization = { num_generations, reward_weights, scale_rewards, multi_objective_aggregation };
    const scored = computeAdvantages(rows, { ...normalization, reward_names, learned });
    const scoredBatch = makeRolloutBatch({ episodes, rows, learned, ...scored }, config, this.environment);
    this.#addMetrics({ ...scoredBatch.metrics, ...metrics, ...rewardMetrics });
    const batch = config.self_distillation > 0 ? await this.#distill(scoredBatch) : scoredBatch;
    const lines = this.#logEpisodes(batch, reward_names, queue);

    // A batch is learned from in slices, one optimizer step or gradient accumulation each.
    const slices = cutIntoSlices(batch.learned, this.#batching.slices, [config.seed, this.#state.batches]);
    const logprobs = await this.#clock.time("training", () =>
      computeLogprobs(this.model.engine, batch, config, this.#batching),
    );
    this.#update({ batches: this.#state.batches + 1 });

    for (let iteration = 0; iteration < config.num_iterations; iteration++) {
      for (const members of slices) {
        if (this.#state.step >= this.total_steps) return; // max_steps may end within a batch
        await this.#clock.time("training", async () => {
          // Loss, per token of the slice, with w = exp(log π − log π_old):
          //     −min(w · A, clip(w, 1 − ε, 1 + ε_high) · A) + β · KL(π, π_ref)
          const gradient = this.#addGradient(batch, members, logprobs); // by policyLoss of loss.ts, in the engine's thread
          this.#accumulated = (this.#accumulated + 1) % this.#batching.accumulations;
          // Step: θ ← AdamW(θ, Σ of the gradients); requested before the gradient is there, which saves a round trip.
          if (this.#accumulated === 0) await this.#step(gradient);
          else await gradient;
        });
        if (this.#accumulated === 0) await this.#endStep(lines);
      }
    }
  }

  /** Plays each task of the next batch num_generations times. */
  async #rollOut(requested: AbortSignal | undefined): Promise<SampledBatch> {
    const { environment } = this;
    const { batches, queue } = this.#state;
    const clock = new RolloutClock(environment);
    const batch = await sampleBatch({
      environment,
      model: this.model,
      config: this.config,
      batching: this.#batching,
      ...this.#poolAt(batches),
      index: batches,
      queue,
      expected: this.#keptShare,
      clock,
      signal: this.#accumulated > 0 ? undefined : requested,
    }).finally(() => clock.settled());
    const { isLearned, metrics } = batch;
    if (isLearned) this.#keptShare = metrics["groups/kept"]! / metrics["groups/asked"]!;
    this.#clock.rollout(clock, batch);
    return batch;
  }

  /** Counts a batch's episodes and writes them to episodes.jsonl. */
  #logEpisodes(batch: RolloutBatch, reward_names: readonly string[], queue: QueueState | undefined): EpisodeLine[] {
    const { num_generations } = this.config;
    const { step, episodes, tokens } = this.#state;
    const counts = { episodes: episodes + batch.episodes.length, tokens: tokens + playedTokens(batch.episodes) };
    this.#update({ ...(queue && { queue }), ...counts });
    const options = { step: step + 1, firstGroup: this.#groups, reward_names, num_generations };
    const lines = episodeLines(batch, options);
    this.#groups += batch.episodes.length / num_generations;
    this.store.append("episodes.jsonl", ...lines);
    return lines;
  }

  /** Adds per-token advantages from self-distillation to groups that are all wrong. */
  async #distill(batch: RolloutBatch): Promise<RolloutBatch> {
    const { advantages: distilled, metrics } = await this.#clock.time("training", () =>
      distill(batch.episodes, this.model, this.environment, this.config),
    );
    this.#addMetrics(metrics);
    return { ...batch, distilled };
  }

  /** Adds the gradient of the loss over one slice of a batch. */
  async #addGradient(batch: RolloutBatch, members: readonly number[], logprobs: Logprobs): Promise<void> {
    const { config } = this;
    const { data, tokens, skipped } = selectData(batch, members, logprobs, config);
    this.#addMetrics({ "groups/skipped": skipped });
    if (data.length === 0) return this.#addMetrics({ loss: 0 });
    const entropy_coef = bonusCoefficient(config, this.#state.entropy_control);
    const output = await this.model.engine.forwardBackward(data, {
      loss: policySpec(config, this.#batching, batch, entropy_coef),
      temperature: config.temperature,
      totals: { sequences: members.length, tokens },
    });
    // Losses of a step's slices add up, and metrics are averaged over them.
    this.#addMetrics({ loss: output.loss * this.#batching.accumulations, ...output.metrics });
    const { sum, tokens: before } = this.#entropies;
    const { entropy = 0 } = output.metrics; // a server has none
    this.#entropies = { sum: sum + tokens * entropy, tokens: before + tokens };
    // On policy, sampling and learning compute log-probs of the same model: they must agree.
    if (!logprobs.old || logprobs.isSampled) this.#addMetrics(samplingMismatch(batch, data, output.logprobs));
  }

  async #step(gradient: Promise<void>): Promise<void> {
    const { weight_decay, adam_beta1: beta1, adam_beta2: beta2, adam_epsilon: eps, max_grad_norm } = this.config;
    const step = this.#state.step + 1;
    const learning_rate = learningRateAt(step, this.total_steps, this.config);
    const rates = { learning_rate, beta1, beta2, eps, weight_decay, max_grad_norm };
    const [, { grad_norm, skipped }] = await Promise.all([gradient, this.model.engine.optimStep(rates)]);
    this.#update({ step });
    const norm = Number.isNaN(grad_norm) ? {} : { grad_norm }; // some servers do not say it
    this.#addMetrics({ ...norm, learning_rate, "steps/skipped": skipped ? 1 : 0 });
    await this.#adapt(step);
  }

  /** What changes the loss of later steps: the entropy bonus's coefficient, and the reference of the KL term. */
  async #adapt(step: number): Promise<void> {
    const { config } = this;
    const { sum, tokens } = this.#entropies;
    this.#entropies = { sum: 0, tokens: 0 };
    if (config.use_adaptive_entropy) {
      const entropy_control = controlEntropy(config, this.#state.entropy_control, sum / tokens);
      if (entropy_control) this.#update({ entropy_control });
      this.#addMetrics({ entropy_coef: entropy_control?.coef ?? config.entropy_coef });
    }
    if (config.sync_ref_model && step % config.ref_model_sync_steps === 0)
      await this.model.engine.mixReference!(config.ref_model_mixup_alpha);
  }

  /** Warnings, metrics and callbacks of an optimizer step. */
  async #endStep(episodes: readonly EpisodeLine[]): Promise<void> {
    const { config, store } = this;
    const { step, tokens, batches, queue, elapsed } = this.#state;
    const timing = this.#clock.take(step, elapsed, config);
    this.#update({ elapsed: timing.elapsed });
    store.append("timings.jsonl", timing);

    await this.#warn(meansOf(this.#stepMetrics), episodes);
    this.#stepMetrics = {};
    this.#groups = 0;

    if (step % config.logging_steps === 0 || step === this.total_steps) {
      const epoch = queue
        ? queue.position / this.#poolAt(batches - 1).tasks.length
        : batches / Math.floor(this.tasks.length / this.#batching.questions);
      const line: MetricLine = { step, epoch, num_tokens: tokens, ...meansOf(this.#state.since_log) };
      this.#update({ since_log: {} });
      this.#write(line);
      await this.#notify("on_log", line);
    }
    await this.#notify("on_step_end", { timing, episodes });
  }

  /** Logs new warnings. */
  async #warn(metrics: Readonly<Record<string, number>>, episodes: readonly EpisodeLine[] = []): Promise<void> {
    const { warnings, ...health } = warningsAt(this.#state.step, metrics, this.config, this.#state, episodes);
    this.#update(health);
    for (const warning of warnings) {
      this.store.append("warnings.jsonl", warning);
      await this.#notify("on_warning", warning);
    }
  }

  async #evaluateWhenDue(signal: AbortSignal | undefined): Promise<void> {
    const { config, environment, model } = this;
    const { eval_episodes: episodes } = config;
    if (this.#accumulated > 0 || !isEvaluationDue(config, this.#state)) return;
    const evaluation = await evaluateModel(environment, model, config, { episodes, signal });
    this.#update({ evaluated: this.#state.step });
    await this.record(evaluation);
  }

  /** Logs an evaluation at the current step. */
  async record(evaluation: Evaluation): Promise<void> {
    this.#write(evaluationMetrics(this.#state.step, evaluation));
    await this.#notify("on_evaluate", evaluation);
  }

  /** Writes a checkpoint unless this step has one; while gradients are accumulated, of the point before them. */
  async save(): Promise<void> {
    const { engine } = this.model;
    const point = this.#accumulated > 0 ? this.#resumePoint : { state: this.#state, logs: this.store.lengths() };
    // Not within a batch: its remaining slices could not be learned from after resuming.
    if (this.#saved === this.#state.step || point?.state.step !== this.#state.step || !engine.saveState) return;
    const { state, logs } = point;
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

  #update(change: Partial<TrainerState>): void {
    this.#state = { ...this.#state, ...change };
  }

  /** Adds to the means of the next line of metrics.jsonl. */
  #addMetrics(metrics: Readonly<Record<string, number>>): void {
    this.#update({ since_log: added(this.#state.since_log, metrics) });
    this.#stepMetrics = added(this.#stepMetrics, metrics);
  }

  #write(line: MetricLine): void {
    this.store.append("metrics.jsonl", line);
    this.#lines.push(line);
  }

  async #notify<E extends TrainerEvent>(event: E, ...details: EventDetails<E>): Promise<void> {
    const { config, state, total_steps, environment, model } = this;
    const seed = config.seed + state.step;
    const play: TrainingView["play"] = (split, episodes) =>
      previewEpisodes(environment, model, config, { split, episodes, seed });
    await notify(this.#callbacks, event, { config, state, total_steps, play }, details);
  }
}
