// GRPO between the rollout and the engine: episodes and their rewards become advantages, a batch to learn from and numbers
// to log. The formulas are in lm/engine/advantages.ts and lm/engine/loss.ts; this is how episodes are put to them.
import type { Datum } from "../lm/engine/index.ts";
import { random } from "../random.ts";
import { computeAdvantages } from "./advantages.ts";
import type { Batching, GRPOConfig } from "./config.ts";
import { habitMetrics } from "./habits.ts";
import type { PolicySpec } from "./loss-options.ts";
import type { Episode, EpisodeLine } from "./run/records.ts";
import { creditedAdvantages, type TurnCredit, turnCredits } from "./turn-credit.ts";

/** A batch of played episodes with what they are worth. Rows of one question stand together. */
export interface Generation {
  readonly episodes: readonly Episode[];
  /** A row an episode, a column a reward function. */
  readonly rows: readonly (readonly (number | null)[])[];
  readonly rewards: readonly (number | null)[];
  /** 0 for episodes that are not learned from. */
  readonly advantages: readonly number[];
  /** What some turns of each episode are credited with besides; only with turn_credit. */
  readonly credits?: readonly (TurnCredit | undefined)[];
  /** By episode: advantages for each token of its segments, in place of the others; only with self_distillation. */
  readonly distilled?: ReadonlyMap<number, readonly ArrayLike<number>[]>;
  /** Numbers of the episodes that are learned from: all, or with dynamic_sampling those of groups with spread. */
  readonly learned: readonly number[];
  /** Tokens that are learned from: the denominators of several losses. */
  readonly tokens: number;
  readonly metrics: Readonly<Record<string, number>>;
}

/** @param isLearned whether the group of this number is learned from; advantages, denominators and credit are of those alone */
export function generationOf(
  episodes: readonly Episode[],
  rows: readonly (readonly (number | null)[])[],
  reward_names: readonly string[],
  config: GRPOConfig,
  isLearned: (group: number) => boolean = () => true,
): Generation {
  const { num_generations, reward_weights, scale_rewards, multi_objective_aggregation } = config;
  const comparing = { num_generations, reward_weights, scale_rewards, multi_objective_aggregation, reward_names };
  const all = computeAdvantages(rows, comparing);
  const learned = episodes.map((_, i) => i).filter((i) => isLearned(Math.floor(i / num_generations)));
  const isAll = learned.length === episodes.length;
  const some = isAll ? all : computeAdvantages(pick(rows, learned), comparing);
  const credit = config.turn_credit > 0 ? turnCredits(pick(episodes, learned), config) : undefined;
  const spreadOut = <T>(values: readonly T[]) => {
    const byEpisode: (T | undefined)[] = episodes.map(() => undefined);
    for (const [n, i] of learned.entries()) byEpisode[i] = values[n];
    return byEpisode;
  };
  const metrics = {
    ...playMetrics(episodes),
    ...habitMetrics(episodes, num_generations),
    ...all.metrics,
    ...credit?.metrics,
  };
  return {
    ...{ episodes, rows, rewards: all.rewards, learned, metrics },
    advantages: spreadOut(some.advantages).map((advantage) => advantage ?? 0),
    tokens: sum(learned.map((i) => weightOf(episodes[i]!, config))),
    ...(credit && { credits: spreadOut(credit.credits) }),
  };
}

function pick<T>(values: readonly T[], numbers: readonly number[]): T[] {
  return numbers.map((i) => values[i]!);
}

/** Tokens of an episode that count. */
function weightOf({ truncated, completion_tokens }: Episode, { mask_truncated_completions }: GRPOConfig): number {
  return truncated && mask_truncated_completions ? 0 : completion_tokens;
}

/** Episodes of each optimizer step a generation is cut into. They are dealt out at random, as TRL does, and put back in order so that groups share their prompts. */
export function slicesOf(
  episodes: readonly number[],
  slices: number,
  key: readonly (string | number)[],
): (readonly number[])[] {
  if (slices === 1) return [episodes];
  const dealt = random("slices", ...key).shuffle(episodes);
  const end = (s: number) => Math.floor((s * episodes.length) / slices); // a batch that was not filled may not divide
  return Array.from({ length: slices }, (_, s) => dealt.slice(end(s), end(s + 1)).sort((a, b) => a - b));
}

/** Log-probs to compare with, for each segment of each episode. */
export interface Logprobs {
  readonly old: readonly (readonly ArrayLike<number>[])[] | null;
  readonly reference: readonly (readonly ArrayLike<number>[])[] | null;
}

/** What the engine learns from: the segments of the given episodes, all of an episode one sequence. */
export function dataOf(
  { episodes, advantages, credits, distilled }: Generation,
  members: readonly number[],
  logprobs: Logprobs,
  config: GRPOConfig,
): Datum[] {
  return members.flatMap((i) => {
    const episode = episodes[i]!;
    const counts = weightOf(episode, config) > 0;
    const bySegment = distilled?.get(i) ?? creditedAdvantages(episode.segments, advantages[i]!, credits?.[i]);
    return episode.segments.map(({ tokens, mask }, s) => ({
      tokens,
      weights: counts ? mask : mask.map(() => 0),
      sequence: i,
      advantage: bySegment[s]!,
      old_logp: logprobs.old?.[i]?.[s] ?? null,
      ref_logp: logprobs.reference?.[i]?.[s] ?? null,
    }));
  });
}

/** Without the episodes that have no advantage at all; an episode's segments stay together. */
export function withAdvantage(data: readonly Datum[]): Datum[] {
  const taught = new Set(data.filter(({ advantage }) => advantage !== 0).map(({ sequence }) => sequence));
  return data.filter(({ sequence }) => taught.has(sequence));
}

/** Whether an episode without an advantage still has something to teach. */
export function learnsFromAll({ beta, entropy_coef, top_entropy_quantile }: GRPOConfig): boolean {
  return beta !== 0 || entropy_coef !== 0 || top_entropy_quantile !== 1;
}

/** The loss of one slice of a generation. */
export function lossOf(config: GRPOConfig, batching: Batching, { tokens }: Generation): PolicySpec {
  const { loss_type, beta, epsilon, epsilon_high, delta, use_bias_correction_kl, importance_sampling_level } = config;
  const { entropy_coef, top_entropy_quantile, off_policy_mask_threshold, max_completion_length } = config;
  const { sapo_temperature_pos, sapo_temperature_neg } = config;
  const { vespo_k_pos, vespo_lambda_pos, vespo_k_neg, vespo_lambda_neg } = config;
  return {
    type: "policy",
    ...{ loss_type, beta, epsilon, epsilon_high, delta, use_bias_correction_kl, importance_sampling_level },
    ...{ entropy_coef, top_entropy_quantile, off_policy_mask_threshold, max_completion_length },
    ...{ sapo_temperature_pos, sapo_temperature_neg },
    ...{ vespo_k_pos, vespo_lambda_pos, vespo_k_neg, vespo_lambda_neg },
    // A slice is what TRL cuts into per_device_train_batch_size pieces; it is computed whole, so only what lies between
    // a slice and an optimizer step, and between a slice and its generation, is left to divide by.
    gradient_accumulation_steps: batching.accumulations,
    steps_per_generation: batching.slices,
    num_items_in_batch: tokens,
  };
}

/** Whether π has moved since the episodes were played when it learns from them, so that π_old must be known. */
export function isOffPolicy(config: GRPOConfig, { slices }: Batching): boolean {
  return config.num_iterations > 1 || slices > 1;
}

/** TRL's completions/… metrics, over what the model wrote, and the habits of play. */
export function playMetrics(episodes: readonly Episode[]): Record<string, number> {
  const lengths = episodes.map(({ completion_tokens }) => completion_tokens);
  const terminated = episodes.filter(({ truncated }) => !truncated).map(({ completion_tokens }) => completion_tokens);
  const actions = sum(episodes.map(({ step_count }) => step_count));
  const share = (count: number) => (actions === 0 ? 0 : count / actions);
  return {
    ...spread("completions/", "length", lengths),
    "completions/clipped_ratio": 1 - terminated.length / episodes.length,
    ...spread("completions/", "terminated_length", terminated),
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

/** Mean of −log π over what all episodes said: what entropy is in the mean, also where nothing is learned from. */
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

function spread(room: string, name: string, values: readonly number[]): Record<string, number> {
  const some = values.length > 0 ? values : [0];
  return {
    [`${room}mean_${name}`]: sum(some) / some.length,
    [`${room}min_${name}`]: Math.min(...some),
    [`${room}max_${name}`]: Math.max(...some),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Tokens the model was given before it first spoke. */
export function promptTokens({ segments }: Episode): number {
  return segments[0]?.mask.indexOf(1) ?? 0;
}

/** The episodes of a generation as episodes.jsonl has them. */
export function episodeLines(
  { episodes, rows, rewards, advantages, credits, distilled, learned }: Generation,
  step: number,
  firstGroup: number,
  names: readonly string[],
  { num_generations }: GRPOConfig,
): EpisodeLine[] {
  const taught = new Set(learned);
  return episodes.map(({ messages: _, segments, ...record }, i) => ({
    step,
    group: firstGroup + Math.floor(i / num_generations),
    generation: i % num_generations,
    ...record,
    rewards: Object.fromEntries(names.map((name, k) => [name, rows[i]![k]!])),
    total_reward: rewards[i]!,
    advantage: advantages[i]!,
    ...(taught.has(i) ? creditOf(credits?.[i]) : { dropped: true as const }),
    ...(distilled?.has(i) && { distilled: true as const }),
    prompt_tokens: promptTokens(episodes[i]!),
    segments: segments.length,
  }));
}

function creditOf(credit: TurnCredit | undefined): Pick<EpisodeLine, "turn_credit"> {
  if (!credit) return {};
  const { advantage, turns } = credit;
  return { turn_credit: { advantage, turns: Number.isFinite(turns) ? turns : null } };
}

/** How far the log-probs of sampling and of learning are apart, under TRL's names. */
export function disagreement(
  { episodes }: Generation,
  data: readonly Datum[],
  now: readonly ArrayLike<number>[],
): Record<string, number> {
  let [sum, most, count] = [0, 0, 0];
  const at = new Map<number, number>();
  for (const [d, { sequence, weights }] of data.entries()) {
    const s = at.get(sequence!) ?? 0;
    at.set(sequence!, s + 1);
    const { logprobs } = episodes[sequence!]!.segments[s]!;
    for (let t = 0; t < weights.length; t++) {
      if (weights[t] === 0) continue; // not computed
      const difference = Math.abs(now[d]![t]! - logprobs[t]!);
      sum += difference;
      most = Math.max(most, difference);
      count++;
    }
  }
  const name = "sampling/sampling_logp_difference";
  return count === 0 ? {} : { [`${name}/mean`]: sum / count, [`${name}/max`]: most };
}
