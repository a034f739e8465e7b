// A batch of episodes with their rewards, advantages and metrics.
import type { Advantages } from "./advantages.ts";
import type { GRPOConfig } from "./config.ts";
import type { Environment } from "./environment.ts";
import { episodeMetrics, groupMetrics } from "./episode-metrics.ts";
import type { Episode, EpisodeLine } from "./run/records.ts";
import { type TurnCredit, turnCredits } from "./turn-credit.ts";

/** A batch of B episodes; those of one task, its group, are adjacent. */
export interface RolloutBatch {
  /** [B] */
  readonly episodes: readonly Episode[];
  /** [B × reward functions]; null if a function does not score an episode. */
  readonly rows: readonly (readonly (number | null)[])[];
  /** [B] The weighted sums of the rows. */
  readonly rewards: readonly (number | null)[];
  /** [B] 0 for episodes that are not learned from. */
  readonly advantages: readonly number[];
  /** [B] An advantage added to some turns of each episode; only with turn_credit. */
  readonly credits?: readonly (TurnCredit | undefined)[];
  /** By index: per-token advantages that replace the others, [segments × tokens]; only with self_distillation. */
  readonly distilled?: ReadonlyMap<number, readonly ArrayLike<number>[]>;
  /** Indices of the episodes that are learned from: all, or with dynamic_sampling those of groups whose answers are not all right or all wrong. */
  readonly learned: readonly number[];
  /** Tokens that are learned from: the denominator of several losses. */
  readonly tokens: number;
  readonly metrics: Readonly<Record<string, number>>;
}

/** What `computeAdvantages` returned, with the episodes it is about. */
export interface ScoredEpisodes extends Advantages {
  readonly episodes: readonly Episode[];
  /** [B × reward functions] */
  readonly rows: readonly (readonly (number | null)[])[];
  /** Indices of the episodes that are learned from; denominators and credit are computed over those alone. */
  readonly learned: readonly number[];
}

/**
 * Indices of the episodes whose group is learned from. @param isLearned tells it by the group's index. @default all
 * groups are
 */
export function learnedEpisodes(
  episodes: number,
  num_generations: number,
  isLearned: (group: number) => boolean = () => true,
): number[] {
  return Array.from({ length: episodes }, (_, i) => i).filter((i) => isLearned(Math.floor(i / num_generations)));
}

/** Adds metrics and, with turn_credit, credit by turn. */
export function makeRolloutBatch(
  { episodes, rows, learned, advantages, rewards, metrics }: ScoredEpisodes,
  config: GRPOConfig,
  { milestone, metrics: environmentMetrics }: Pick<Environment, "metrics" | "milestone"> = {},
): RolloutBatch {
  const credit =
    config.turn_credit > 0 && milestone
      ? turnCredits(
          learned.map((i) => milestone(episodes[i]!)),
          config,
        )
      : undefined;
  const credits: (TurnCredit | undefined)[] = episodes.map(() => undefined);
  for (const [n, i] of learned.entries()) credits[i] = credit?.credits[n];
  return {
    episodes,
    rows,
    rewards,
    learned,
    advantages,
    tokens: sum(learned.map((i) => learnedTokens(episodes[i]!, config))),
    ...(credit && { credits }),
    metrics: {
      ...episodeMetrics(episodes),
      ...environmentMetrics?.(episodes),
      ...groupMetrics(episodes, config.num_generations),
      ...metrics,
      ...credit?.metrics,
    },
  };
}

/** Number of an episode's tokens that are learned from. */
export function learnedTokens(
  { truncated, completion_tokens }: Episode,
  { mask_truncated_completions }: GRPOConfig,
): number {
  return truncated && mask_truncated_completions ? 0 : completion_tokens;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Tokens of the prompt, before the model's first turn. */
export function promptTokens({ segments }: Episode): number {
  return segments[0]?.mask.indexOf(1) ?? 0;
}

/** Tokens of prompts and of what the model wrote. */
export function playedTokens(episodes: readonly Episode[]): number {
  return sum(episodes.map((episode) => promptTokens(episode) + episode.completion_tokens));
}

export interface EpisodeLineOptions {
  /** Optimizer step the batch is for, from 1. */
  readonly step: number;
  /** Number of groups that the step already has from earlier batches. */
  readonly firstGroup: number;
  readonly reward_names: readonly string[];
  readonly num_generations: number;
}

/** The episodes of a batch as lines of episodes.jsonl. */
export function episodeLines(
  { episodes, rows, rewards, advantages, credits, distilled, learned }: RolloutBatch,
  { step, firstGroup, reward_names, num_generations }: EpisodeLineOptions,
): EpisodeLine[] {
  const isLearned = new Set(learned);
  return episodes.map(({ messages: _, segments, ...record }, i) => ({
    step,
    group: firstGroup + Math.floor(i / num_generations),
    generation: i % num_generations,
    ...record,
    rewards: Object.fromEntries(reward_names.map((name, k) => [name, rows[i]![k]!])),
    total_reward: rewards[i]!,
    advantage: advantages[i]!,
    ...(isLearned.has(i) ? creditFields(credits?.[i]) : { dropped: true as const }),
    ...(distilled?.has(i) && { distilled: true as const }),
    prompt_tokens: promptTokens(episodes[i]!),
    segments: segments.length,
  }));
}

function creditFields(credit: TurnCredit | undefined): Pick<EpisodeLine, "turn_credit"> {
  if (!credit) return {};
  const { advantage, turns } = credit;
  return { turn_credit: { advantage, turns: Number.isFinite(turns) ? turns : null } };
}
