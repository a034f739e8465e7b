// The losses against TRL's own numbers (../../test/reference/trl-losses.jsonl), central differences and each other.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Case, fixtures, inputs, sequencesOf, specOf } from "../../test/helpers/trl-losses.ts";
import { UsageError } from "../errors.ts";
import { crossEntropy } from "../lm/engine/learning/cross-entropy.ts";
import { batchTotals, type TokenSequence } from "../lm/engine/learning/loss.ts";
import { random } from "../random.ts";
import { computeLoss, entropyCut, policyLoss } from "./loss.ts";
import { mergePolicyMetrics } from "./loss-metrics.ts";
import type { PolicyLossType, PolicyOptions, PolicySpec } from "./loss-options.ts";

function expectClose(got: ArrayLike<ArrayLike<number>>, want: readonly (readonly number[])[], tolerance: number): void {
  expect(Array.from(got, (row) => row.length)).toEqual(want.map((row) => row.length));
  const worst = Math.max(...want.flatMap((row, i) => row.map((x, t) => Math.abs(got[i]![t]! - x))));
  expect(worst).toBeLessThanOrEqual(tolerance);
}

describe("TRL's own trainer", () => {
  test.each(fixtures)("$name", ({ case: options, loss, dLogp, dEntropy, metrics }) => {
    const output = policyLoss(sequencesOf(inputs, options), specOf(options));
    expect(Math.abs(output.loss - loss)).toBeLessThan(1e-8);
    expectClose(output.dLogp, dLogp, 2e-8); // float32 of numbers up to 0.3
    expectClose(output.dEntropy, dEntropy, 1e-9);
    expect(Object.keys(output.metrics).sort()).toEqual(Object.keys(metrics).sort());
    for (const [name, value] of Object.entries(metrics)) expect(output.metrics[name], name).toBeCloseTo(value, 7); // TRL counts clips in float32
  });
});

const golden = new URL("../../../shared/golden/grpo_vectors.json", import.meta.url);

describe.skipIf(!existsSync(golden))("the golden vectors (skipped where ../shared/golden is absent)", () => {
  const vectors = existsSync(golden) ? JSON.parse(readFileSync(golden, "utf8")) : { cases: {} };
  const beta = { beta: 0.04 };
  const options: Record<string, Case> = {
    grpo: { loss_type: "grpo" },
    "grpo_beta0.04": { loss_type: "grpo", ...beta },
    bnpo: { loss_type: "bnpo" },
    dr_grpo: { loss_type: "dr_grpo" },
    dapo: {},
    "dapo_beta0.04": beta,
    luspo: { loss_type: "luspo" },
    cispo: { loss_type: "cispo" },
    sapo: { loss_type: "sapo" },
    "grpo_sequence_level(gspo)": { loss_type: "grpo", importance_sampling_level: "sequence" },
    "dapo_delta1.3": { delta: 1.3 },
    dapo_num_items26: { num_items_in_batch: 26 },
    dapo_num_items26_GA2_spg4: { num_items_in_batch: 26, steps_per_generation: 4 },
    "dapo_entropy_coef0.01": { entropy_coef: 0.01 },
    "dapo_on_policy(no old logps)": { old: false },
  };

  test("every case is listed here", () =>
    expect(Object.keys(vectors.cases).sort()).toEqual(Object.keys(options).sort()));

  test.each(Object.keys(vectors.cases))("%s", (name) => {
    const { loss, grad_logp, metrics } = vectors.cases[name];
    const output = policyLoss(sequencesOf(vectors, options[name]), specOf(options[name]!));
    expect(Math.abs(output.loss - loss)).toBeLessThan(1e-6);
    expectClose(output.dLogp, grad_logp, 1e-6);
    expect(Object.keys(output.metrics).sort()).toEqual(Object.keys(metrics).sort());
    for (const [key, value] of Object.entries<number>(metrics))
      expect(Math.abs(output.metrics[key]! - value), key).toBeLessThan(1e-6);
  });

  test("the log-probs and entropies the vectors list are those of their logits", () => {
    const sequences = sequencesOf(vectors);
    expectClose(
      sequences.map(({ logp }) => logp),
      vectors.logps,
      1e-6,
    );
    expectClose(
      sequences.map(({ entropy }) => entropy),
      vectors.entropies,
      1e-6,
    );
  });
});

/** ∂loss/∂(array at i, t) by central differences. */
function slope(sequences: TokenSequence[], key: "logp" | "entropy", i: number, t: number, loss: LossOf): number {
  const h = 1e-5;
  const moved = (by: number) =>
    sequences.map((sequence, j) =>
      i === j ? { ...sequence, [key]: Array.from(sequence[key], (x, u) => (u === t ? x + by : x)) } : sequence,
    );
  return (loss(moved(h)) - loss(moved(-h))) / (2 * h);
}
type LossOf = (sequences: TokenSequence[]) => number;

function expectGradients(sequences: TokenSequence[], spec: PolicySpec, loss: LossOf): void {
  const output = policyLoss(sequences, spec);
  for (const [key, gradient] of [["logp", output.dLogp] as const, ["entropy", output.dEntropy] as const])
    expectClose(
      gradient,
      sequences.map((sequence, i) => Array.from(sequence[key], (_, t) => slope(sequences, key, i, t, loss))),
      1e-7,
    );
}

/** Random sequences whose ratios fall on both sides of the clip. */
function randomSequences(key: string, count = 5): (TokenSequence & { readonly advantage: number })[] {
  const dice = random("loss.test", key);
  return Array.from({ length: count }, () => {
    const logp = Array.from({ length: dice.int(1, 7) }, () => -3 * dice.next() - 0.01);
    return {
      logp,
      entropy: logp.map(() => 1.1 * dice.next()),
      weights: logp.map(() => (dice.chance(0.75) ? 1 : 0)),
      advantage: dice.normal(0, 1),
      old_logp: logp.map((lp) => lp + dice.normal(0, 0.3)),
      ref_logp: logp.map((lp) => lp + dice.normal(0, 0.3)),
    };
  });
}

describe("central differences", () => {
  const types: PolicyLossType[] = ["grpo", "bnpo", "dr_grpo", "dapo", "luspo", "sapo"];
  const variants: Partial<PolicyOptions>[] = [
    {},
    { beta: 0.3, use_bias_correction_kl: false },
    { beta: 0.3, use_bias_correction_kl: true, entropy_coef: 0.05 },
    { importance_sampling_level: "sequence", epsilon: 0.05, epsilon_high: 0.1 },
    { importance_sampling_level: "sequence", beta: 0.3, use_bias_correction_kl: true },
    { delta: 1.35, top_entropy_quantile: 0.6, entropy_coef: 0.05 },
    { off_policy_mask_threshold: 0.05 },
  ];
  const settings = { max_completion_length: 11, gradient_accumulation_steps: 3, num_items_in_batch: 40 };
  test.each(types)("%s", (loss_type) => {
    for (const [n, variant] of variants.entries()) {
      const spec: PolicySpec = { type: "policy", loss_type, ...settings, ...variant };
      const sequences = randomSequences(`${loss_type} ${n}`);
      expectGradients(sequences, spec, (moved) => policyLoss(moved, spec).loss);
    }
  });

  test("on policy: the ratio is 1 but has a slope", () => {
    for (const importance_sampling_level of ["token", "sequence"] as const) {
      const spec: PolicySpec = { type: "policy", importance_sampling_level, ...settings, beta: 0.3 };
      const sequences = randomSequences("on policy").map((sequence) => ({ ...sequence, old_logp: null }));
      const frozen = (moved: TokenSequence[]) => moved.map((s, i) => ({ ...s, old_logp: sequences[i]!.logp }));
      expectGradients(sequences, spec, (moved) => policyLoss(frozen(moved), spec).loss);
    }
  });

  test("cispo, where the capped weight is a constant", () => {
    const spec: PolicySpec = { type: "policy", loss_type: "cispo", epsilon_high: 0.1, ...settings };
    expectGradients(randomSequences("cispo"), spec, (moved) => policyLoss(moved, spec).loss);
  });

  test("vespo, where the weight is a constant", () => {
    // φ is constant under the gradient: move the old log-probs along, and it does not change.
    const spec: PolicySpec = { type: "policy", loss_type: "vespo", ...settings };
    const sequences = randomSequences("vespo").map((s) => ({ ...s, old_logp: Array.from(s.logp, (lp) => lp - 0.05) }));
    const along = (moved: TokenSequence[]) =>
      moved.map((s) => ({ ...s, old_logp: Array.from(s.logp, (lp) => lp - 0.05) }));
    expectGradients(sequences, spec, (moved) => policyLoss(along(moved), spec).loss);
  });
});

const ALL_TYPES: PolicyLossType[] = ["grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo"];

describe("advantages per token", () => {
  const variants: Partial<PolicyOptions>[] = [
    {},
    { beta: 0.3, use_bias_correction_kl: false, entropy_coef: 0.05, top_entropy_quantile: 0.6 },
    { delta: 1.35, off_policy_mask_threshold: 0.05 },
  ];
  const settings = { max_completion_length: 11, gradient_accumulation_steps: 3, num_items_in_batch: 40 };
  const specs = (loss_type: PolicyLossType) =>
    variants.map((variant): PolicySpec => ({ type: "policy", loss_type, ...settings, ...variant }));
  /** Tokens of both signs in one sequence; those without weight have no advantage. */
  const mixed = (key: string) => {
    const dice = random("advantages", key);
    return randomSequences(key).map((sequence) => ({
      ...sequence,
      advantage: Array.from(sequence.weights, (m) => (m === 0 ? Number.NaN : dice.normal(0, 1))),
    }));
  };

  test.each(ALL_TYPES)("%s: the same for every token gives the same bits as one number", (loss_type) => {
    for (const spec of specs(loss_type)) {
      const sequences = randomSequences(`constant ${loss_type}`, 9);
      const spread = sequences.map((s) => ({ ...s, advantage: new Float64Array(s.logp.length).fill(s.advantage) }));
      expect(policyLoss(spread, spec)).toEqual(policyLoss(sequences, spec));
    }
  });

  test.each(ALL_TYPES)("%s: central differences", (loss_type) => {
    for (const spec of specs(loss_type)) {
      const sequences = mixed(loss_type).map((s) =>
        loss_type === "vespo" ? { ...s, old_logp: Array.from(s.logp, (lp) => lp - 0.05) } : s,
      );
      const still = (moved: TokenSequence[]) =>
        loss_type === "vespo" ? moved.map((s) => ({ ...s, old_logp: Array.from(s.logp, (lp) => lp - 0.05) })) : moved;
      expectGradients(sequences, spec, (moved) => policyLoss(still(moved), spec).loss);
    }
  });

  test("clips, gates and VESPO's weight follow the sign of each token", () => {
    const drifted = { logp: [-1, -1], entropy: [0, 0], weights: [1, 1], old_logp: [-0.5, -0.5] };
    const sequence = { ...drifted, advantage: [1, -1] };
    const masked = policyLoss([sequence], { type: "policy", off_policy_mask_threshold: 0.1 });
    expect(masked.dLogp[0]![0]).toBeLessThan(0);
    expect(masked.dLogp[0]![1]).toBe(0);
    expect(policyLoss([sequence], { type: "policy" }).metrics["clip_ratio/low_mean"]).toBe(0.5);
    const phi = (advantage: number) =>
      policyLoss([{ ...drifted, advantage }], { type: "policy", loss_type: "vespo" }).metrics["vespo/phi_seq_mean"]!;
    const vespo = policyLoss([sequence], { type: "policy", loss_type: "vespo" });
    expect(vespo.metrics["vespo/phi_seq_mean"]).toBeCloseTo((phi(1) + phi(-1)) / 2, 12);
    expect(Array.from(vespo.dLogp[0]!)).toEqual([Math.fround(-phi(1) / 2), Math.fround(phi(-1) / 2)]);
  });

  test("one ratio for a whole sequence is refused, and so are too few advantages", () => {
    const sequence = mixed("refused")[0]!;
    expect(() => policyLoss([sequence], { type: "policy", importance_sampling_level: "sequence" })).toThrow(
      /advantages per token cannot be used with importance_sampling_level: sequence/,
    );
    expect(() => policyLoss([{ ...sequence, advantage: [] }], { type: "policy" })).toThrow(/number of advantage: 0/);
  });
});

describe("parts of a batch", () => {
  const types = ALL_TYPES;
  test.each(types)("%s: losses, gradients and metrics of the parts make those of the whole", (loss_type) => {
    for (const importance_sampling_level of ["token", "sequence"] as const) {
      const spec: PolicySpec = {
        type: "policy",
        loss_type,
        importance_sampling_level,
        epsilon: 0.05,
        beta: 0.1,
        entropy_coef: 0.02,
        top_entropy_quantile: 0.7,
      };
      const sequences = randomSequences("parts", 7);
      const whole = policyLoss(sequences, spec);
      const totals = { ...batchTotals(sequences), entropy_cut: entropyCut(sequences, { top_entropy_quantile: 0.7 }) };
      const parts = [sequences.slice(0, 2), sequences.slice(2, 3), sequences.slice(3)].map((part) =>
        computeLoss(part, spec, totals),
      );
      expect(parts.reduce((total, { loss }) => total + loss, 0)).toBeCloseTo(whole.loss, 12);
      expect(parts.flatMap(({ dLogp }) => dLogp)).toEqual(whole.dLogp);
      expect(parts.flatMap(({ dEntropy }) => dEntropy)).toEqual(whole.dEntropy);
      const merged = mergePolicyMetrics(parts, importance_sampling_level);
      expect(Object.keys(merged)).toEqual(Object.keys(whole.metrics));
      for (const [name, value] of Object.entries(whole.metrics)) expect(merged[name], name).toBeCloseTo(value, 12);
    }
  });

  test("a sequence without advantage may be left out when it is counted", () => {
    const sequences = randomSequences("skip", 6).map((s, i) => (i % 2 ? { ...s, advantage: 0 } : s));
    for (const loss_type of types) {
      const spec: PolicySpec = { type: "policy", loss_type };
      const skipped = policyLoss(
        sequences.filter(({ advantage }) => advantage !== 0),
        spec,
        batchTotals(sequences),
      );
      const all = policyLoss(sequences, spec);
      expect(skipped.loss).toBeCloseTo(all.loss, 12);
      expect(skipped.dLogp).toEqual(all.dLogp.filter((_, i) => i % 2 === 0));
      expect(all.dLogp[1]!.every((x) => x === 0)).toBe(true);
    }
  });
});

describe("cross-entropy", () => {
  const sequences = [
    { logp: [-1, -2, Number.NaN], entropy: [0, 0, 0], weights: [1, 0.5, 0] },
    { logp: [-4], entropy: [0], weights: [2.5] },
  ];
  test("is the weighted mean of −log π; tokens of weight 0 are never read", () => {
    const { loss, dLogp, dEntropy, tokens } = crossEntropy(sequences);
    expect(loss).toBeCloseTo((1 + 1 + 10) / 4, 12);
    expectClose(dLogp, [[-0.25, -0.125, 0], [-0.625]], 0);
    expectClose(dEntropy, [[0, 0, 0], [0]], 0);
    expect(tokens).toBe(4);
  });
  test("adds up over parts", () => {
    const parts = sequences.map((s) => computeLoss([s], { type: "cross_entropy" }, batchTotals(sequences)));
    expect(parts[0]!.loss + parts[1]!.loss).toBeCloseTo(crossEntropy(sequences).loss, 12);
  });
  test("of nothing is 0", () => {
    expect(crossEntropy([{ logp: [-1], weights: [0] }]).loss).toBe(0);
  });
});

test("values at the environment's tokens are never read", () => {
  const [clean] = randomSequences("masked", 1);
  const sequence = { ...clean!, weights: Array.from(clean!.logp, (_, t) => (t === 0 ? 0 : 1)), advantage: -1 };
  const poison = (values: ArrayLike<number>) => Array.from(values, (x, t) => (t === 0 ? Number.NaN : x));
  const dirty = { ...sequence, logp: poison(sequence.logp), entropy: poison(sequence.entropy) };
  for (const importance_sampling_level of ["token", "sequence"] as const) {
    const spec: PolicySpec = {
      type: "policy",
      importance_sampling_level,
      beta: 0.1,
      entropy_coef: 0.1,
      top_entropy_quantile: 0.5,
      off_policy_mask_threshold: 1,
    };
    expect(policyLoss([dirty], spec)).toEqual(policyLoss([sequence], spec));
  }
});

test("missing and mismatched inputs are refused", () => {
  const [sequence] = randomSequences("errors", 1);
  const { advantage, ...without } = sequence!;
  expect(() => policyLoss([without], { type: "policy" })).toThrow(UsageError);
  expect(() => policyLoss([{ ...sequence!, ref_logp: null }], { type: "policy", beta: 0.1 })).toThrow(/ref_logp/);
  expect(() => policyLoss([sequence!], { type: "policy", loss_type: "ppo" as PolicyLossType })).toThrow(
    /loss_type: ppo/,
  );
  expect(() => policyLoss([{ ...sequence!, weights: [1] }], { type: "policy" })).toThrow(/weights/);
  expect(() => policyLoss([sequence!], { type: "policy", gradient_accumulation_steps: 2 })).toThrow(
    /num_items_in_batch/,
  );
});
