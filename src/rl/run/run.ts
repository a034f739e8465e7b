// runTraining for a model that is already loaded (train.node.ts also loads it), and the helpers buildTrainer,
// runTrainingWithMetrics and sampleRandomBaseline.

import type { DataSet } from "../../gym/data/index.ts";
import { type EnvironmentRules, SQLEnvironment } from "../../gym/env/index.ts";
import { type EpisodeRecord, evaluate } from "../../gym/evaluation/index.ts";
import { randomPlayer } from "../../gym/players/index.ts";
import { environmentOptionsOf, type GRPOConfig } from "../config.ts";
import { GRPOTrainer, type TrainerOptions } from "../trainer.ts";
import { refuseUnused } from "./given-model.ts";
import type { MetricLine, TrainingResult } from "./records.ts";
import { type TrainAndEvaluateOptions, trainAndEvaluate } from "./train-and-evaluate.ts";

export type { Phase } from "./train-and-evaluate.ts";

export type RunTrainingOptions = TrainAndEvaluateOptions;

/**
 * Trains a loaded model and keeps the run in the store; resolves with null if aborted, with the training saved.
 * Settings for loading and for stages before GRPO are refused by name: only `runTraining` under Node, without `model`,
 * honours them.
 *
 * @example
 * const result = await runTraining({ model, data, config: resolveConfig({ max_steps: 20 }) });
 * console.log(result?.after.unseen.greedy.success_rate);
 */
export async function runTraining(options: RunTrainingOptions): Promise<TrainingResult | null> {
  refuseUnused(options);
  return trainAndEvaluate(options);
}

/**
 * Makes a trainer; the questions come from the data set, filtered as the config says.
 *
 * @example
 * const trainer = buildTrainer({ model, data, config: resolveConfig({ max_steps: 20 }) });
 * await trainer.train();
 */
export function buildTrainer(options: TrainerOptions): GRPOTrainer {
  return new GRPOTrainer(options);
}

/**
 * Trains, and returns the reward of each logged step.
 *
 * @example
 * const { rewards } = await runTrainingWithMetrics(buildTrainer({ model, data, config }));
 * console.log(rewards.at(-1)?.reward);
 */
export async function runTrainingWithMetrics(
  trainer: GRPOTrainer,
  options: { readonly signal?: AbortSignal } = {},
): Promise<{ readonly rewards: readonly { step: number; reward: number }[]; readonly metrics: readonly MetricLine[] }> {
  const { metrics } = await trainer.train(options);
  const rewards = metrics.flatMap(({ step, reward }) => (reward === undefined ? [] : [{ step, reward }]));
  return { rewards, metrics };
}

/**
 * Plays episodes of random actions on training questions, as a baseline.
 *
 * @example
 * const episodes = await sampleRandomBaseline(data, config, 8);
 */
export async function sampleRandomBaseline(
  data: DataSet,
  config: Pick<GRPOConfig, "difficulty_filter" | "step_budget" | "seed" | "reward"> & Partial<EnvironmentRules>,
  episodes = 8,
): Promise<EpisodeRecord[]> {
  const { difficulty_filter: difficulty, seed } = config;
  const environment = () => new SQLEnvironment(data, environmentOptionsOf(config));
  const records: EpisodeRecord[] = [];
  const onEpisode = (record: EpisodeRecord) => void records.push(record);
  await evaluate(data, randomPlayer(), { split: "train", episodes, difficulty, environment, seed, onEpisode });
  return records;
}
