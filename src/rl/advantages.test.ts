// Advantages against TRL 1.16's numbers, and what must hold for any rewards.
import fc from "fast-check";
import { expect, test } from "vitest";
import { type AdvantageOptions, computeAdvantages } from "./advantages.ts";

const ROWS = [
  [1, 0.3, 0.1],
  [0, 0.1, 0.1],
  [0, 0.1, 0],
  [1, 0.5, 0.1],
  ...Array.from({ length: 4 }, () => [0, 0, 0.1]),
];
const ZEROS = [0, 0, 0, 0];

/** Computed by TRL 1.16 in float32. */
const CASES: [string, Partial<AdvantageOptions>, number[]][] = [
  ["group", {}, [0.732623, -0.79633, -0.923743, 0.987449, ...ZEROS]],
  ["group, as true", { scale_rewards: true }, [0.732623, -0.79633, -0.923743, 0.987449, ...ZEROS]],
  ["none", { scale_rewards: "none" }, [0.575, -0.625, -0.725, 0.775, ...ZEROS]],
  ["none, as false", { scale_rewards: false }, [0.575, -0.625, -0.725, 0.775, ...ZEROS]],
  ["batch", { scale_rewards: "batch" }, [0.893396, -0.971083, -1.126456, 1.204142, ...ZEROS]],
  ["weights", { reward_weights: [1, 0.5, 0.1] }, [0.789434, -0.856779, -0.871744, 0.939089, ...ZEROS]],
  [
    "normalize_then_sum",
    { multi_objective_aggregation: "normalize_then_sum" },
    [0.938872, -0.663975, -1.816595, 1.541698, ...ZEROS],
  ],
];

test.each(CASES)("scale: %s", (_, options, want) => {
  const { advantages } = computeAdvantages(ROWS, { num_generations: 4, ...options });
  for (const [i, value] of want.entries()) expect(Math.abs(advantages[i]! - value)).toBeLessThan(1e-6);
});

test("nulls are left out of sums, means and deviations; a completion without a score gets exactly 0", () => {
  const rows = [
    [1, 0.3, 0.1],
    [0, null, 0.1],
    [null, null, null],
    [0, 0.5, 0.1],
  ];
  const { advantages, rewards, metrics } = computeAdvantages(rows, { num_generations: 4 });
  expect(rewards.map((r) => (r === null ? null : Number(r.toFixed(12))))).toEqual([1.4, 0.1, null, 0.6]);
  for (const [i, value] of [1.067327, -0.914852, 0, -0.152475].entries())
    expect(Math.abs(advantages[i]! - value)).toBeLessThan(1e-6);
  expect(advantages[2]).toBe(0);
  expect(metrics.reward_std).toBeCloseTo(0.655744, 6);
});

test("metrics under TRL's names", () => {
  const { metrics } = computeAdvantages(ROWS, { num_generations: 4, reward_names: ["reward_correctness", "b", "c"] });
  expect(Object.keys(metrics)).toEqual([
    ...["reward_correctness", "b", "c"].flatMap((name) => [`rewards/${name}/mean`, `rewards/${name}/std`]),
    "reward",
    "reward_std",
    "frac_reward_zero_std",
  ]);
  expect(metrics["rewards/reward_correctness/mean"]).toBe(0.25);
  expect(metrics["rewards/reward_correctness/std"]).toBeCloseTo(Math.sqrt(1.5 / 7), 12);
  expect(metrics.reward).toBeCloseTo(3.7 / 8, 12);
  expect(metrics.reward_std).toBeCloseTo(0.643512, 6);
  expect(metrics.frac_reward_zero_std).toBe(0.5);
});

test("a group with one scored completion, or none, has no advantages", () => {
  const rows = [[1], [null], [null], [null]];
  for (const scale_rewards of ["group", "batch", "none"] as const)
    expect(computeAdvantages(rows, { num_generations: 2, scale_rewards }).advantages).toEqual(ZEROS);
});

test("equal rewards give exactly 0, whatever their sum rounds to; others have mean 0 in their group", () => {
  const reward = fc.double({ min: -5, max: 5, noNaN: true });
  fc.assert(
    fc.property(reward, fc.array(reward, { minLength: 4, maxLength: 4 }), (same, others) => {
      const rows = [same, same, same, ...others.slice(0, 3)].map((r) => [r, 0.1]);
      const { advantages } = computeAdvantages(rows, { num_generations: 3 });
      expect(advantages.slice(0, 3)).toEqual([0, 0, 0]);
      expect(advantages[3]! + advantages[4]! + advantages[5]!).toBeCloseTo(0, 9);
    }),
  );
});

test("mismatched rewards, weights and groups are refused", () => {
  expect(() => computeAdvantages([[1], [2], [3]], { num_generations: 2 })).toThrow(/groups of num_generations: 2/);
  expect(() => computeAdvantages([[1], [2]], { num_generations: 2, reward_weights: [1, 2] })).toThrow(/reward_weights/);
  expect(() => computeAdvantages([[1], [Number.NaN]], { num_generations: 2 })).toThrow(/completion 1/);
});
