// A rollout batch as the engine takes it: data (tokens, weights, advantages, log-probs) and the loss with its options.
import type { Datum } from "../lm/engine/index.ts";
import { random } from "../random.ts";
import type { Batching, GRPOConfig } from "./config.ts";
import type { PolicySpec } from "./loss-options.ts";
import { learnedTokens, type RolloutBatch } from "./rollout-batch.ts";
import type { TrainableEngine } from "./trainable-model.ts";
import { creditedAdvantages } from "./turn-credit.ts";

/**
 * Cuts a batch's episodes into slices, one per optimizer step. Episodes are assigned at random, as in TRL, and sorted
 * within a slice so that groups share their prompts.
 */
export function cutIntoSlices(
  episodes: readonly number[],
  slices: number,
  key: readonly (string | number)[],
): (readonly number[])[] {
  if (slices === 1) return [episodes];
  const shuffled = random("slices", ...key).shuffle(episodes);
  const end = (s: number) => Math.floor((s * episodes.length) / slices); // a batch that was not filled may not divide evenly
  return Array.from({ length: slices }, (_, s) => shuffled.slice(end(s), end(s + 1)).sort((a, b) => a - b));
}

/** Log-probs under the old and the reference policy, [episodes × segments × tokens]. */
export interface Logprobs {
  /** log π_old; null if the model has not changed since it sampled. */
  readonly old: readonly (readonly ArrayLike<number>[])[] | null;
  /** log π_ref; null without a KL term. */
  readonly reference: readonly (readonly ArrayLike<number>[])[] | null;
  /** Whether `old` are the log-probs as sampled, by a model that has not changed. @default false */
  readonly isSampled?: boolean;
}

/** The segments of these episodes, one datum each; the segments of an episode are one sequence in the loss. */
export function buildData(
  { episodes, advantages, credits, distilled }: RolloutBatch,
  members: readonly number[],
  logprobs: Logprobs,
  config: GRPOConfig,
): Datum[] {
  return members.flatMap((i) => {
    const episode = episodes[i]!;
    const isLearned = learnedTokens(episode, config) > 0;
    const bySegment = distilled?.get(i) ?? creditedAdvantages(episode.segments, advantages[i]!, credits?.[i]);
    return episode.segments.map(({ tokens, mask }, s) => ({
      tokens,
      weights: isLearned ? mask : mask.map(() => 0),
      sequence: i,
      advantage: bySegment[s]!,
      old_logp: logprobs.old?.[i]?.[s] ?? null,
      ref_logp: logprobs.reference?.[i]?.[s] ?? null,
    }));
  });
}

/** log π_old, if π changes before the last slice is trained on, and log π_ref, if there is a KL term. */
export async function computeLogprobs(
  engine: Pick<TrainableEngine, "logprobs" | "usesSampledLogprobs">,
  batch: RolloutBatch,
  config: GRPOConfig,
  batching: Batching,
): Promise<Logprobs> {
  const { beta, temperature } = config;
  const data = buildData(batch, batch.learned, { old: null, reference: null }, config);
  const isSampled = engine.usesSampledLogprobs === true && !isOffPolicy(config, batching);
  return {
    isSampled,
    old: isSampled
      ? batch.episodes.map(({ segments }) => segments.map(({ logprobs }) => logprobs))
      : isOffPolicy(config, batching)
        ? bySegment(batch, await engine.logprobs(data, { temperature }))
        : null,
    reference: beta === 0 ? null : bySegment(batch, await engine.logprobs(data, { temperature, weights: "reference" })),
  };
}

/** Log-probs of `buildData(batch, batch.learned, …)` by episode and segment. */
function bySegment({ episodes, learned }: RolloutBatch, flat: readonly Float32Array[]): Float32Array[][] {
  let at = 0;
  const found: Float32Array[][] = episodes.map(() => []);
  for (const i of learned) found[i] = episodes[i]!.segments.map(() => flat[at++]!);
  return found;
}

export interface SelectedData {
  /** Only the data that have a gradient. */
  readonly data: readonly Datum[];
  /** Tokens of the whole slice, for the denominators. */
  readonly tokens: number;
  /** Share of the slice's groups that have no gradient and are not computed. */
  readonly skipped: number;
}

/** The data of one slice of a batch. */
export function selectData(
  batch: RolloutBatch,
  members: readonly number[],
  logprobs: Logprobs,
  config: GRPOConfig,
): SelectedData {
  const all = buildData(batch, members, logprobs, config);
  const data = learnsFromAll(config) ? all : withAdvantage(all);
  const groups = new Set(members.map((i) => Math.floor(i / config.num_generations)));
  const computed = new Set(data.map(({ sequence }) => Math.floor(sequence! / config.num_generations)));
  const tokens = all.reduce((sum, { weights }) => sum + Array.from(weights).reduce((n, w) => n + w, 0), 0);
  return { data, tokens, skipped: 1 - computed.size / groups.size };
}

/** Drops episodes whose advantages are all 0; an episode's segments stay together. */
export function withAdvantage(data: readonly Datum[]): Datum[] {
  const kept = new Set(data.filter(({ advantage }) => !isZero(advantage)).map(({ sequence }) => sequence));
  return data.filter(({ sequence }) => kept.has(sequence));
}

function isZero(advantage: Datum["advantage"]): boolean {
  return typeof advantage === "object" ? Array.from(advantage).every((one) => one === 0) : advantage === 0;
}

/** Whether episodes with advantage 0 still have a gradient. */
function learnsFromAll({ beta, entropy_coef, use_adaptive_entropy, top_entropy_quantile }: GRPOConfig): boolean {
  return beta !== 0 || entropy_coef !== 0 || use_adaptive_entropy || top_entropy_quantile !== 1;
}

/** The loss of one slice of a batch. */
export function policySpec(
  config: GRPOConfig,
  batching: Batching,
  { tokens }: RolloutBatch,
  entropy_coef = config.entropy_coef,
): PolicySpec {
  return {
    type: "policy",
    loss_type: config.loss_type,
    beta: config.beta,
    epsilon: config.epsilon,
    epsilon_high: config.epsilon_high,
    delta: config.delta,
    use_bias_correction_kl: config.use_bias_correction_kl,
    importance_sampling_level: config.importance_sampling_level,
    entropy_coef,
    use_adaptive_entropy: config.use_adaptive_entropy,
    top_entropy_quantile: config.top_entropy_quantile,
    off_policy_mask_threshold: config.off_policy_mask_threshold,
    max_completion_length: config.max_completion_length,
    sapo_temperature_pos: config.sapo_temperature_pos,
    sapo_temperature_neg: config.sapo_temperature_neg,
    vespo_k_pos: config.vespo_k_pos,
    vespo_lambda_pos: config.vespo_lambda_pos,
    vespo_k_neg: config.vespo_k_neg,
    vespo_lambda_neg: config.vespo_lambda_neg,
    // TRL splits a slice into pieces of per_device_train_batch_size. Here a slice is one batch, so these count slices:
    // of an optimizer step, and of a rollout batch.
    gradient_accumulation_steps: batching.accumulations,
    steps_per_generation: batching.slices,
    num_items_in_batch: tokens,
  };
}

/** Whether some slice is trained on after π has changed since sampling, so that log π_old is needed. */
function isOffPolicy(config: GRPOConfig, { slices }: Batching): boolean {
  return config.num_iterations > 1 || slices > 1;
}
