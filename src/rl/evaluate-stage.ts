// Evaluation of one stage of a training (random, base, before, after), and the stages side by side.

import { type EpisodeRecord, sampleRounds } from "../gym/evaluation/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { Environment } from "./environment.ts";
import { type EvaluateModelOptions, evaluateModel, evaluationTasks } from "./evaluate-model.ts";
import type { ComparedQuestion, Comparison, Evaluation, StageEvaluation } from "./run/records.ts";
import type { RunStore } from "./run/store.ts";
import type { SamplingModel } from "./trainable-model.ts";

export interface StageOptions extends Pick<EvaluateModelOptions, "signal" | "onProgress"> {
  /** Name of the stage, such as "before". */
  readonly player: string;
}

/**
 * Plays final_eval_episodes on each evaluation split with a model.
 *
 * @example
 * const environment = createSqlEnvironment({ data, config });
 * const before = await evaluateStage(environment, model, config, { player: "before" });
 */
export function evaluateStage(
  environment: Environment,
  model: SamplingModel,
  config: GRPOConfig,
  options: StageOptions,
): Promise<StageEvaluation> {
  const evaluate = (watch: EvaluateModelOptions) => evaluateModel(environment, model, config, watch);
  return collectStage(environment, evaluate, config, { ...options, judge: environment.judge });
}

export interface CollectOptions extends StageOptions {
  readonly judge?: Environment["judge"];
}

/** Runs an evaluation and collects the stage's record: success rates, and the greedy episodes. */
export async function collectStage(
  environment: Environment,
  evaluate: (options: EvaluateModelOptions) => Promise<Evaluation>,
  config: GRPOConfig,
  { player, signal, onProgress, judge }: CollectOptions,
): Promise<StageEvaluation> {
  const greedy = new Map<string, EpisodeRecord>();
  const evaluation = await evaluate({
    episodes: config.final_eval_episodes,
    sampled: config.final_eval_sampled_episodes,
    signal,
    onEpisode: (record, decoding) => {
      if (decoding === "greedy") greedy.set(record.question_id, { ...record, player });
    },
    onProgress,
  });
  const compared = comparedTasks(environment, config).flatMap((id) => greedy.get(id) ?? []);
  const episodes = [...greedy.values()];
  return { player, evaluation, compared, episodes, ...(judge && { judged: await judge(episodes) }) };
}

/** Ids of the evaluation tasks to show side by side, unseen ones first: the first that every evaluation plays. */
function comparedTasks(environment: Environment, config: GRPOConfig): string[] {
  const { comparison_episodes: wanted, final_eval_episodes: episodes, seed } = config;
  const tasks = evaluationTasks(environment);
  const played = (split: "seen" | "unseen") => {
    if (tasks[split].length === 0) return [];
    return sampleRounds(tasks[split], { seed })
      .slice(0, episodes ?? tasks[split].length)
      .map(({ item }) => item.id);
  };
  const [unseen, seen] = [played("unseen"), played("seen")];
  const fromUnseen = Math.min(unseen.length, Math.max(Math.ceil(wanted / 2), wanted - seen.length));
  return [...unseen.slice(0, fromUnseen), ...seen.slice(0, wanted - fromUnseen)];
}

/** Writes evaluation-NAME.jsonl: every greedy episode of a stage. */
export function keepEpisodes(store: Pick<RunStore, "write">, { player, episodes = [] }: StageEvaluation): void {
  store.write(`evaluation-${player}.jsonl`, episodes.map((episode) => `${JSON.stringify(episode)}\n`).join(""));
}

/** NAME.json. It is written last: a resumed run that finds it does not evaluate the stage again. */
export function keepStage(store: Pick<RunStore, "write">, { episodes: _, ...stage }: StageEvaluation): void {
  store.write(`${stage.player}.json`, `${JSON.stringify(stage)}\n`);
}

/**
 * comparison.json: the tasks that every stage played.
 *
 * @example
 * const random = await randomBaseline(data, config);
 * const trained = await evaluateStage(createSqlEnvironment({ data, config }), model, config, { player: "after" });
 * const comparison = compareStages([random, trained]);
 */
export function compareStages(stages: readonly StageEvaluation[]): Comparison {
  const [first, ...others] = stages;
  const questions = (first?.compared ?? []).flatMap((episode): ComparedQuestion[] => {
    const { question_id, question, database_name, seen } = episode;
    const same = others.map(({ compared }) => compared.find((other) => other.question_id === question_id));
    if (!same.every((other) => other !== undefined)) return [];
    return [{ question_id, question, database_name, seen, episodes: [episode, ...same] }];
  });
  return { players: stages.map(({ player }) => player), questions };
}
