// Played episodes with their rewards and advantages: what one batch of rollouts is to the trainer and to the logs.
import { computeAdvantages } from "./advantages.ts";
import type { GRPOConfig } from "./config.ts";
import { habitMetrics } from "./habits.ts";
import type { Episode, EpisodeLine } from "./run/records.ts";
import { type TurnCredit, turnCredits } from "./turn-credit.ts";

/** A batch of B episodes; those of one question, its group, are adjacent. */
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
  /** By episode: an advantage per token, [segments × tokens], in place of the others; only with self_distillation. */
  readonly distilled?: ReadonlyMap<number, readonly ArrayLike<number>[]>;
  /** Indices of the episodes that are learned from: all, or with dynamic_sampling those of groups with spread. */
  readonly learned: readonly number[];
  /** Tokens that are learned from: the denominator of several losses. */
  readonly tokens: number;
  readonly metrics: Readonly<Record<string, number>>;
}

/** @param isLearned whether a group is learned from; advantages, denominators and credit are computed over those alone */
export function makeRolloutBatch(
  episodes: readonly Episode[],
  rows: readonly (readonly (number | null)[])[],
  reward_names: readonly string[],
  config: GRPOConfig,
  isLearned: (group: number) => boolean = () => true,
): RolloutBatch {
  const { num_generations, reward_weights, scale_rewards, multi_objective_aggregation } = config;
  const options = { num_generations, reward_weights, scale_rewards, multi_objective_aggregation, reward_names };
  const all = computeAdvantages(rows, options);
  const learned = episodes.map((_, i) => i).filter((i) => isLearned(Math.floor(i / num_generations)));
  const some = learned.length === episodes.length ? all : computeAdvantages(pick(rows, learned), options);
  const credit = config.turn_credit > 0 ? turnCredits(pick(episodes, learned), config) : undefined;
  const byEpisode = <T>(values: readonly T[]) => {
    const placed: (T | undefined)[] = episodes.map(() => undefined);
    for (const [n, i] of learned.entries()) placed[i] = values[n];
    return placed;
  };
  const metrics = {
    ...playMetrics(episodes),
    ...habitMetrics(episodes, num_generations),
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

/** TRL's completions/… metrics, over what the model wrote, and rates of bad actions. */
export function playMetrics(episodes: readonly Episode[]): Record<string, number> {
  const lengths = episodes.map(({ completion_tokens }) => completion_tokens);
  const terminated = episodes.filter(({ truncated }) => !truncated).map(({ completion_tokens }) => completion_tokens);
  const actions = sum(episodes.map(({ step_count }) => step_count));
  const share = (count: number) => (actions === 0 ? 0 : count / actions);
  return {
    ...lengthMetrics("length", lengths),
    "completions/clipped_ratio": 1 - terminated.length / episodes.length,
    ...lengthMetrics("terminated_length", terminated),
    "actions/per_episode": actions / episodes.length,
    "actions/parse_failure_rate": share(sum(episodes.map(({ parse_failures }) => parse_failures))),
    "actions/repeat_rate": share(sum(episodes.map(({ repeats }) => repeats))),
    "actions/empty_rate": share(sum(episodes.map(({ steps }) => steps.filter(isEmptyTurn).length))),
    "actions/invalid_rate": share(sum(episodes.map(({ invalid }) => invalid))),
    "episodes/unscorable": episodes.filter(({ correctness }) => correctness === null).length,
    "sampling/surprise": surprise(episodes),
    "episodes/segments": sum(episodes.map(({ segments }) => segments.length)) / episodes.length,
  };
}

/** Whether a turn held no action at all; `@last` before any query has worked is a bad action too, but not an empty one. */
function isEmptyTurn({ action, observation }: Episode["steps"][number]): boolean {
  return observation.error_class === "bad_action" && action.argument.trim() === "";
}

/** Mean of −log π over the tokens of all episodes: an estimate of the entropy, also where nothing is learned from. */
function surprise(episodes: readonly Episode[]): number {
  let [total, count] = [0, 0];
  for (const { segments } of episodes)
    for (const { logprobs, mask } of segments)
      for (let i = 0; i < mask.length; i++) {
        if (mask[i] === 0) continue;
        total += logprobs[i]!;
        count++;
      }
  return count === 0 ? 0 : -total / count;
}

function lengthMetrics(name: string, values: readonly number[]): Record<string, number> {
  const some = values.length > 0 ? values : [0];
  return {
    [`completions/mean_${name}`]: sum(some) / some.length,
    [`completions/min_${name}`]: Math.min(...some),
    [`completions/max_${name}`]: Math.max(...some),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Tokens of the prompt, before the model's first turn. */
export function promptTokens({ segments }: Episode): number {
  return segments[0]?.mask.indexOf(1) ?? 0;
}

/** The episodes of a batch as lines of episodes.jsonl. */
export function episodeLines(
  { episodes, rows, rewards, advantages, credits, distilled, learned }: RolloutBatch,
  step: number,
  firstGroup: number,
  names: readonly string[],
  { num_generations }: GRPOConfig,
): EpisodeLine[] {
  const isLearned = new Set(learned);
  return episodes.map(({ messages: _, segments, ...record }, i) => ({
    step,
    group: firstGroup + Math.floor(i / num_generations),
    generation: i % num_generations,
    ...record,
    rewards: Object.fromEntries(names.map((name, k) => [name, rows[i]![k]!])),
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
