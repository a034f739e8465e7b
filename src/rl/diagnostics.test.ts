import { expect, test } from "vitest";
import { CONFIG_KEYS, type GRPOConfigInput, resolveConfig } from "./config.ts";
import { type Health, QUIET_STEPS, warningsAt } from "./diagnostics.ts";

const config = resolveConfig();
const NONE: Health = { warned: [] };
const fine = {
  "completions/clipped_ratio": 0.1,
  frac_reward_zero_std: 0.5,
  "groups/all_right": 0.3,
  "groups/all_wrong": 0.3,
  "actions/parse_failure_rate": 0.1,
  "actions/empty_rate": 0,
  "actions/early_last_rate": 0,
  "actions/repeat_rate": 0.1,
  "episodes/describes_everything": 0.1,
  "episodes/repeats_to_the_end": 0.1,
  "episodes/answer_cut_off": 0.02,
  "episodes/answer_miscopied": 0.04,
  "sampling/surprise": 0.4,
  "rewards/reward_correctness/mean": 0.3,
  "episodes/unscorable": 0,
  "steps/skipped": 0,
};
type Metrics = Readonly<Record<string, number>>;

/** The warnings of steps with these metrics, one after another. */
function warningsOf(steps: readonly Metrics[], given: GRPOConfigInput = {}) {
  let health = NONE;
  return steps.flatMap((metrics, i) => {
    const { warnings, ...next } = warningsAt(i + 1, metrics, resolveConfig(given), health);
    health = next;
    return warnings;
  });
}

const times = (count: number, metrics: Metrics) => Array.from({ length: count }, () => metrics);

const SIGNS: readonly (readonly [code: string, change: Metrics, message: RegExp, patience: number])[] = [
  ["truncated", { "completions/clipped_ratio": 1 }, /100 % of the episodes were cut off at max_new_tokens 256/, 1],
  ["no_spread", { frac_reward_zero_std: 1 }, /did the episodes differ in reward: nothing was learned/, 1],
  ["no_spread", { "groups/kept": 0, "groups/asked": 24 }, /no group .*, of 24 that were asked: nothing was learned/, 1],
  [
    "uniform_groups",
    { "groups/all_right": 0.6, "groups/all_wrong": 0.25 },
    /60 % are all right and 25 % all wrong/,
    10,
  ],
  ["parse_failures", { "actions/parse_failure_rate": 0.6 }, /60 % of what the model wrote was no action/, 1],
  ["empty_turns", { "actions/empty_rate": 0.33 }, /33 % of the turns were empty/, 1],
  ["early_last", { "actions/early_last_rate": 0.16 }, /16 % of the actions answer with @last before any query/, 1],
  ["describes_everything", { "episodes/describes_everything": 0.7 }, /70 % of the episodes .* a budget of 10/, 3],
  ["repeats", { "actions/repeat_rate": 0.4 }, /40 % of the actions repeat an earlier one, and 10 % of the episodes/, 1],
  ["repeats", { "episodes/repeats_to_the_end": 0.5 }, /10 % of the actions .* 50 % of the episodes end that way/, 1],
  ["answers_cut_off", { "episodes/answer_cut_off": 0.2 }, /20 % of the episodes were cut off within their answer/, 3],
  ["answers_miscopied", { "episodes/answer_miscopied": 0.2 }, /20 % .* although a query returned the right values/, 3],
  ["entropy_collapsed", { "sampling/surprise": 0.001 }, /0.0010 nats per token while only 30 %/, 1],
  ["unscorable", { "episodes/unscorable": 2 }, /2 episodes could not be scored/, 1],
  ["nan", { "steps/skipped": 1 }, /the weights are as they were/, 1],
];

test.each(SIGNS)("%s is reported once while it lasts, and again when it returns", (code, change, message, patience) => {
  const bad = { ...fine, ...change };
  const told = warningsOf([fine, ...times(patience + 5, bad), ...times(QUIET_STEPS, fine), ...times(patience, bad)]);
  expect(told).toMatchObject([
    { step: 1 + patience, code },
    { step: 1 + patience + 5 + QUIET_STEPS + patience, code },
  ]);
  expect(told[0]!.message).toMatch(message);
});

test.each(SIGNS)("%s near its threshold is reported once", (_, change, __, patience) => {
  const bad = { ...fine, ...change };
  const flapping = Array.from({ length: 10 }, () => [bad, fine]).flat();
  expect(warningsOf([...times(patience, bad), ...flapping])).toHaveLength(1);
});

test("a warning with patience is not reported if its condition holds only now and then", () => {
  const uniform = { ...fine, "groups/all_right": 0.9, "groups/all_wrong": 0.1 };
  expect(warningsOf(Array.from({ length: 30 }, (_, i) => (i % 10 === 9 ? fine : uniform)))).toEqual([]);
});

test("a healthy training has no warnings", () => {
  expect(warningsOf([{}, ...times(30, fine)])).toEqual([]);
});

test("filtered sampling is reported before the first step", () => {
  const { warnings, ...health } = warningsAt(0, {}, resolveConfig({ top_p: 0.9, top_k: 20 }), NONE);
  expect(warnings).toMatchObject([{ step: 0, code: "filtered_sampling" }]);
  expect(warnings[0]!.message).toMatch(/^with top_p 0.9 and top_k 20, /);
  expect(warningsAt(1, fine, resolveConfig({ top_p: 0.9, top_k: 20 }), health).warnings).toEqual([]);
  expect(warningsAt(0, {}, resolveConfig({ min_p: 0.1 }), NONE).warnings[0]!.message).toMatch(/^with min_p 0.1, /);
  expect(warningsAt(0, {}, config, NONE).warnings).toEqual([]);
});

test("remedies name settings that exist and are not set already", () => {
  const rewards = Object.keys(config.reward).map((key) => `reward.${key}`);
  const known = new Set<string>([...CONFIG_KEYS, ...rewards, "episodes.jsonl"]);
  const guided = { error_hints: true, end_after_failures: 3, answer_last: true, describe_many: true };
  for (const given of [{ top_p: 0.9 }, { top_p: 0.9, ...guided }]) {
    const told = SIGNS.flatMap(([, change, , patience]) => warningsOf(times(patience, { ...fine, ...change }), given));
    for (const { remedy } of told) {
      const names = remedy.match(/\b[a-z]+(?:[._][a-z_]+)+\b/g) ?? [];
      expect(names.filter((name) => !known.has(name))).toEqual([]);
      if ("answer_last" in given) expect(remedy).not.toMatch(/turn on|set end_after_failures/);
    }
  }
});

test("all right and all wrong have different remedies", () => {
  const told = (metrics: Metrics) => warningsOf(times(10, { ...fine, ...metrics }))[0]!.remedy;
  expect(told({ "groups/all_right": 0.9, "groups/all_wrong": 0 })).toMatch(/harder/);
  expect(told({ "groups/all_right": 0, "groups/all_wrong": 0.9 })).toMatch(/easier/);
});

test("low entropy is no warning for a model that is nearly always right", () => {
  const sure = { ...fine, "sampling/surprise": 0.001, "rewards/reward_correctness/mean": 0.99 };
  expect(warningsOf([sure])).toEqual([]);
});

test("a step without the metric changes nothing", () => {
  const { "completions/clipped_ratio": _, ...others } = fine;
  const health = { warned: ["truncated"], streaks: { truncated: -3 } };
  expect(warningsAt(3, others, config, health)).toEqual({ warnings: [], ...health });
});

test("groups without spread are no warning where self-distillation learns from them", () => {
  const distilled = { ...fine, frac_reward_zero_std: 1, "distillation/groups": 0.5 };
  expect(warningsOf([distilled])).toEqual([]);
  expect(warningsOf([{ ...distilled, "distillation/groups": 0 }])).toMatchObject([{ code: "no_spread" }]);
});
