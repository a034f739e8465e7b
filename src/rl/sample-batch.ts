// Samples the episodes of a batch: a fixed number of tasks in TRL's order, or as many from the queue as the batch
// needs.
import { type Batching, type GRPOConfig, usesQueue } from "./config.ts";
import { differInCorrectness, fillBatch } from "./dynamic-sampling.ts";
import type { Environment, Task } from "./environment.ts";
import { rollOut } from "./rollout.ts";
import type { Episode } from "./run/records.ts";
import { batchAt, repeated } from "./task-order.ts";
import { outcomeOf, type QueuedTask, type QueueState, tasksFrom } from "./task-queue.ts";
import type { RolloutClock } from "./timing.ts";
import type { SamplingModel } from "./trainable-model.ts";

export interface SampleBatchOptions {
  readonly environment: Environment;
  readonly model: SamplingModel;
  readonly config: GRPOConfig;
  readonly batching: Batching;
  readonly tasks: readonly Task[];
  /** Number of the batch; `first` is the number of the first batch that draws from these tasks. */
  readonly index: number;
  readonly first: number;
  /** State of the queue after the batch before; undefined before its first use. */
  readonly queue: QueueState | undefined;
  /** Share of recent groups that had spread (see dynamic-sampling.ts). */
  readonly expected: number;
  readonly clock: RolloutClock;
  readonly signal?: AbortSignal | undefined;
}

/** Groups are in the order of their tasks. */
export interface SampledBatch {
  readonly episodes: readonly Episode[];
  /** Whether the group of this index is learned from. @default all are */
  readonly isLearned?: ((group: number) => boolean) | undefined;
  /** Number of groups that were started but not needed. */
  readonly stopped: number;
  /** State of the queue after this batch; undefined if no queue is used. */
  readonly queue?: QueueState;
  readonly metrics: Readonly<Record<string, number>>;
}

const UNUSED: QueueState = { position: 0, outcomes: {} };

export async function sampleBatch(options: SampleBatchOptions): Promise<SampledBatch> {
  const { environment, model, config, batching, tasks, index, first, expected, clock, signal } = options;
  const { shuffle_dataset: shuffle, seed, num_generations: size, dynamic_sampling, skip_solved } = config;
  const { questions: count } = batching;
  const key = [seed, "rollout", index];
  const playAll = (drawn: readonly Task[]) =>
    rollOut(environment, repeated(drawn, size), { model, config, key, clock, signal });
  if (!usesQueue(config)) {
    const indices = batchAt(index - first, tasks.length, { chunk: count, shuffle, seed });
    return { episodes: await playAll(indices.map((i) => tasks[i]!)), stopped: 0, metrics: {} };
  }

  const { position, outcomes } = index === first ? UNUSED : (options.queue ?? UNUSED);
  const queue = tasksFrom(position, tasks, { shuffle, seed, outcomes, skip_solved });
  const limit = count + Math.floor(dynamic_sampling * count);
  const next = Array.from({ length: limit }, () => queue.next().value);
  let episodes: readonly Episode[];
  let isLearned: SampledBatch["isLearned"];
  let stopped = 0;
  if (dynamic_sampling === 0) episodes = await playAll(next.map(({ task }) => task));
  else {
    const { groups, ...filled } = await fillBatch({
      wanted: count,
      limit,
      size,
      expected,
      signal,
      hasSpread: differInCorrectness,
      play: (group, { signal, onEpisode }) =>
        rollOut(environment, repeated([next[group]!.task], size), {
          model,
          config,
          key: [...key, "group", group],
          clock,
          signal,
          onEpisode,
        }),
    });
    episodes = groups.flatMap((group) => group.episodes);
    isLearned = (group) => groups[group]!.hasSpread;
    stopped = filled.stopped;
  }
  const played = next.slice(0, episodes.length / size);
  const end = played.at(-1)!.next;
  const kept = isLearned ? played.filter((_, group) => isLearned(group)).length : played.length;
  return {
    episodes,
    isLearned,
    stopped,
    queue: { position: end, outcomes: skip_solved > 0 ? { ...outcomes, ...outcomesOf(played, episodes, size) } : {} },
    metrics: {
      ...(isLearned && { "groups/asked": played.length, "groups/kept": kept }),
      ...(isLearned && { "groups/refilled": Math.max(0, played.length - count) }),
      ...(skip_solved > 0 && { "questions/skipped": end - position - played.length }),
    },
  };
}

function outcomesOf(played: readonly QueuedTask[], episodes: readonly Episode[], size: number) {
  const known = played.flatMap(({ task, epoch }, group) => {
    const outcome = outcomeOf(episodes.slice(group * size, (group + 1) * size), epoch);
    return outcome ? [[task.id, outcome] as const] : [];
  });
  return Object.fromEntries(known);
}
