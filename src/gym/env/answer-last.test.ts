// ANSWER: @last answers with the last result, which is verified cell by cell.
import { expect, test } from "vitest";
import { shopDataSet } from "../../../test/helpers/fixtures.ts";
import { createDatabase, DatabasePool } from "../sql/index.ts";
import { isLastReference, runGold, type SQLAction, SQLEnvironment, verifyResult } from "./index.ts";

const shop = shopDataSet();
const act = (action_type: SQLAction["action_type"], argument: string): SQLAction => ({ action_type, argument });
const started = (options = {}, question_id = "shop_eval_000") => {
  const env = new SQLEnvironment(shop, { answer_last: true, ...options });
  env.reset({ question_id });
  return env;
};

test.each([
  "@last",
  "@LAST",
  " @last. ",
  "`@last`",
  '"@last"',
  "**@last**",
  "@last result",
  "the last result",
  "last result",
  "@last\nbecause",
  "The answer is @last.",
  "Answer: @last",
])("%j refers to the last result", (text) => expect(isLastReference(text)).toBe(true));

test.each(["last", "@lasting", "5 @last", "@last 5", "@last, @last", "last results of 2020", "@", "", "@first"])(
  "%j is an answer in words",
  (text) => expect(isLastReference(text)).toBe(false),
);

test("the last query that worked is the answer", () => {
  const env = started();
  env.step(act("QUERY", "SELECT count(*) FROM customers"));
  env.step(act("QUERY", "SELECT nope FROM customers"));
  env.step(act("SAMPLE", "orders"));
  env.step(act("DESCRIBE", "orders"));
  expect(env.step(act("ANSWER", "@last"))).toMatchObject({
    done: true,
    error: null,
    reward_breakdown: { correctness: 1 },
  });
  expect(env.outcome).toMatchObject({ correctness: 1, progress: 1, done_reason: "answered" });
});

test("a later query replaces it, and repeating the earlier one restores it", () => {
  const wrong = started();
  wrong.step(act("QUERY", "SELECT count(*) FROM customers"));
  wrong.step(act("QUERY", "SELECT count(*) FROM orders WHERE id < 3"));
  expect(wrong.step(act("ANSWER", "@last"))).toMatchObject({ done: true, reward_breakdown: { correctness: 0 } });
  const again = started();
  again.step(act("QUERY", "SELECT count(*) FROM customers"));
  again.step(act("QUERY", "SELECT count(*) FROM orders WHERE id < 3"));
  again.step(act("QUERY", "SELECT count(*) FROM customers"));
  expect(again.step(act("ANSWER", "@last"))).toMatchObject({ done: true, reward_breakdown: { correctness: 1 } });
});

test("before any query has worked it costs as much as an empty turn, and is no answer", () => {
  const env = started();
  env.step(act("SAMPLE", "customers"));
  env.step(act("QUERY", "SELECT nope"));
  for (let i = 0; i < 2; i++) {
    expect(env.step(act("ANSWER", "@last"))).toMatchObject({
      done: false,
      error: "there is no last result: no QUERY has worked yet",
      error_class: "bad_action",
      reward: -0.035,
    });
  }
  env.step(act("QUERY", "SELECT count(*) FROM customers"));
  expect(env.step(act("ANSWER", "@last"))).toMatchObject({ done: true, reward_breakdown: { correctness: 1 } });
  env.reset({ question_id: "shop_eval_000" });
  expect(env.step(act("ANSWER", "@last")), "of another episode").toMatchObject({ done: false });
});

test("without the rule it is text, and a wrong answer", () => {
  const env = started({ answer_last: false });
  env.step(act("QUERY", "SELECT count(*) FROM customers"));
  expect(env.step(act("ANSWER", "@last"))).toMatchObject({ done: true, reward_breakdown: { correctness: 0 } });
});

test("it earns the same reward as the same answer written out", () => {
  for (const { question_id, gold_sql, gold_answer } of shop.questions) {
    const [byText, byReference] = [gold_answer, "@last"].map((answer) => {
      const env = started({}, question_id);
      env.step(act("DESCRIBE", "orders"));
      env.step(act("QUERY", gold_sql));
      const { reward, reward_breakdown } = env.step(act("ANSWER", answer));
      return { reward, reward_breakdown, outcome: env.outcome };
    });
    expect(byReference).toEqual(byText);
    expect(byReference!.outcome.correctness).toBe(1);
  }
});

test("a truncated result is run again in full", () => {
  const rows = Array.from({ length: 3_000 }, (_, i) => [i, `row ${i}`]);
  const bytes = createDatabase([{ name: "t", ddl: "CREATE TABLE t (n INTEGER, s TEXT)", rows }]);
  const databases = new DatabasePool({ names: ["d"], read: () => bytes });
  const question = { ...shop.questions[0]!, question_id: "long", database_name: "d", gold_sql: "SELECT n, s FROM t" };
  const env = new SQLEnvironment({ name: "d", questions: [question], databases, rejected: [] }, { answer_last: true });
  const verdictOf = (sql: string) => {
    env.reset();
    expect(env.step(act("QUERY", sql)).error).toBeNull();
    return env.step(act("ANSWER", "@last")).reward_breakdown.correctness;
  };
  expect(verdictOf("SELECT n, s FROM t")).toBe(1);
  expect(verdictOf("SELECT n, s FROM t ORDER BY n DESC")).toBe(1); // the gold query does not order its rows
  expect(verdictOf("SELECT n, s FROM t WHERE n > 0")).toBe(0);
  expect(verdictOf("SELECT n, s FROM t UNION ALL SELECT 1, 'row 1'")).toBe(0);
  expect(verdictOf("SELECT n, s || CASE n WHEN 2999 THEN 'x' ELSE '' END FROM t")).toBe(0);
  databases.close();
});

test("cells are compared as values, not parsed from text", () => {
  const gold = (sql: string) => runGold({ question_id: "q", gold_sql: sql }, shop.databases.get("shop"));
  const result = (sql: string) => {
    const run = shop.databases.get("shop").run(sql);
    if (!run.ok) throw new Error(run.error.message);
    return run.table;
  };
  const is = (sql: string, goldSql: string) => verifyResult(result(sql), gold(goldSql));
  expect(is("SELECT 'NULL'", "SELECT 'null'")).toBe(true);
  expect(is("SELECT 'null', 1", "SELECT NULL, 1")).toBe(false);
  expect(is("SELECT '', 1", "SELECT NULL, 1")).toBe(false);
  expect(is("SELECT NULL, 1", "SELECT NULL, 1")).toBe(true);
  expect(is("SELECT 'a, b'", "SELECT 'a' UNION ALL SELECT 'b'")).toBe(false);
  expect(is("SELECT 'b' UNION ALL SELECT 'a'", "SELECT 'a' UNION ALL SELECT 'b'")).toBe(true);
  expect(is("SELECT 'a' UNION ALL SELECT 'b'", "SELECT 'a', 'b'")).toBe(false); // a column is not a row
  expect(is("SELECT 2, 1", "SELECT 1, 2")).toBe(false); // columns must be in the gold's order
  expect(is("SELECT '3'", "SELECT 3")).toBe(true); // 3, 3.0 and "3" are numbers
  expect(is("SELECT 3.0", "SELECT 3")).toBe(true);
  expect(is("SELECT round(avg(age), 2) FROM customers", "SELECT avg(age) + 0.001 FROM customers")).toBe(true);
  expect(is("SELECT 9007199254740993", "SELECT 9007199254740993")).toBe(true);
  expect(is("SELECT 9007199254740993", "SELECT 9007199254740992")).toBe(false);
  expect(is("SELECT name FROM customers ORDER BY age", "SELECT name FROM customers ORDER BY age DESC")).toBe(false);
  expect(is("SELECT name FROM customers WHERE id = 4", "SELECT name FROM customers ORDER BY age DESC LIMIT 1")).toBe(
    true,
  ); // a tie
});
