// The episodes of a generation: of a fixed number of questions in TRL's order, or of as many from the queue as it takes.
import { type Batching, type GRPOConfig, usesQueue } from "./config.ts";
import { generationAt, repeated } from "./order.ts";
import type { QuestionPrompt } from "./prompts.ts";
import { outcomeOf, type QueuedQuestion, type QueueState, questionsFrom } from "./queue.ts";
import { differInCorrectness, fillBatch, type GroupOptions } from "./refill.ts";
import type { Episode } from "./run/records.ts";

/** Plays an episode for each prompt; the key names their random numbers. */
export type Play = (
  prompts: readonly QuestionPrompt[],
  key: readonly (string | number)[],
  options: Partial<GroupOptions>,
) => Promise<readonly Episode[]>;

export interface BatchOptions {
  readonly config: GRPOConfig;
  readonly batching: Batching;
  readonly prompts: readonly QuestionPrompt[];
  /** Number of the generation, and of the first that asks these prompts. */
  readonly generation: number;
  readonly first: number;
  /** Where the queue was left; undefined before it was used. */
  readonly queue: QueueState | undefined;
  /** Share of groups that had spread lately. */
  readonly expected: number;
  readonly play: Play;
  readonly signal?: AbortSignal | undefined;
}

/** What was asked. Groups are in the order of their questions. */
export interface Batch {
  readonly episodes: readonly Episode[];
  /** Whether the group of this number is learned from; undefined: all are. */
  readonly isLearned?: ((group: number) => boolean) | undefined;
  /** Groups that were started and not needed. */
  readonly stopped: number;
  /** Where the queue is now; undefined where there is none. */
  readonly queue?: QueueState;
  readonly metrics: Readonly<Record<string, number>>;
}

const UNUSED: QueueState = { position: 0, outcomes: {} };

export async function playBatch(options: BatchOptions): Promise<Batch> {
  const { config, batching, prompts, generation, first, play, expected, signal } = options;
  const { shuffle_dataset: shuffle, seed, num_generations: size, dynamic_sampling, skip_solved } = config;
  const { questions } = batching;
  const key = [seed, "rollout", generation];
  const playAll = (asked: readonly QuestionPrompt[]) => play(repeated(asked, size), key, signal ? { signal } : {});
  if (!usesQueue(config)) {
    const order = { chunk: questions, shuffle, seed };
    const asked = generationAt(generation - first, prompts.length, order).map((number) => prompts[number]!);
    return { episodes: await playAll(asked), stopped: 0, metrics: {} };
  }

  const { position, outcomes } = generation === first ? UNUSED : (options.queue ?? UNUSED);
  const queue = questionsFrom(position, prompts, { shuffle, seed, outcomes, skip_solved });
  const limit = questions + Math.floor(dynamic_sampling * questions);
  const next = Array.from({ length: limit }, () => queue.next().value);
  let episodes: readonly Episode[];
  let isLearned: Batch["isLearned"];
  let stopped = 0;
  if (dynamic_sampling === 0) episodes = await playAll(next.map(({ prompt }) => prompt));
  else {
    const { groups, ...filled } = await fillBatch({
      ...{ wanted: questions, limit, size, expected, signal, hasSpread: differInCorrectness },
      play: (group, group_options) =>
        play(repeated([next[group]!.prompt], size), [...key, "group", group], group_options),
    });
    episodes = groups.flatMap((group) => group.episodes);
    isLearned = (group) => groups[group]!.hasSpread;
    stopped = filled.stopped;
  }
  const asked = next.slice(0, episodes.length / size);
  const end = asked.at(-1)!.next;
  const kept = isLearned ? asked.filter((_, group) => isLearned(group)).length : asked.length;
  return {
    ...{ episodes, isLearned, stopped },
    queue: { position: end, outcomes: skip_solved > 0 ? { ...outcomes, ...outcomesOf(asked, episodes, size) } : {} },
    metrics: {
      ...(isLearned && { "groups/asked": asked.length, "groups/kept": kept }),
      ...(isLearned && { "groups/refilled": Math.max(0, asked.length - questions) }),
      ...(skip_solved > 0 && { "questions/skipped": end - position - asked.length }),
    },
  };
}

function outcomesOf(asked: readonly QueuedQuestion[], episodes: readonly Episode[], size: number) {
  const known = asked.flatMap(({ prompt, epoch }, group) => {
    const outcome = outcomeOf(episodes.slice(group * size, (group + 1) * size), epoch);
    return outcome ? [[prompt.question_id, outcome] as const] : [];
  });
  return Object.fromEntries(known);
}
