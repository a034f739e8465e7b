// The policy losses: log-probs and entropies of the sampled tokens in, the loss and its gradients out. Host arithmetic only.
//
// Symbols, as in the papers: i a sequence (one whole episode), t one of its tokens, m its weight (1 where the model wrote
// it, 0 where the environment did), A the advantage of the sequence or of the token, π the current model, π_old the one
// that sampled, π_ref the reference. Formulas and option names are those of TRL 1.16 (GRPOTrainer._compute_loss).
//
// Every policy loss below has the same shape:
//
//     loss = Σ_i share_i · Σ_t m_it · ( gate_it · surrogate(w_it, A_it) + β · KL_it )  −  entropy_coef · mean entropy
//
//   w          importance weight: how much likelier the token is under π than under π_old (`importanceWeights`)
//   surrogate  makes tokens of good episodes likelier, within bounds                      (`surrogate`)
//   gate       0 for masked tokens: low entropy, or too far off policy                    (`isKept`, `hasDrifted`)
//   KL         how far π has moved from π_ref at this token                               (`klToReference`)
//   share      how tokens and sequences are averaged: where most loss types differ        (`shareOf`)
//
// With per-token advantages, whatever depends on the sign of A (clip, gates, VESPO's weight) is decided per token. A
// sequence-level ratio is then refused: all tokens share it, so each would get the mean of the advantages.
//
// The loss depends on the parameters only through log π and the entropy: the device needs only the gradients of these.
import { UsageError } from "../errors.ts";
import { type CrossEntropySpec, crossEntropy } from "../lm/engine/learning/cross-entropy.ts";
import {
  type BatchTotals,
  batchTotals,
  checkLengths,
  type LossFunction,
  type LossOutput,
  sum,
  type TokenEntropies,
  type TokenSequence,
} from "../lm/engine/learning/loss.ts";
import { type Clipped, mergePolicyMetrics, PolicyMetrics } from "./loss-metrics.ts";
import { POLICY_DEFAULTS, type PolicyOptions, type PolicySpec } from "./loss-options.ts";

/** The denominators of a policy loss. */
export interface PolicyTotals extends BatchTotals {
  /** Only for top_entropy_quantile < 1; `entropyCut` makes it. */
  readonly entropy_cut?: EntropyCut;
}

export interface EntropyCut {
  /** Tokens with at least this entropy are learned from. */
  readonly threshold: number;
  /** Sum of their weights. */
  readonly tokens: number;
}

/** Any loss of the GRPO family, with its gradients and the metrics that TRL logs. */
export function policyLoss(
  sequences: readonly TokenSequence[],
  spec: PolicySpec,
  totals: PolicyTotals = batchTotals(sequences),
): LossOutput {
  const options = { ...POLICY_DEFAULTS, ...spec };
  const cut = options.top_entropy_quantile < 1 ? (totals.entropy_cut ?? entropyCut(sequences, options)) : null;
  const tally = new PolicyMetrics(options);
  const dLogp: Float32Array[] = [];
  const dEntropy: Float32Array[] = [];
  let policy = 0;
  let bonus = 0;

  // The bonus is a plain mean over the tokens learned from, whatever the averaging of the loss.
  const bonusShare =
    options.entropy_coef / (Math.max(cut ? cut.tokens : totals.tokens, 1) * options.gradient_accumulation_steps);

  for (const [i, sequence] of sequences.entries()) {
    const { logp, entropy, weights, ref_logp, advantage } = checked(sequence, i, options);
    const advantageAt = typeof advantage === "number" ? () => advantage : (t: number) => advantage[t]!;
    const length = sum(weights);
    const share = shareOf(length, options, totals);
    const w = importanceWeights(sequence, options);
    const drifted = hasDrifted(sequence, options);
    const phi = options.loss_type === "vespo" ? gammaWeights(sequence, options) : { good: 1, bad: 1 };
    let good = 0; // weight of the tokens with A ≥ 0

    // Gradient of the sequence's loss with respect to each log-prob (direct part only) and to each importance weight.
    const byLogp = new Float64Array(logp.length);
    const byWeight = new Float64Array(logp.length);
    const byEntropy = new Float32Array(logp.length);
    tally.begin();
    for (let t = 0; t < logp.length; t++) {
      const m = weights[t]!;
      if (m === 0) continue;
      const ratio = w.at(t);
      const A = advantageAt(t);
      if (A >= 0) good += m;
      const kept = isKept(entropy[t]!, cut);
      const isLearned = kept && !(drifted && A < 0);
      const policyTerm = isLearned ? surrogate(ratio, logp[t]!, A, A >= 0 ? phi.good : phi.bad, options) : ZERO_TERM;
      policy += share * m * policyTerm.value;
      byLogp[t] = share * m * policyTerm.byLogp;
      byWeight[t] = share * m * policyTerm.byWeight;

      let kl = 0;
      if (options.beta !== 0) {
        const klTerm = klToReference(logp[t]!, ref_logp![t]!);
        const correction = options.use_bias_correction_kl ? ratio : 1;
        kl = klTerm.value * correction;
        policy += share * m * options.beta * kl;
        byLogp[t]! += share * m * options.beta * klTerm.byLogp * correction;
        if (options.use_bias_correction_kl) byWeight[t]! += share * m * options.beta * klTerm.value;
      }

      if (kept) {
        bonus += bonusShare * m * entropy[t]!;
        byEntropy[t] = -bonusShare * m || 0;
      }
      tally.token(m, entropy[t]!, kl, clippedSides(ratio, A, options));
    }
    w.backward(byWeight, byLogp);
    const goodShare = length === 0 ? 1 : good / length;
    tally.end(goodShare * phi.good + (1 - goodShare) * phi.bad);
    dLogp.push(Float32Array.from(byLogp));
    dEntropy.push(byEntropy);
  }

  return { loss: policy - bonus, dLogp, dEntropy, ...tally.result(policy) };
}

/** The policy losses for an engine, all under one name: `{ type: "policy", loss_type: "grpo", … }`. */
export const POLICY_LOSSES = {
  policy: {
    compute: policyLoss,
    mergeMetrics: (parts, { importance_sampling_level }) => mergePolicyMetrics(parts, importance_sampling_level),
    entropyTotals(spec, totals) {
      const { top_entropy_quantile = 1 } = spec;
      if (top_entropy_quantile === 1 || totals.entropy_cut) return null;
      return (sequences) => ({ ...totals, entropy_cut: entropyCut(sequences, { top_entropy_quantile }) });
    },
  } satisfies LossFunction<PolicySpec, PolicyTotals>,
};

/** The loss that `spec` names, without an engine. */
export function computeLoss(
  sequences: readonly TokenSequence[],
  spec: CrossEntropySpec | PolicySpec,
  totals: PolicyTotals = batchTotals(sequences),
): LossOutput {
  return spec.type === "cross_entropy" ? crossEntropy(sequences, totals.tokens) : policyLoss(sequences, spec, totals);
}

// ---- The parts of a policy loss -------------------------------------------------------------------------------------

/** The factor of sequence i's sum Σ_t m·l. GA is gradient_accumulation_steps, B the sequences of the batch. */
export function shareOf(length: number, options: PolicyOptions, { sequences, tokens }: BatchTotals): number {
  const { gradient_accumulation_steps: GA, num_items_in_batch } = options;
  const steps_per_generation = options.steps_per_generation ?? GA;
  switch (options.loss_type) {
    case "grpo": // DeepSeekMath: each sequence is a mean over its tokens, so tokens of long answers count less
    case "sapo":
      return 1 / (Math.max(length, 1) * sequences * GA);
    case "luspo": // each sequence weighted by its length, so that every token counts the same
      return 1 / (sequences * GA);
    case "bnpo": // a mean over the batch's tokens
      return 1 / (Math.max(tokens, 1) * GA);
    case "dr_grpo": // "Understanding R1-Zero-Like Training": a constant, so that no length is favoured
      return 1 / (sequences * options.max_completion_length * GA);
    case "dapo": // DAPO: a mean over the tokens of all batches that make up one optimizer step
    case "cispo":
    case "vespo": {
      if (num_items_in_batch === null && steps_per_generation !== 1)
        throw new UsageError({
          what: `loss_type ${options.loss_type} needs num_items_in_batch with steps_per_generation`,
          value: steps_per_generation,
          remedy: "give the number of trained tokens of the whole rollout batch",
        });
      return 1 / ((Math.max(num_items_in_batch ?? tokens, 1) * GA) / steps_per_generation);
    }
    default:
      throw new UsageError({ what: "unknown loss_type", value: options.loss_type });
  }
}

interface ImportanceWeights {
  /** w of token t. */
  at(t: number): number;
  /** Chain rule: turns the gradient with respect to the weights into one with respect to the log-probs, and adds it. */
  backward(byWeight: Float64Array, byLogp: Float64Array): void;
}

/** Token level: w_t = π/π_old. Sequence level (GSPO): one w, the geometric mean of the token ratios. */
function importanceWeights({ logp, old_logp, weights }: TokenSequence, options: PolicyOptions): ImportanceWeights {
  const logRatio = (t: number) => (old_logp ? logp[t]! - old_logp[t]! : 0);
  if (options.importance_sampling_level === "token") {
    const at = (t: number) => Math.exp(logRatio(t));
    return {
      at,
      backward(byWeight, byLogp) {
        for (let t = 0; t < logp.length; t++) if (byWeight[t] !== 0) byLogp[t]! += byWeight[t]! * at(t);
      },
    };
  }
  const length = Math.max(sum(weights), 1);
  let mean = 0;
  for (let t = 0; t < logp.length; t++) if (weights[t] !== 0) mean += (weights[t]! * logRatio(t)) / length;
  const w = Math.exp(mean);
  return {
    at: () => w,
    backward(byWeight, byLogp) {
      const total = sum(byWeight) * w; // all tokens share the weight, and each contributes to it
      for (let t = 0; t < logp.length; t++) if (weights[t] !== 0) byLogp[t]! += (total * weights[t]!) / length;
    },
  };
}

/** A token's term of the loss, and its partial derivatives with respect to log π (where it occurs directly) and to the weight w. */
interface Term {
  readonly value: number;
  readonly byLogp: number;
  readonly byWeight: number;
}

const ZERO_TERM: Term = { value: 0, byLogp: 0, byWeight: 0 };

/** The term of one token: makes it likelier if A > 0, less likely if A < 0, within bounds. */
function surrogate(w: number, logp: number, A: number, phi: number, options: PolicyOptions): Term {
  if (A === 0) return ZERO_TERM;
  switch (options.loss_type) {
    case "cispo": {
      // MiniMax-M1: −sg(min(w, ε_high))·A·log π. The weight is capped but the token never loses its gradient.
      const weight = Math.min(w, highOf(options));
      return { value: -weight * A * logp, byLogp: -weight * A, byWeight: 0 };
    }
    case "vespo": // −sg(φ)·A·log π
      return { value: -phi * A * logp, byLogp: -phi * A, byWeight: 0 };
    case "sapo": {
      // Soft gate instead of a clip: −A·σ(τ(w−1))·4/τ, whose slope is 1 at w = 1 and fades on both sides.
      const temperature = A > 0 ? options.sapo_temperature_pos : options.sapo_temperature_neg;
      const gate = 1 / (1 + Math.exp(-temperature * (w - 1)));
      return { value: (-A * gate * 4) / temperature, byLogp: 0, byWeight: -A * 4 * gate * (1 - gate) };
    }
    default: {
      // PPO's clip: −min(w·A, clip(w, 1−ε, 1+ε_high)·A). Outside the interval, in the direction that A pushes, the slope is 0.
      const [low, high] = [1 - options.epsilon, 1 + highOf(options)];
      const unclipped = { w: capped(w, options), slope: options.delta !== null && w > options.delta ? 0 : 1 };
      const clip = { w: Math.min(Math.max(w, low), high), slope: w >= low && w <= high ? 1 : 0 };
      const [a, b] = [unclipped.w * A, clip.w * A];
      const slope = a < b ? unclipped.slope : b < a ? clip.slope : (unclipped.slope + clip.slope) / 2;
      return { value: -Math.min(a, b), byLogp: 0, byWeight: -A * slope };
    }
  }
}

function highOf({ epsilon, epsilon_high }: PolicyOptions): number {
  return epsilon_high ?? epsilon;
}

/** Which tokens are clipped; for cispo, good ones whose weight is capped. */
function clippedSides(w: number, A: number, options: PolicyOptions): Clipped {
  const high = options.loss_type === "cispo" ? w > highOf(options) : capped(w, options) > 1 + highOf(options);
  return { low: A < 0 && capped(w, options) < 1 - options.epsilon ? 1 : 0, high: A > 0 && high ? 1 : 0 };
}

function capped(w: number, { delta }: PolicyOptions): number {
  return delta === null ? w : Math.min(w, delta);
}

/** Schulman's k3 estimator (joschu.net/blog/kl-approx.html): e^d − d − 1 with d = log π_ref − log π; never negative. */
function klToReference(logp: number, ref: number): { value: number; byLogp: number } {
  const d = ref - logp;
  return { value: Math.expm1(d) - d, byLogp: -Math.expm1(d) };
}

/** VESPO: φ(w) = e^λ · w^k · e^(−λw) of the whole sequence's ratio (a product, not a mean), 1 at w = 1; a constant. */
function gammaWeights(
  { logp, old_logp, weights }: TokenSequence,
  options: PolicyOptions,
): { good: number; bad: number } {
  let logW = 0;
  if (old_logp)
    for (let t = 0; t < logp.length; t++)
      if (weights[t] !== 0) logW += weights[t]! * clamp(logp[t]! - old_logp[t]!, -20, 20);
  logW = clamp(logW, Math.log(1e-8), 20);
  const phi = (k: number, least: number) => {
    const lambda = Math.max(least, 1e-4);
    const weight = Math.exp(lambda + k * logW - lambda * Math.exp(logW));
    return Number.isFinite(weight) ? weight : 0;
  };
  return {
    good: phi(options.vespo_k_pos, options.vespo_lambda_pos),
    bad: phi(options.vespo_k_neg, options.vespo_lambda_neg),
  };
}

/** Whether the current model would hardly sample this sequence: its tokens with negative advantages are then masked (DeepSeek-V3.2). */
function hasDrifted(sequence: TokenSequence, { off_policy_mask_threshold }: PolicyOptions): boolean {
  const { logp, weights, old_logp } = sequence;
  if (off_policy_mask_threshold === null) return false;
  let drift = 0;
  if (old_logp)
    for (let t = 0; t < logp.length; t++) if (weights[t] !== 0) drift += weights[t]! * (old_logp[t]! - logp[t]!);
  return !(drift / Math.max(sum(weights), 1) <= off_policy_mask_threshold);
}

function isKept(entropy: number, cut: EntropyCut | null): boolean {
  return cut === null || entropy >= cut.threshold;
}

/** The entropy threshold that a share `top_entropy_quantile` of the tokens reaches ("Beyond the 80/20 Rule"). */
export function entropyCut(
  sequences: readonly TokenEntropies[],
  { top_entropy_quantile }: Pick<PolicyOptions, "top_entropy_quantile">,
): EntropyCut {
  const tokens = sequences.flatMap(({ entropy, weights }) =>
    Array.from(weights, (m, t) => ({ m, entropy: entropy[t]! })).filter(({ m }) => m !== 0),
  );
  const threshold = quantile(
    tokens.map(({ entropy }) => entropy),
    1 - top_entropy_quantile,
  );
  return { threshold, tokens: sum(tokens.filter(({ entropy }) => entropy >= threshold).map(({ m }) => m)) };
}

/** The q-quantile, linear between neighbours; the rank is rounded to float32, as in torch.quantile. */
function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.POSITIVE_INFINITY;
  const sorted = values.toSorted((a, b) => a - b);
  const rank = Math.fround(Math.fround(q) * (sorted.length - 1));
  const [below, above] = [sorted[Math.floor(rank)]!, sorted[Math.ceil(rank)]!];
  return below + (rank - Math.floor(rank)) * (above - below);
}

/** Checks that every array the sequence needs is present and has the same length; returns the sequence. */
function checked(
  sequence: TokenSequence,
  i: number,
  { beta, importance_sampling_level }: PolicyOptions,
): TokenSequence & { advantage: number | ArrayLike<number> } {
  const { logp, entropy, weights, old_logp, ref_logp, advantage } = sequence;
  if (advantage === undefined)
    throw new UsageError({ what: "a policy loss needs an advantage; missing in sequence", value: i });
  if (beta !== 0 && !ref_logp)
    throw new UsageError({
      what: "beta is not 0 but there are no ref_logp in sequence",
      value: i,
      remedy: "compute them with the reference weights, or set beta to 0",
    });
  checkLengths(i, logp, { entropy, weights, old_logp, ref_logp });
  if (typeof advantage !== "number") {
    checkLengths(i, logp, { advantage });
    if (importance_sampling_level === "sequence")
      throw new UsageError({
        what: "advantages per token cannot be used with importance_sampling_level",
        value: "sequence",
        remedy: "a ratio that all tokens share gives each the mean of their advantages; use token",
      });
  }
  return { ...sequence, advantage };
}

function clamp(x: number, low: number, high: number): number {
  return Math.min(Math.max(x, low), high);
}
