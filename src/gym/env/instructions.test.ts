// Tests the instruction limit: `max_instructions` lowers it, but never too far for the gold query.
import { expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import type { DataSet, QuestionRecord } from "../data/index.ts";
import { GOLD_MARGIN, SQLEnvironment } from "./environment.ts";

/** A query that takes about 20 instructions per row. */
const counted = (rows: number) =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows}) SELECT count(*) FROM n`;

/** The small data set plus a question whose gold query counts `rows` rows. */
async function withGold(rows: number): Promise<DataSet> {
  const data = await smallDataSet();
  const question: QuestionRecord = { ...data.questions[0]!, question_id: "counted", gold_sql: counted(rows) };
  return { ...data, questions: [...data.questions, question] };
}

async function errorOf(rows: number, gold: number, max_instructions?: number): Promise<string | null> {
  const env = new SQLEnvironment(await withGold(gold), { ...(max_instructions !== undefined && { max_instructions }) });
  env.reset({ question_id: "counted" });
  return env.step({ action_type: "QUERY", argument: counted(rows) }).error_class;
}

test("a query that takes more than max_instructions is stopped, like one beyond the global limit", async () => {
  expect(await errorOf(100_000, 10)).toBeNull();
  expect(await errorOf(100_000, 10, 100_000)).toBe("too_long");
  expect(await errorOf(1_000, 10, 100_000)).toBeNull();
});

test("a query may take ten times the instructions of the gold query", async () => {
  expect(GOLD_MARGIN).toBe(10);
  expect(await errorOf(9_000, 1_000, 1)).toBeNull();
  expect(await errorOf(12_000, 1_000, 1)).toBe("too_long");
});

test("an episode with a stopped query is scored, and the next query has the full budget", async () => {
  const env = new SQLEnvironment(await withGold(10), { max_instructions: 50_000 });
  env.reset({ question_id: "counted" });
  for (const [rows, error] of [
    [100_000, "too_long"],
    [2_000, null],
    [2_001, null],
  ] as const)
    expect(env.step({ action_type: "QUERY", argument: counted(rows) }).error_class).toBe(error);
  env.step({ action_type: "ANSWER", argument: "10" });
  expect(env.outcome).toMatchObject({ correctness: 1, done_reason: "answered" });
});

test("a statement that was too long fails at once when repeated, unless it may take more or reads less", async () => {
  const { databases } = await smallDataSet();
  const database = databases.get("shop");
  const sql = counted(50_000);
  const run = (options: Parameters<typeof database.run>[1]) => {
    const result = database.run(sql, options);
    return result.ok ? "ok" : result.error.error_class;
  };
  expect(run({ maxInstructions: 200_000 })).toBe("too_long");
  expect(run({ maxInstructions: 200_000 })).toBe("too_long");
  expect(run({ maxInstructions: 100_000 })).toBe("too_long");
  expect(run({ maxInstructions: 2_000_000 })).toBe("ok");
  expect(run({})).toBe("ok");
  const rows = sql.replace("count(*)", "i");
  expect(database.run(rows, { maxInstructions: 100 })).toMatchObject({ ok: false });
  expect(database.run(rows, { maxInstructions: 100, maxRows: 1 })).toMatchObject({ ok: true });
});
