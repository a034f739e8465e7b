import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { petsDatabase } from "../../../test/helpers/data-files.ts";
import { DatabasePool } from "../sql/index.ts";
import { checkDataSet } from "./check.ts";
import type { DataSet } from "./dataset.ts";
import { assemble } from "./formats/build-questions.ts";

async function pets(): Promise<DataSet> {
  const bytes = await petsDatabase();
  const databases = new DatabasePool({ names: ["a", "b"], read: () => bytes });
  const ask = (database_name: string, gold_sql: string, split: "train" | "eval") => ({
    question_text: "?",
    database_name,
    gold_sql,
    split,
  });
  const drafts = [
    ask("a", "SELECT count(*) FROM pet", "train"),
    ask("a", "SELECT name FROM pet", "eval"),
    ask("b", "SELECT city, count(*) FROM owner GROUP BY city", "eval"),
    ask("b", "SELECT name FROM vet", "eval"),
  ];
  return assemble("pets", drafts, databases, { layout: "spider" });
}

test("counts what is usable, seen and unseen, and what was rejected", async () => {
  const check = await checkDataSet(await pets());
  expect(check).toMatchObject({
    databases: 2,
    train: 1,
    eval: 2,
    eval_seen: 1,
    eval_unseen: 1,
    train_databases: 1,
    eval_databases: 2,
    questions_before: 4,
    questions_after: 3,
    failed: [],
    by_reason: { train: {}, eval: { gold_empty: 1 } },
    by_difficulty: { easy: 2, medium: 1, hard: 0 },
    by_answer_type: { integer: 1, float: 0, string: 0, list: 1, table: 1 },
  });
});

test("golds longer than an answer are left out, those of many rows are counted, and the evaluation set has a hash", async () => {
  const dataset = await pets();
  const numbers = (count: number) =>
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ${count}) SELECT i FROM n`;
  const ask = (gold_sql: string) => ({ question_text: "?", database_name: "a", gold_sql, split: "eval" as const });
  const golds = ["SELECT id FROM pet", numbers(20), numbers(21), numbers(4_000)].map(ask);
  const long = await assemble("long", golds, dataset.databases, { layout: "spider" });
  expect(long.questions).toHaveLength(3);
  expect(long.rejected).toMatchObject([{ question_id: "a_eval_003", reason: "gold_too_long" }]);
  expect(long.rejected[0]!.detail).toMatch(/^the answer has 22891 characters, and 20000 can be given$/);
  expect(await checkDataSet(long)).toMatchObject({
    long_golds: { train: 0, eval: 1 },
    by_reason: { eval: { gold_too_long: 1 } },
    failed: [],
    eval_ids_sha256: createHash("sha256").update("a_eval_000\na_eval_001\na_eval_002").digest("hex"),
  });
});

test("fails on rejected questions of the native layout, stale golds, duplicate ids, unknown tables and damaged files", async () => {
  const dataset = await pets();
  const failures = async (changed: Partial<DataSet>) =>
    (await checkDataSet({ ...dataset, ...changed })).failed.map(({ id, reason }) => [id, reason]);
  expect(await failures({ layout: "questions" })).toEqual([["b_eval_001", "gold_empty"]]);
  const [first, ...rest] = dataset.questions;
  expect(await failures({ questions: [{ ...first!, gold_answer: "4" }, ...rest] })).toEqual([
    ["a_train_000", "gold_mismatch"],
  ]);
  expect(await failures({ questions: [first!, first!] })).toEqual([["a_train_000", "duplicate_id"]]);
  expect(await failures({ questions: [{ ...first!, tables_involved: ["dragon"] }] })).toEqual([
    ["a_train_000", "malformed"],
  ]);
  expect(await failures({ questions: [{ ...first!, difficulty: "x" as "easy" }] })).toEqual([
    ["a_train_000", "malformed"],
  ]);
  const torn = (await petsDatabase()).slice();
  torn.fill(0xff, 4096, 4096 + 12); // the header of the first table's page
  const databases = new DatabasePool({ names: ["a", "b"], read: (name) => (name === "a" ? torn : new Uint8Array(7)) });
  const damaged = await failures({ databases });
  expect(new Set(damaged.map(([id]) => id))).toEqual(new Set(["a", "b"]));
  expect(damaged.every(([, reason]) => reason === "database_bad")).toBe(true);
});
