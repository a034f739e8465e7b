// The policy losses on a server of the Tinker API, whose losses are sums over tokens:
//
//     ppo     −Σ min(r·A, clip(r, low, high)·A)     r = π/q, q the model that sampled
//     cispo   −Σ sg(min(r, high))·A·log π
//
// Both are proportional to A, so each token's share of our average is multiplied into it. `importance_sampling`, −Σ r·A,
// is ppo without a clip, and is used where the clip cannot act.
import { UsageError } from "../errors.ts";
import type { Datum, RemoteInputs, RemoteLoss } from "../lm/engine/index.ts";
import type { TokenSequence } from "../lm/engine/learning/loss.ts";
import { policyLoss, shareOf } from "./loss.ts";
import { POLICY_DEFAULTS, type PolicyLossType, type PolicyOptions, type PolicySpec } from "./loss-options.ts";

/** Which loss of a server each of ours is; null: none. */
export const REMOTE_LOSS_OF: Readonly<Record<PolicyLossType, "ppo" | "cispo" | null>> = {
  grpo: "ppo",
  bnpo: "ppo",
  dr_grpo: "ppo",
  dapo: "ppo",
  luspo: "ppo",
  cispo: "cispo",
  sapo: null, // a soft gate
  vespo: null, // a weight of the whole sequence
};

/** Options of the policy losses that servers do not have, with the only value that can be mapped. */
const ONLY = {
  beta: 0,
  delta: null,
  importance_sampling_level: "token",
  entropy_coef: 0,
  use_adaptive_entropy: false,
  top_entropy_quantile: 1,
  off_policy_mask_threshold: null,
} as const satisfies Partial<PolicyOptions>;

/** Throws UsageError, by name, for options that no loss of a server has. */
export function checkRemoteLoss(options: Pick<PolicyOptions, "loss_type" | keyof typeof ONLY>): void {
  if (!REMOTE_LOSS_OF[options.loss_type]) {
    const known = Object.entries(REMOTE_LOSS_OF).flatMap(([name, mapped]) => (mapped ? [name] : []));
    throw new UsageError({
      what: "a remote engine has no loss like loss_type",
      value: options.loss_type,
      remedy: `use ${known.join(", ")}, or train on this machine`,
    });
  }
  for (const [key, only] of Object.entries(ONLY))
    if (options[key as keyof typeof ONLY] !== only)
      throw new UsageError({
        what: `a remote engine's losses have no ${key}; it is`,
        value: String(options[key as keyof typeof ONLY]),
        remedy: `set ${key} to ${only}, or train on this machine`,
      });
}

export const REMOTE_POLICY_LOSSES = {
  policy: {
    request(batch, spec, totals) {
      const options = { ...POLICY_DEFAULTS, ...spec };
      checkRemoteLoss(options);
      const lengths = new Map<number, number>();
      for (const [d, datum] of batch.entries())
        lengths.set(sequenceOf(datum, d), (lengths.get(sequenceOf(datum, d)) ?? 0) + weightOf(datum));
      return {
        ...lossOf(options),
        inputs: batch.map((datum, d) =>
          inputsOf(datum, d, shareOf(lengths.get(sequenceOf(datum, d))!, options, totals)),
        ),
      };
    },
    result(batch, spec, totals, logprobs) {
      const { loss, metrics } = policyLoss(sequencesOf(batch, logprobs), spec, totals);
      const { entropy: _, ...known } = metrics; // servers do not say it
      return { loss, metrics: known };
    },
  } satisfies RemoteLoss<PolicySpec>,
};

/** The server's loss. */
function lossOf({ loss_type, epsilon, epsilon_high }: PolicyOptions) {
  const high = epsilon_high ?? epsilon;
  if (REMOTE_LOSS_OF[loss_type] === "cispo")
    return { loss_fn: "cispo", loss_fn_config: { clip_low_threshold: 0, clip_high_threshold: high } };
  if (epsilon >= 1 && high === Number.POSITIVE_INFINITY) return { loss_fn: "importance_sampling" }; // ratios are above 0
  return { loss_fn: "ppo", loss_fn_config: { clip_low_threshold: 1 - epsilon, clip_high_threshold: 1 + high } };
}

function inputsOf(datum: Datum, d: number, share: number): RemoteInputs {
  const { tokens, weights, advantage = 0, old_logp } = datum;
  if (!old_logp)
    throw new UsageError({
      what: "a remote engine needs the log-probs of the model that sampled (old_logp); missing in datum",
      value: d,
    });
  const advantages = new Float64Array(tokens.length);
  const logprobs = new Float64Array(tokens.length);
  for (let i = 1; i < tokens.length; i++) {
    if (weights[i] === 0) continue;
    advantages[i] = share * weights[i]! * (typeof advantage === "number" ? advantage : advantage[i]!);
    logprobs[i] = old_logp[i]!;
  }
  return { advantages, logprobs };
}

function sequenceOf({ sequence }: Datum, d: number): number {
  return sequence ?? -1 - d;
}

function weightOf({ weights }: Datum): number {
  let sum = 0;
  for (let i = 1; i < weights.length; i++) sum += weights[i]!;
  return sum;
}

/** The trained tokens of each sequence, as the loss takes them. */
function sequencesOf(batch: readonly Datum[], logprobs: readonly Float32Array[]): TokenSequence[] {
  const found = new Map<number, { [K in "logp" | "weights" | "advantage" | "old_logp"]: number[] }>();
  for (const [d, datum] of batch.entries()) {
    const key = sequenceOf(datum, d);
    const sequence = found.get(key) ?? { logp: [], weights: [], advantage: [], old_logp: [] };
    found.set(key, sequence);
    const { weights, advantage = 0, old_logp } = datum;
    for (let i = 1; i < weights.length; i++) {
      if (weights[i] === 0) continue;
      sequence.logp.push(logprobs[d]![i]!);
      sequence.weights.push(weights[i]!);
      sequence.advantage.push(typeof advantage === "number" ? advantage : advantage[i]!);
      sequence.old_logp.push(old_logp![i]!);
    }
  }
  return [...found.values()].map((sequence) => ({ ...sequence, entropy: sequence.logp.map(() => 0) }));
}
