// Metrics logged with a policy loss: entropy, KL and how often ratios were clipped, under TRL's names.
import type { Datum } from "../lm/engine/index.ts";
import type { PartMetrics } from "../lm/engine/learning/loss.ts";
import type { PolicyOptions } from "./loss-options.ts";
import type { RolloutBatch } from "./rollout-batch.ts";

/** Whether the ratio left its interval in the direction that the advantage pushes it: 1 or 0 for each side. */
export interface Clipped {
  readonly low: number;
  readonly high: number;
}

/** Accumulates metrics, sequence by sequence: `begin`, `token` for each token, `end`. */
export class PolicyMetrics {
  #options: PolicyOptions;
  #tokens = 0;
  #sequences = 0;
  #entropy = 0;
  #kl = 0;
  #low = 0;
  #high = 0;
  #phi = 0;
  #lowMin = Number.POSITIVE_INFINITY;
  #highMax = Number.NEGATIVE_INFINITY;
  #sequence = { tokens: 0, low: 0, high: 0 };

  constructor(options: PolicyOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#sequence = { tokens: 0, low: 0, high: 0 };
  }

  token(weight: number, entropy: number, kl: number, clipped: Clipped): void {
    this.#entropy += weight * entropy;
    this.#kl += weight * kl;
    this.#sequence.tokens += weight;
    this.#sequence.low += weight * clipped.low;
    this.#sequence.high += weight * clipped.high;
  }

  end(phi: number): void {
    const { tokens, low, high } = this.#sequence;
    this.#sequences++;
    this.#tokens += tokens;
    this.#phi += phi;
    // A sequence-level ratio is one event, however many tokens share it.
    const events = this.#options.importance_sampling_level === "sequence" ? tokens || 1 : 1;
    this.#low += low / events;
    this.#high += high / events;
    if (tokens === 0) return;
    this.#lowMin = Math.min(this.#lowMin, low / tokens);
    this.#highMax = Math.max(this.#highMax, high / tokens);
  }

  /** @param policy the loss without the entropy bonus */
  result(policy: number): PartMetrics {
    const { loss_type, beta, entropy_coef, use_adaptive_entropy, gradient_accumulation_steps } = this.#options;
    const tokens = Math.max(this.#tokens, 1);
    const events = this.#options.importance_sampling_level === "sequence" ? Math.max(this.#sequences, 1) : tokens;
    const metrics: Record<string, number> = {};
    if (entropy_coef !== 0 || use_adaptive_entropy) {
      // TRL logs the loss before dividing it by the number of accumulated batches.
      metrics.policy_loss = isOverBatch(loss_type) ? policy : policy * gradient_accumulation_steps;
      if (!use_adaptive_entropy) metrics.entropy_coef = entropy_coef;
    }
    if (beta !== 0) metrics.kl = this.#kl / tokens;
    metrics.entropy = this.#entropy / tokens;
    if (loss_type === "cispo") metrics.cispo_clip_ratio = this.#high / events;
    else if (loss_type === "vespo") metrics["vespo/phi_seq_mean"] = this.#phi / Math.max(this.#sequences, 1);
    else if (loss_type !== "sapo") {
      metrics["clip_ratio/low_mean"] = this.#low / events;
      metrics["clip_ratio/high_mean"] = this.#high / events;
      metrics["clip_ratio/region_mean"] = (this.#low + this.#high) / events;
      metrics["clip_ratio/low_min"] = Number.isFinite(this.#lowMin) ? this.#lowMin : 0;
      metrics["clip_ratio/high_max"] = Number.isFinite(this.#highMax) ? this.#highMax : 0;
    }
    return { metrics, tokens: this.#tokens, sequences: this.#sequences };
  }
}

/**
 * Losses whose denominator already spans the whole rollout batch, so that they are not divided by the accumulated
 * batches.
 */
function isOverBatch(loss_type: PolicyOptions["loss_type"]): boolean {
  return loss_type === "dapo" || loss_type === "cispo" || loss_type === "vespo";
}

/** The metrics of a batch that was computed in parts. */
export function mergePolicyMetrics(
  parts: readonly PartMetrics[],
  level: PolicyOptions["importance_sampling_level"] = "token",
): Record<string, number> {
  const merged: Record<string, number> = {};
  for (const name of Object.keys(parts[0]?.metrics ?? {})) {
    const values = parts.map(({ metrics }) => metrics[name]!);
    const perSequence = name.startsWith("vespo/") || (level === "sequence" && name.includes("clip_ratio"));
    const weights = parts.map(({ tokens, sequences }) => (perSequence ? sequences : tokens));
    if (name === "policy_loss") merged[name] = values.reduce((a, b) => a + b, 0);
    else if (name === "entropy_coef") merged[name] = values[0]!;
    else if (name.endsWith("_min")) merged[name] = Math.min(...values);
    else if (name.endsWith("_max")) merged[name] = Math.max(...values);
    else {
      const weight = weights.reduce((a, b) => a + b, 0);
      merged[name] = values.reduce((total, value, i) => total + value * weights[i]!, 0) / Math.max(weight, 1);
    }
  }
  return merged;
}

/** |log π as sampled − log π as learned|: mean and maximum, under TRL's names. */
export function samplingMismatch(
  { episodes }: RolloutBatch,
  data: readonly Datum[],
  learned: readonly ArrayLike<number>[],
): Record<string, number> {
  let [sum, max, count] = [0, 0, 0];
  const at = new Map<number, number>();
  for (const [d, { sequence, weights }] of data.entries()) {
    const s = at.get(sequence!) ?? 0;
    at.set(sequence!, s + 1);
    const { logprobs } = episodes[sequence!]!.segments[s]!;
    for (let t = 0; t < weights.length; t++) {
      if (weights[t] === 0) continue; // not computed
      const difference = Math.abs(learned[d]![t]! - logprobs[t]!);
      sum += difference;
      max = Math.max(max, difference);
      count++;
    }
  }
  const name = "sampling/sampling_logp_difference";
  return count === 0 ? {} : { [`${name}/mean`]: sum / count, [`${name}/max`]: max };
}
