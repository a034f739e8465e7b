// What follows from a config: batches, steps, learning rates, the environment.
import { UsageError } from "../../errors.ts";
import { type EnvironmentOptions, type EnvironmentRules, rulesOf } from "../../gym/env/index.ts";
import type { GRPOConfig } from "./schema.ts";

/** How many rollout batches (TRL: generations) one optimizer step takes, or how many steps one rollout batch gives. */
export interface Batching {
  /** Episodes per rollout batch. */
  readonly generation_batch_size: number;
  /** Questions per rollout batch. */
  readonly questions: number;
  /** Optimizer steps per pass over a rollout batch; 1 when a step uses several rollout batches. */
  readonly slices: number;
  /** Rollout batches accumulated for one optimizer step; 1 if one batch gives one or several steps. */
  readonly accumulations: number;
}

/** Computes the batching of a config. Throws UsageError if its sizes do not divide one another. */
export function batchingOf(config: GRPOConfig): Batching {
  const { per_device_train_batch_size: batch, gradient_accumulation_steps: accumulated, num_generations } = config;
  if (config.generation_batch_size !== null && config.steps_per_generation !== null)
    throw new UsageError({
      what: "generation_batch_size and steps_per_generation are both given",
      value: `${config.generation_batch_size} and ${config.steps_per_generation}`,
      remedy: "leave one of them out: the one follows from the other",
    });
  if (config.generation_batch_size !== null && config.generation_batch_size % batch !== 0)
    throw new UsageError({
      what: `generation_batch_size must be a multiple of per_device_train_batch_size (${batch})`,
      value: config.generation_batch_size,
    });
  const perRollout =
    config.generation_batch_size !== null
      ? config.generation_batch_size / batch
      : (config.steps_per_generation ?? accumulated);
  const size = batch * perRollout;
  if (size % num_generations !== 0)
    throw new UsageError({
      what: `a rollout batch of ${size} episodes (per_device_train_batch_size ${batch} × ${perRollout}) does not make groups of num_generations`,
      value: num_generations,
      remedy: `choose num_generations among the divisors of ${size}, or change the batch size`,
    });
  if (perRollout % accumulated !== 0 && accumulated % perRollout !== 0)
    throw new UsageError({
      what: `steps_per_generation and gradient_accumulation_steps (${accumulated}) must divide one another`,
      value: perRollout,
    });
  return {
    generation_batch_size: size,
    questions: size / num_generations,
    slices: Math.max(1, perRollout / accumulated),
    accumulations: Math.max(1, accumulated / perRollout),
  };
}

/** Whether steps take as many questions from a queue as they need, instead of a fixed number. */
export function usesQueue({ dynamic_sampling, skip_solved }: GRPOConfig): boolean {
  return dynamic_sampling > 0 || skip_solved > 0;
}

/** The environment a config describes. */
export function environmentOptionsOf(
  config: Pick<GRPOConfig, "step_budget" | "reward"> & Partial<EnvironmentRules>,
): EnvironmentOptions {
  return { step_budget: config.step_budget, rewards: config.reward, ...rulesOf(config) };
}

/** Like `environmentOptionsOf`, for training episodes, whose statements may have a smaller instruction budget. */
export function trainingEnvironmentOptions(config: GRPOConfig): EnvironmentOptions {
  const { max_instructions } = config;
  return { ...environmentOptionsOf(config), ...(max_instructions !== null && { max_instructions }) };
}

/** Optimizer steps of a training on this many questions. */
export function stepsOf(config: GRPOConfig, questions: number): number {
  const { max_steps, num_train_epochs, num_iterations, num_generations } = config;
  const { questions: asked, slices, accumulations } = batchingOf(config);
  const batches = Math.floor(questions / asked);
  if (batches === 0)
    throw new UsageError({
      what: `a rollout batch asks ${asked} questions, and there are only`,
      value: questions,
      remedy: `lower per_device_train_batch_size, gradient_accumulation_steps or generation_batch_size, for example to ${num_generations * Math.max(1, questions)}, 1 and null`,
    });
  if (max_steps > 0) return max_steps;
  return Math.max(1, Math.floor((num_train_epochs * batches * num_iterations * slices) / accumulations));
}

/** The learning rate of an optimizer step, from 1. */
export function learningRateAt(step: number, total: number, config: GRPOConfig): number {
  const { learning_rate, lr_scheduler_type, warmup_steps } = config;
  const done = step - 1; // the first step has the rate of step 0, as in transformers
  if (done < warmup_steps) return (learning_rate * done) / Math.max(1, warmup_steps);
  const progress = (done - warmup_steps) / Math.max(1, total - warmup_steps);
  if (lr_scheduler_type === "constant") return learning_rate;
  if (lr_scheduler_type === "cosine") return learning_rate * 0.5 * (1 + Math.cos(Math.PI * Math.min(1, progress)));
  return learning_rate * Math.max(0, 1 - progress);
}
