// Evaluates a model, greedily and sampled, on evaluation tasks whose group (in SQL, whose database) training also uses
// (seen), and on the others (unseen).

import {
  type EpisodeRecord,
  type EpisodeWorker,
  episodeSeed,
  playConcurrently,
  sampleRounds,
  summarize,
} from "../gym/evaluation/index.ts";
import { batchingOf, type GRPOConfig } from "./config.ts";
import type { Environment, EpisodePurpose, Task, TaskSplit } from "./environment.ts";
import { evaluationConfig, policyFor } from "./model-policy.ts";
import { closeEnvironment, playTask } from "./rollout.ts";
import type { Decoding, Evaluation, EvaluationSplit, MetricLine } from "./run/records.ts";
import type { SamplingModel } from "./trainable-model.ts";

/** Concurrent episodes that fill a batch. */
const MIN_CONCURRENCY = 64;

/** Concurrent evaluation episodes: as many as training plays, which fit in memory, and enough for a batch. */
export function evaluationConcurrency(config: GRPOConfig): number {
  return Math.max(MIN_CONCURRENCY, batchingOf(config).generation_batch_size);
}

export const EVALUATION_SPLITS: readonly EvaluationSplit[] = ["seen", "unseen"];
export const DECODINGS: readonly Decoding[] = ["greedy", "sampled"];

export interface EvaluateModelOptions {
  /** Episodes on each split; null plays each task once. */
  readonly episodes: number | null;
  /** Sampled episodes on each split, if different; 0: none. @default as `episodes` */
  readonly sampled?: number | null;
  readonly signal?: AbortSignal | undefined;
  readonly onEpisode?: ((record: EpisodeRecord, decoding: Decoding) => void) | undefined;
  /** Called as each episode ends, with the number of finished episodes and the total. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/**
 * Evaluates a model greedily and as training samples it.
 *
 * @example
 * const { unseen } = await evaluateModel(createSqlEnvironment({ data, config }), model, config, { episodes: 50 });
 * console.log(unseen.greedy.success_rate);
 */
export function evaluateModel(
  environment: Environment,
  model: SamplingModel,
  config: GRPOConfig,
  options: EvaluateModelOptions,
): Promise<Evaluation> {
  const open = (decoding: Decoding) =>
    modelWorker({
      environment,
      model,
      config,
      purpose: "evaluation",
      split: "eval",
      decoding,
      key: [config.seed, "evaluation", decoding],
      seed: config.seed,
      signal: options.signal,
    });
  return evaluateWorkers(environment, open, config, options);
}

/** A task and how often it was drawn before. */
export interface DrawnTask {
  readonly item: Task;
  readonly round: number;
}

export interface ModelWorkerOptions {
  readonly environment: Environment;
  readonly model: SamplingModel;
  readonly config: GRPOConfig;
  readonly purpose: EpisodePurpose;
  readonly split: TaskSplit;
  readonly decoding: Decoding;
  /** Key of the samples' random numbers. */
  readonly key: readonly (string | number)[];
  readonly seed: number;
  readonly signal?: AbortSignal | undefined;
}

/** Opens workers that play tasks with a model. */
export function modelWorker(options: ModelWorkerOptions): () => EpisodeWorker<DrawnTask> {
  const { environment, model, purpose, split, decoding, key, seed, signal } = options;
  const config = evaluationConfig(options.config);
  const turns = (purpose === "evaluation" ? config : options.config).step_budget;
  return () => {
    let env = environment.open(purpose);
    return {
      play: async ({ item: task, round }) => {
        const own = signal && AbortSignal.any([signal]); // one per episode, since a signal collects listeners
        const policy = policyFor(env, {
          turns,
          model,
          prompt: environment.prompt,
          config,
          key,
          seed: episodeSeed(seed, task.id, round),
          greedy: decoding === "greedy",
          signal: own,
        });
        const timeout = config.environment_timeout;
        const record = await playTask(env, task, policy, { environment, split, turns, timeout, signal: own });
        if (record.error !== null) {
          await closeEnvironment(env, timeout); // it may still be busy with this task
          env = environment.open(purpose);
        }
        return record;
      },
      // Its episodes have ended: a failure to close changes nothing.
      close: async () => void (await closeEnvironment(env, config.environment_timeout)),
    };
  };
}

/** Evaluates any kind of player: `open` makes a worker for each concurrent episode. */
export async function evaluateWorkers(
  environment: Environment,
  open: (decoding: Decoding) => () => EpisodeWorker<DrawnTask>,
  config: GRPOConfig,
  { episodes: wanted, sampled, signal, onEpisode, onProgress }: EvaluateModelOptions,
): Promise<Evaluation> {
  const concurrency = evaluationConcurrency(config);
  const tasks = evaluationTasks(environment);
  const count = (split: EvaluationSplit, decoding: Decoding) =>
    Math.min((decoding === "sampled" ? (sampled ?? wanted) : wanted) ?? Number.POSITIVE_INFINITY, tasks[split].length);
  const total = EVALUATION_SPLITS.flatMap((split) => DECODINGS.map((decoding) => count(split, decoding))).reduce(
    (a, b) => a + b,
  );
  let done = 0;
  const evaluate = async (split: EvaluationSplit, decoding: Decoding) => {
    const episodes = count(split, decoding);
    if (episodes === 0) return summarize([]);
    const records = await playConcurrently(
      sampleRounds(tasks[split], { episodes, seed: config.seed }),
      open(decoding),
      {
        concurrency,
        signal,
        onEpisode: (record) => onEpisode?.(record, decoding),
        onProgress: () => onProgress?.(++done, total),
      },
    );
    signal?.throwIfAborted();
    return summarize(records, split === "unseen" ? "cluster_t_by_database" : "wilson");
  };
  return {
    seen: { greedy: await evaluate("seen", "greedy"), sampled: await evaluate("seen", "sampled") },
    unseen: { greedy: await evaluate("unseen", "greedy"), sampled: await evaluate("unseen", "sampled") },
  };
}

/** Evaluation tasks, split by whether training has tasks of the same group (in SQL, of the same database). */
export function evaluationTasks(environment: Environment): Record<EvaluationSplit, readonly Task[]> {
  const tasks = environment.tasks("eval");
  return { seen: tasks.filter(({ seen }) => seen), unseen: tasks.filter(({ seen }) => !seen) };
}

export interface PreviewOptions {
  readonly split: TaskSplit;
  readonly episodes: number;
  readonly seed: number;
}

/** Plays a few greedy episodes of a split, for callbacks that show how the model plays. */
export async function previewEpisodes(
  environment: Environment,
  model: SamplingModel,
  config: GRPOConfig,
  { split, episodes, seed }: PreviewOptions,
): Promise<EpisodeRecord[]> {
  const tasks = environment.tasks(split);
  if (tasks.length === 0) return [];
  const open = modelWorker({
    environment,
    model,
    config,
    purpose: "preview",
    split,
    decoding: "greedy",
    key: [config.seed, "evaluation", "greedy"],
    seed,
  });
  return playConcurrently(sampleRounds(tasks, { episodes, seed }), open, { concurrency: episodes });
}

/** An evaluation as a line of metrics.jsonl. */
export function evaluationMetrics(step: number, evaluation: Evaluation): MetricLine {
  const line: Record<string, number> & { step: number } = { step };
  for (const split of EVALUATION_SPLITS) {
    for (const decoding of DECODINGS) {
      const { episodes, success_rate, success_ci, mean_reward, mean_steps } = evaluation[split][decoding];
      if (success_rate === null) continue;
      const name = `eval_${split}/${decoding}`;
      line[`${name}/episodes`] = episodes;
      line[`${name}/success_rate`] = success_rate;
      line[`${name}/success_ci_low`] = success_ci?.[0] ?? 0;
      line[`${name}/success_ci_high`] = success_ci?.[1] ?? 1;
      line[`${name}/reward`] = mean_reward ?? 0;
      line[`${name}/steps`] = mean_steps ?? 0;
    }
  }
  return line;
}
