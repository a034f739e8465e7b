// A batch of episodes with their rewards, advantages and metrics.
import { computeAdvantages } from "./advantages.ts";
import { episodeMetrics, groupMetrics } from "./batch-metrics.ts";
import type { GRPOConfig } from "./config.ts";
import type { Environment } from "./environment.ts";
import type { Episode, EpisodeLine } from "./run/records.ts";
import { type TurnCredit, turnCredits } from "./turn-credit.ts";

/** A batch of B episodes; those of one task, its group, are adjacent. */
export interface RolloutBatch {
  /** [B] */
  readonly episodes: readonly Episode[];
  /** [B × reward functions]; null where a function has no opinion. */
  readonly rows: readonly (readonly (number | null)[])[];
  /** [B] The weighted sums of the rows. */
  readonly rewards: readonly (number | null)[];
  /** [B] 0 for episodes that are not learned from. */
  readonly advantages: readonly number[];
  /** [B] An advantage added to some turns of each episode; only with turn_credit. */
  readonly credits?: readonly (TurnCredit | undefined)[];
  /** By index: per-token advantages that replace the others, [segments × tokens]; only with self_distillation. */
  readonly distilled?: ReadonlyMap<number, readonly ArrayLike<number>[]>;
  /** Indices of the episodes that are learned from: all, or with dynamic_sampling those of groups with spread. */
  readonly learned: readonly number[];
  /** Tokens that are learned from: the denominator of several losses. */
  readonly tokens: number;
  readonly metrics: Readonly<Record<string, number>>;
}

export interface ScoredEpisodes {
  readonly episodes: readonly Episode[];
  /** [B × reward functions] */
  readonly rows: readonly (readonly (number | null)[])[];
  readonly reward_names: readonly string[];
  /** Whether a group is learned from; advantages, denominators and credit are computed over those alone. @default all are */
  readonly isLearned?: ((group: number) => boolean) | undefined;
}

/** Computes advantages and metrics. */
export function makeRolloutBatch(
  { episodes, rows, reward_names, isLearned = () => true }: ScoredEpisodes,
  config: GRPOConfig,
  environment: Pick<Environment, "metrics" | "milestone"> = {},
): RolloutBatch {
  const { num_generations, reward_weights, scale_rewards, multi_objective_aggregation } = config;
  const options = { num_generations, reward_weights, scale_rewards, multi_objective_aggregation, reward_names };
  const all = computeAdvantages(rows, options);
  const learned = episodes.map((_, i) => i).filter((i) => isLearned(Math.floor(i / num_generations)));
  const some = learned.length === episodes.length ? all : computeAdvantages(pick(rows, learned), options);
  const { milestone } = environment;
  const credit =
    config.turn_credit > 0 && milestone ? turnCredits(pick(episodes, learned).map(milestone), config) : undefined;
  const byEpisode = <T>(values: readonly T[]) => {
    const placed: (T | undefined)[] = episodes.map(() => undefined);
    for (const [n, i] of learned.entries()) placed[i] = values[n];
    return placed;
  };
  const metrics = {
    ...episodeMetrics(episodes),
    ...environment.metrics?.(episodes),
    ...groupMetrics(episodes, num_generations),
    ...all.metrics,
    ...credit?.metrics,
  };
  return {
    episodes,
    rows,
    rewards: all.rewards,
    learned,
    metrics,
    advantages: byEpisode(some.advantages).map((advantage) => advantage ?? 0),
    tokens: sum(learned.map((i) => learnedTokens(episodes[i]!, config))),
    ...(credit && { credits: byEpisode(credit.credits) }),
  };
}

function pick<T>(values: readonly T[], indices: readonly number[]): T[] {
  return indices.map((i) => values[i]!);
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

export interface EpisodeLineOptions {
  /** Optimizer step the batch is for, from 1. */
  readonly step: number;
  /** Groups of the step in earlier batches. */
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
