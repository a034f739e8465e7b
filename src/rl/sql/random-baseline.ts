// The random baseline: success of random actions on the evaluation questions.
import type { DataSet } from "../../gym/data/index.ts";
import {
  type EnvironmentSource,
  type EpisodeWorker,
  episodeSeed,
  localEnvironments,
  playEpisode,
} from "../../gym/evaluation/index.ts";
import { randomPlayer } from "../../gym/players/index.ts";
import type { GRPOConfig } from "../config.ts";
import { type DrawnTask, type EvaluateModelOptions, evaluateWorkers } from "../evaluate-model.ts";
import { collectStage, type StageOptions } from "../evaluate-stage.ts";
import type { StageEvaluation } from "../run/records.ts";
import { findQuestion } from "./questions.ts";
import { createSqlEnvironment, optionsFor } from "./sql-environment.ts";

export interface RandomBaselineOptions extends Partial<StageOptions> {
  /** Where the environments run. @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
}

/**
 * Evaluates a player that acts at random.
 *
 * @example
 * const baseline = await randomBaseline(data, config);
 */
export function randomBaseline(
  data: DataSet,
  config: GRPOConfig,
  { environments = localEnvironments(data), player = "random", ...watch }: RandomBaselineOptions = {},
): Promise<StageEvaluation> {
  const environment = createSqlEnvironment({ data, config, environments });
  const evaluate = (options: EvaluateModelOptions) => {
    const open = (): EpisodeWorker<DrawnTask> => {
      const env = environments.open(optionsFor("evaluation", config));
      return {
        play: ({ item: task, round }) =>
          playEpisode(env, randomPlayer(), {
            question: findQuestion({ question_id: task.id, text: task.text }, data),
            seed: episodeSeed(config.seed, task.id, round),
            seen: task.seen ?? false,
            signal: options.signal && AbortSignal.any([options.signal]), // one per episode, since a signal collects listeners
          }),
        close: () => env.close?.(),
      };
    };
    return evaluateWorkers(environment, () => open, config, options);
  };
  return collectStage(environment, evaluate, config, { player, ...watch });
}
