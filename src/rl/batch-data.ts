// What the engine learns from: a rollout batch as data (tokens, weights, advantages, log-probs) and the loss with its options.
import type { Datum } from "../lm/engine/index.ts";
import { random } from "../random.ts";
import { learnedTokens, type RolloutBatch } from "./batch.ts";
import type { Batching, GRPOConfig } from "./config.ts";
import type { PolicySpec } from "./loss-options.ts";
import { creditedAdvantages } from "./turn-credit.ts";

/**
 * Cuts a batch's episodes into slices, one for each optimizer step. They are dealt at random, as TRL does, and sorted
 * within a slice so that groups share their prompts.
 */
export function cutIntoSlices(
  episodes: readonly number[],
  slices: number,
  key: readonly (string | number)[],
): (readonly number[])[] {
  if (slices === 1) return [episodes];
  const dealt = random("slices", ...key).shuffle(episodes);
  const end = (s: number) => Math.floor((s * episodes.length) / slices); // a batch that was not filled may not divide
  return Array.from({ length: slices }, (_, s) => dealt.slice(end(s), end(s + 1)).sort((a, b) => a - b));
}

/** Log-probs to compare with: [episodes × segments × tokens]. */
export interface Logprobs {
  /** log π_old; null where the model has not changed since it sampled. */
  readonly old: readonly (readonly ArrayLike<number>[])[] | null;
  /** log π_ref; null without a KL term. */
  readonly reference: readonly (readonly ArrayLike<number>[])[] | null;
}

/** The segments of these episodes, one datum each; those of an episode are one sequence in the loss. */
export function buildData(
  { episodes, advantages, credits, distilled }: RolloutBatch,
  members: readonly number[],
  logprobs: Logprobs,
  config: GRPOConfig,
): Datum[] {
  return members.flatMap((i) => {
    const episode = episodes[i]!;
    const counts = learnedTokens(episode, config) > 0;
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

/** Log-probs of `buildData(batch, batch.learned, …)` by episode and segment. */
export function bySegment({ episodes, learned }: RolloutBatch, flat: readonly Float32Array[]): Float32Array[][] {
  let at = 0;
  const found: Float32Array[][] = episodes.map(() => []);
  for (const i of learned) found[i] = episodes[i]!.segments.map(() => flat[at++]!);
  return found;
}

/** Without episodes whose advantage is 0 throughout; an episode's segments stay together. */
export function withAdvantage(data: readonly Datum[]): Datum[] {
  const kept = new Set(data.filter(({ advantage }) => advantage !== 0).map(({ sequence }) => sequence));
  return data.filter(({ sequence }) => kept.has(sequence));
}

/** Whether episodes with advantage 0 still have a gradient. */
export function learnsFromAll({ beta, entropy_coef, top_entropy_quantile }: GRPOConfig): boolean {
  return beta !== 0 || entropy_coef !== 0 || top_entropy_quantile !== 1;
}

/** The loss of one slice of a batch. */
export function policySpec(config: GRPOConfig, batching: Batching, { tokens }: RolloutBatch): PolicySpec {
  return {
    type: "policy",
    loss_type: config.loss_type,
    beta: config.beta,
    epsilon: config.epsilon,
    epsilon_high: config.epsilon_high,
    delta: config.delta,
    use_bias_correction_kl: config.use_bias_correction_kl,
    importance_sampling_level: config.importance_sampling_level,
    entropy_coef: config.entropy_coef,
    top_entropy_quantile: config.top_entropy_quantile,
    off_policy_mask_threshold: config.off_policy_mask_threshold,
    max_completion_length: config.max_completion_length,
    sapo_temperature_pos: config.sapo_temperature_pos,
    sapo_temperature_neg: config.sapo_temperature_neg,
    vespo_k_pos: config.vespo_k_pos,
    vespo_lambda_pos: config.vespo_lambda_pos,
    vespo_k_neg: config.vespo_k_neg,
    vespo_lambda_neg: config.vespo_lambda_neg,
    // TRL cuts a slice into pieces of per_device_train_batch_size. Here a slice is one batch, so only the slices of an
    // optimizer step and of a generation remain to divide by.
    gradient_accumulation_steps: batching.accumulations,
    steps_per_generation: batching.slices,
    num_items_in_batch: tokens,
  };
}

/** Whether π has changed since the episodes were sampled by the time it learns from them, so that π_old is needed. */
export function isOffPolicy(config: GRPOConfig, { slices }: Batching): boolean {
  return config.num_iterations > 1 || slices > 1;
}

/** |log π as sampled − log π as learned|, mean and maximum, under TRL's names. */
export function samplingMismatch(
  { episodes }: RolloutBatch,
  data: readonly Datum[],
  learned: readonly ArrayLike<number>[],
): Record<string, number> {
  let [sum, most, count] = [0, 0, 0];
  const at = new Map<number, number>();
  for (const [d, { sequence, weights }] of data.entries()) {
    const s = at.get(sequence!) ?? 0;
    at.set(sequence!, s + 1);
    const { logprobs } = episodes[sequence!]!.segments[s]!;
    for (let t = 0; t < weights.length; t++) {
      if (weights[t] === 0) continue; // not computed
      const difference = Math.abs(learned[d]![t]! - logprobs[t]!);
      sum += difference;
      most = Math.max(most, difference);
      count++;
    }
  }
  const name = "sampling/sampling_logp_difference";
  return count === 0 ? {} : { [`${name}/mean`]: sum / count, [`${name}/max`]: most };
}
