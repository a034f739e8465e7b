import { beforeAll, expect, test } from "vitest";
import { smallDataSet } from "../../../../test/helpers/small-data.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import type { StepRecord } from "../../../gym/evaluation/index.ts";
import { lastQuery } from "../../../gym/evaluation/index.ts";
import { limitStatementTime } from "../../../gym/sql/index.ts";
import type { Attempt } from "./attempts.ts";
import { judgeAttempts } from "./outcomes.ts";
import { resultOf } from "./result.ts";
import { scoresOf } from "./scores.ts";

let data: DataSet;
beforeAll(async () => {
  data = await smallDataSet();
});

const attempt = (sql: string | null, answer: boolean | null = null): Attempt => ({
  ...{ sql, answer, tokens: 10, prompt_tokens: 100, error: null },
});

const step = (action_type: string, argument: string, error_class: string | null = null) =>
  ({ action: { action_type, argument }, observation: { error_class } }) as unknown as StepRecord;

test("the query that counts is the last one that ran", () => {
  const looked = step("DESCRIBE", "t");
  const [first, second] = [step("QUERY", "SELECT 1"), step("QUERY", "SELECT 2")];
  const failed = step("QUERY", "SELECT x", "unknown_column");
  expect(lastQuery({ steps: [looked, first, second, failed] })).toBe("SELECT 2");
  expect(lastQuery({ steps: [first, second, step("QUERY", "SELECT 1", "repeat"), step("ANSWER", "1")] })).toBe(
    "SELECT 1",
  );
  expect(lastQuery({ steps: [looked, failed] })).toBeNull();
});

test("several attempts are decided by majority vote, and pass@k needs one right", async () => {
  const question = data.questions.find(({ gold_sql }) => gold_sql === "SELECT count(*) FROM animal")!;
  const right = [attempt(question.gold_sql, true), attempt("SELECT count(id) FROM animal", false)];
  const wrong = attempt("SELECT 77", false);
  const judged = async (attempts: readonly Attempt[]) =>
    (await judgeAttempts(data, new Map([[question.question_id, attempts]]), { twins: 1 }))[0]!;

  const won = await judged([wrong, ...right, attempt(null)]);
  expect(won).toMatchObject({ votes: 2, spider: true, bird: true, twins: true, answer: true, reason: null });
  expect(won).toMatchObject({ tokens: 40, prompt_tokens: 400, any: { spider: true } });

  const lost = await judged([wrong, right[0]!, wrong]);
  expect(lost).toMatchObject({ votes: 2, spider: false, answer: false, reason: "another result" });
  expect(lost.any).toEqual({ answer: true, spider: true, bird: true, twins: true });

  const none = await judged([attempt(null, false)]);
  expect(none).toMatchObject({ spider: false, twins: false, reason: "no query" });
  expect(none.votes).toBeUndefined();
  expect((await judged([attempt("SELECT nobody FROM animal")])).reason).toBe("unknown_column");
  const lucky = await judged([attempt("SELECT 4")]);
  expect(lucky).toMatchObject({ spider: true, twins: false });
});

test("scores are counted by difficulty, joins and database, with intervals over databases", async () => {
  const asked = data.questions.filter(({ split }) => split === "eval");
  const attempts = asked.map(({ question_id, gold_sql, database_name }) => {
    const sql = database_name === "park" ? "SELECT 0" : gold_sql;
    return [question_id, [attempt(sql, true)]] as const;
  });
  const scores = scoresOf(await judgeAttempts(data, new Map(attempts)));
  expect(scores.all).toMatchObject({ questions: asked.length, twins: null, answer: { rate: 1 } });
  expect(scores.all.spider!.right).toBe(asked.filter(({ database_name }) => database_name !== "park").length);
  expect(scores.by_database.park!.spider!.rate).toBe(0);
  expect(scores.by_database.store!.spider!.rate).toBe(1);
  expect(Object.keys(scores.by_joins)).toEqual(["0", "1"]);
  const [low, high] = scores.all.spider!.ci;
  expect(high - low).toBeGreaterThan(0.5); // the databases differ as much as possible
  expect(scores.any).toBeNull();
});

test("a query that hits the time limit is distinguished from wrong ones", async () => {
  const question = data.questions.find(({ gold_sql }) => gold_sql === "SELECT count(*) FROM animal")!;
  const long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT count(*) FROM n";
  const judged = async (...attempts: readonly Attempt[]) =>
    (await judgeAttempts(data, new Map([[question.question_id, attempts]])))[0]!;
  // Every statement that checks the clock (100 instructions or more) exceeds the time limit.
  limitStatementTime(() => -1);
  try {
    const stopped = await judged(attempt(long));
    expect(stopped).toMatchObject({ spider: false, bird: false, reason: "clock", stopped: true });
    const right = attempt(question.gold_sql);
    expect(await judged(right, right, attempt(long))).toMatchObject({ spider: true, reason: null, stopped: true });
    expect((await judged({ ...right, stopped: true })).stopped).toBe(true); // stopped in its episode
    expect((await judged(right)).stopped).toBeUndefined();
    const facts = { sqlenv: "0", command: "", protocol: { twins: null }, data: {}, model: {}, seed: 1, seconds: 1 };
    expect(resultOf([stopped], facts as unknown as Parameters<typeof resultOf>[1]).stopped).toBe(1);
  } finally {
    limitStatementTime();
  }
  expect((await judged(attempt(long))).reason).toBe("another result");
});
