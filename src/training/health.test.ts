import { expect, test } from "vitest";
import { resolveConfig } from "./config.ts";
import { warningsAt } from "./health.ts";

const config = resolveConfig();
const fine = {
  "completions/clipped_ratio": 0.1,
  frac_reward_zero_std: 0.5,
  "actions/parse_failure_rate": 0.1,
  "actions/empty_rate": 0,
  "actions/repeat_rate": 0.1,
  "sampling/surprise": 0.4,
  "rewards/reward_correctness/mean": 0.3,
  "episodes/unscorable": 0,
  "steps/skipped": 0,
};

test.each([
  ["truncated", { "completions/clipped_ratio": 1 }, /100 % of the episodes were cut off at max_new_tokens 256/],
  ["no_spread", { frac_reward_zero_std: 1 }, /nothing was learned/],
  ["parse_failures", { "actions/parse_failure_rate": 0.6 }, /60 % of what the model wrote was no action/],
  ["empty_turns", { "actions/empty_rate": 0.33 }, /33 % of the turns were empty/],
  ["repeats", { "actions/repeat_rate": 0.4 }, /40 % of the actions repeat an earlier one/],
  ["entropy_collapsed", { "sampling/surprise": 0.001 }, /0.0010 nats a token\) while only 30 %/],
  ["unscorable", { "episodes/unscorable": 2 }, /2 episodes could not be scored/],
  ["nan", { "steps/skipped": 1 }, /the weights are as they were/],
])("%s is told once while it lasts, and again when it comes back", (code, change, message) => {
  expect(warningsAt(1, fine, config, [])).toEqual({ warnings: [], holding: [] });
  const first = warningsAt(2, { ...fine, ...change }, config, []);
  expect(first.warnings).toMatchObject([{ step: 2, code }]);
  expect(first.warnings[0]!.message).toMatch(message);
  expect(first.warnings[0]!.remedy).not.toBe("");
  const second = warningsAt(3, { ...fine, ...change }, config, first.holding);
  expect(second.warnings).toEqual([]);
  expect(warningsAt(4, fine, config, second.holding).holding).toEqual([]);
});

test("a model that is nearly always right may be sure of itself", () => {
  const sure = { ...fine, "sampling/surprise": 0.001, "rewards/reward_correctness/mean": 0.99 };
  expect(warningsAt(1, sure, config, []).warnings).toEqual([]);
});

test("a step without the metric changes nothing", () => {
  const { "completions/clipped_ratio": _, ...others } = fine;
  expect(warningsAt(3, others, config, ["truncated"])).toEqual({ warnings: [], holding: ["truncated"] });
});
