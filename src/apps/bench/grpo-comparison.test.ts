import { expect, test } from "vitest";
import { checkSame, type MeasuredStep, ratiosOf, sideOf } from "./grpo-comparison.ts";

const played = { episodes: 8, sampled_tokens: 100, tokens: 1000, checksum: 7, mean_reward: 0.5, grad_norm: 4 };
const step = (sampling: number, training: number): MeasuredStep => ({
  seconds: { step: sampling + training + 1, sampling, environment: 0.5, training, rest: 0.5 },
  played,
  cpu_s: 2 * (sampling + training),
  other_cores: 0.25,
});

test("ratios are theirs over ours per step, so that load on the machine cancels out", () => {
  const ours = [step(1, 2), step(10, 20), step(1, 2)]; // the machine was busy during the second step
  const theirs = [step(4, 4), step(40, 40), step(5, 4)];
  const { ratios, ratio_ranges } = ratiosOf(ours, theirs);
  expect(ratios).toEqual({ step: 10 / 4, sampling: 4, training: 2, cpu: 8 / 3 });
  expect(ratio_ranges.sampling).toEqual([4, 5]);
});

test("a side has medians and ranges of its steps", () => {
  const side = sideOf([step(1, 2), step(3, 2), step(2, 8)]);
  expect(side.median_s).toEqual({ step: 6, sampling: 2, environment: 0.5, training: 2, rest: 0.5 });
  expect(side.range_s.training).toEqual([2, 8]);
  expect([side.sampled_tokens_per_s, side.trained_tokens_per_s, side.cpu_s]).toEqual([50, 500, 10]);
});

test("differences are named; the gradient norm may differ by rounding", () => {
  checkSame(played, { ...played, grad_norm: 4.01 });
  expect(() => checkSame(played, { ...played, checksum: 8 })).toThrow(/different episodes: checksum 8 instead of 7/);
  expect(() => checkSame(played, { ...played, grad_norm: 4.1 })).toThrow(/grad_norm/);
  expect(() => checkSame(played, { ...played, grad_norm: Number.NaN })).toThrow(/grad_norm/);
});
