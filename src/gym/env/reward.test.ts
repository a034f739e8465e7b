// Properties of the reward: padding never pays, a right answer always beats no answer, exploration pays.
import fc from "fast-check";
import { expect, test } from "vitest";
import { shopDataSet } from "../../../test/helpers/fixtures.ts";
import { normalizeAction, type SQLAction } from "./action.ts";
import { SQLEnvironment } from "./environment.ts";
import { RewardMeter, rewardSchema, sumOf } from "./reward.ts";
import { DEFAULT_RULES, type EnvironmentRules, GUIDED_RULES } from "./rules.ts";

const data = shopDataSet();
const BUDGET = 10;

/** Plays the actions to the end. Returns the episode's return and GRPO's reward with the presets' weights. */
function play(question_id: string, actions: readonly SQLAction[], rules: EnvironmentRules = DEFAULT_RULES) {
  const env = new SQLEnvironment(data, { step_budget: BUDGET, ...rules });
  env.reset({ question_id });
  let total = 0;
  for (const action of actions) total += env.step(action).reward ?? 0;
  const { correctness, progress, operational } = env.outcome;
  return { total, correctness, weighted: correctness! + 0.15 * progress! + operational!, operational: operational! };
}

const look: fc.Arbitrary<SQLAction> = fc.oneof(
  fc
    .constantFrom("customers", "orders", "group", "oslo", "nope")
    .map((argument) => ({ action_type: "DESCRIBE" as const, argument })),
  fc
    .constantFrom("customers", "orders", "group", "nope")
    .map((argument) => ({ action_type: "SAMPLE" as const, argument })),
  fc
    .constantFrom(
      ...[
        "SELECT count(*) FROM customers",
        "SELECT * FROM customers",
        "SELECT name FROM customers",
        "SELECT 1",
        "SELECT 2",
        "broken",
      ],
      ...[
        "SELECT  1",
        "SELECT name FROM customers LIMIT 1",
        "SELECT name FROM customers LIMIT 2",
        "DELETE FROM customers",
        "",
      ],
      ...data.questions.map((question) => question.gold_sql),
    )
    .map((argument) => ({ action_type: "QUERY" as const, argument })),
);
const question = fc.constantFrom(...data.questions);
const looks = (maxLength: number) => fc.array(look, { maxLength });

test("padding an episode that answers right never raises its return", () => {
  fc.assert(
    fc.property(question, looks(4), look, fc.nat(4), ({ question_id, gold_answer }, before, extra, at) => {
      const answer: SQLAction = { action_type: "ANSWER", argument: gold_answer };
      const plain = play(question_id, [...before, answer]);
      const padded = play(question_id, [...before.toSpliced(at, 0, extra), answer]);
      expect(plain.correctness).toBe(1);
      expect(padded.total).toBeLessThan(plain.total);
      expect(padded.weighted).toBeLessThanOrEqual(plain.weighted + 1e-9);
    }),
    { numRuns: 1000, seed: 5 },
  );
});

test("never answering never beats answering right", () => {
  fc.assert(
    fc.property(question, looks(BUDGET), looks(BUDGET - 1), ({ question_id, gold_answer }, silent, before) => {
      const right = play(question_id, [...before, { action_type: "ANSWER", argument: gold_answer }]);
      const never = play(question_id, silent);
      expect(never.total).toBeLessThan(right.total);
      expect(never.weighted).toBeLessThan(right.weighted);
    }),
    { numRuns: 1000, seed: 6 },
  );
});

test("exploration pays: one more successful look beats guessing at once", () => {
  for (const { question_id } of data.questions) {
    const guess: SQLAction = { action_type: "ANSWER", argument: "surely not this" };
    const looked: SQLAction[] = [
      { action_type: "DESCRIBE", argument: "customers" },
      { action_type: "SAMPLE", argument: "orders" },
    ];
    const totals = [[guess], [looked[0]!, guess], [...looked, guess]].map(
      (actions) => play(question_id, actions).total,
    );
    expect(totals[0]!).toBeLessThan(totals[1]!);
    expect(totals[1]!).toBeLessThan(totals[2]!);
  }
});

/** Useless turns: empty text, a missing argument, an unknown action, and one failing query repeated. */
const idle: fc.Arbitrary<SQLAction> = fc.constantFrom<SQLAction>(
  { action_type: "QUERY", argument: "" },
  { action_type: "ANSWER", argument: "  " },
  { action_type: "EXPLODE" as "QUERY", argument: "x" },
  { action_type: "QUERY", argument: "SELECT nope FROM customers" },
);
const wrong: SQLAction = { action_type: "ANSWER", argument: "surely not this" };

test("idling until the budget ends never beats answering wrong", () => {
  fc.assert(
    fc.property(question, looks(4), idle, ({ question_id }, before, turn) => {
      const answered = play(question_id, [...before, wrong]);
      const idled = play(question_id, [...before, ...Array.from({ length: BUDGET - before.length }, () => turn)]);
      expect(answered.correctness).toBe(0);
      expect(idled.total).toBeLessThan(answered.total);
      expect(idled.weighted).toBeLessThan(answered.weighted);
    }),
    { numRuns: 500, seed: 8 },
  );
});

test("ending early by failures never beats answering wrong, and @last never beats the same answer written out", () => {
  const rules = fc.constantFrom(...[2, 3, 4].map((end_after_failures) => ({ ...GUIDED_RULES, end_after_failures })));
  const different = fc.uniqueArray(look, { maxLength: 4, selector: normalizeAction });
  fc.assert(
    fc.property(question, different, idle, rules, ({ question_id, gold_sql, gold_answer }, before, turn, rules) => {
      const answered = play(question_id, [...before, wrong], rules);
      const stuck = play(question_id, [...before, ...Array(BUDGET - before.length).fill(turn)], rules);
      expect(stuck.total).toBeLessThan(answered.total);
      expect(stuck.weighted).toBeLessThan(answered.weighted);
      const looked: SQLAction[] = [...before, { action_type: "QUERY", argument: gold_sql }];
      const byText = play(question_id, [...looked, { action_type: "ANSWER", argument: gold_answer }], rules);
      const byLast = play(question_id, [...looked, { action_type: "ANSWER", argument: "@last" }], rules);
      expect(byLast).toEqual(byText);
    }),
    { numRuns: 300, seed: 9 },
  );
});

test("each empty turn costs as much as a repeat, also in training, and is not counted as a repeat", () => {
  const empty: SQLAction = { action_type: "QUERY", argument: "" };
  const { question_id } = data.questions[0]!;
  const once = play(question_id, [empty, wrong]);
  const thrice = play(question_id, [empty, empty, empty, wrong]);
  expect(once.operational).toBeCloseTo(-0.03, 9);
  expect(thrice.operational).toBeCloseTo(-0.09, 9);
});

test("reward farming is bounded: any number of different looks earns at most the cap", () => {
  const farm = Array.from(
    { length: BUDGET },
    (_, i): SQLAction => ({ action_type: "QUERY", argument: `SELECT ${i + 1000}` }),
  );
  const { operational } = play(data.questions[1]!.question_id, farm);
  expect(operational).toBeCloseTo(0.1, 9);
});

test("each part has the documented amount", () => {
  const meter = new RewardMeter(rewardSchema.parse({}));
  const first = meter.book({ worked: true, isNew: true, isRepeat: false });
  expect(first).toEqual({ exec_ok: 0.02, new_info: 0.01, repeat: 0, step_cost: -0.005, progress: 0, correctness: 0 });
  expect(sumOf(first)).toBe(0.025);
  expect(meter.book({ worked: true, isNew: false, isRepeat: true })).toMatchObject({
    exec_ok: 0,
    new_info: 0,
    repeat: -0.03,
  });
  expect(meter.book({ worked: true, isNew: false, isRepeat: false, phi: 0.5 })).toMatchObject({ progress: 0.075 });
  expect(meter.book({ worked: true, isNew: false, isRepeat: false, phi: 0.25 })).toMatchObject({ progress: 0 });
  expect(meter.book({ worked: false, isNew: false, isRepeat: false, correct: true })).toEqual({
    exec_ok: 0.03, // what is left of 0.10
    new_info: 0,
    repeat: 0,
    step_cost: -0.005,
    progress: 0.075, // what is left of 0.15
    correctness: 1,
  });
  expect(meter.phi).toBe(1);
});

test("refuses amounts that turn costs into gains", () => {
  expect(rewardSchema.safeParse({ step_cost: 0.1 }).success).toBe(false);
  expect(rewardSchema.safeParse({ repeat: 1 }).success).toBe(false);
  expect(rewardSchema.safeParse({ exec_okay: 1 }).success).toBe(false);
});
