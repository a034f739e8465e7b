// The rule end_after_failures: an episode that repeats the same failure ends early.
import { expect, test } from "vitest";
import { shopDataSet } from "../../../test/helpers/fixtures.ts";
import { type SQLAction, SQLEnvironment } from "./index.ts";

const data = shopDataSet();
const act = (action_type: SQLAction["action_type"], argument: string): SQLAction => ({ action_type, argument });
const fails = act("QUERY", "SELECT nope FROM customers");

function play(actions: readonly SQLAction[], options = {}) {
  const env = new SQLEnvironment(data, { end_after_failures: 3, ...options });
  env.reset({ question_id: "shop_eval_000" });
  const seen = actions.map((action) => env.step(action));
  return { env, seen, done: seen.map(({ done }) => done) };
}

test("the third failure of the same action ends the episode, in any spelling and not only in a row", () => {
  const { env, done } = play([
    fails,
    act("DESCRIBE", "customers"),
    act("QUERY", "select  nope\nfrom customers;"),
    act("QUERY", "SELECT other FROM customers"),
    act("QUERY", "SELECT nope FROM customers -- again"),
  ]);
  expect(done).toEqual([false, false, false, false, true]);
  expect(env.outcome).toMatchObject({ correctness: 0, done_reason: "stuck" });
  expect(env.step(act("ANSWER", "5"))).toMatchObject({ error_class: "episode_done", reward: 0, step_count: 5 });
  expect(env.outcome).toMatchObject({ correctness: 0, done_reason: "stuck" });
});

test.each([
  ["a table that is not there", act("DESCRIBE", "customers | orders"), 3],
  ["a turn without an argument", act("QUERY", " "), 3],
  ["no action at all", { action_type: "?", argument: "x" } as never, 3],
  ["@last before any query", act("ANSWER", "@last"), 3],
  ["one that worked, done again three times", act("DESCRIBE", "orders"), 4],
])("%s counts", (_, action, ends) => {
  const { env, done } = play(Array(ends).fill(action), { answer_last: true });
  expect(done.indexOf(true)).toBe(ends - 1);
  expect(env.outcome.done_reason).toBe("stuck");
});

test("episodes with different or fewer failures continue to the budget or the answer", () => {
  const different = Array.from({ length: 10 }, (_, i) => act("QUERY", `SELECT nope${i} FROM customers`));
  expect(play(different).env.outcome.done_reason).toBe("budget");
  expect(play([fails, fails, act("ANSWER", "5")]).env.outcome).toMatchObject({
    correctness: 1,
    done_reason: "answered",
  });
  expect(play(Array(10).fill(fails), { end_after_failures: null }).env.outcome.done_reason).toBe("budget");
});

test("step rewards up to the end are the same with and without the rule", () => {
  const actions = [act("DESCRIBE", "orders"), fails, fails, fails];
  const [ended, plain] = [3, null].map((end_after_failures) => play(actions, { end_after_failures }).seen);
  expect(ended!.map(({ reward }) => reward)).toEqual(plain!.map(({ reward }) => reward));
  expect(ended!.at(-1)).toEqual({ ...plain!.at(-1), done: true });
});
