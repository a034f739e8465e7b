import { beforeAll, expect, test } from "vitest";
import { smallDataSet } from "../../../../test/helpers/small-data.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import { givenPrompt, readSql, schemaText, type Writer } from "../../../gym/players/index.ts";
import { judgeAttempts } from "./outcomes.ts";
import { TOO_LONG, writeAttempts } from "./schema-given.ts";

let data: DataSet;
beforeAll(async () => {
  data = await smallDataSet();
});

test.each([
  ["```sql\nSELECT 1;\n```\nThis is one.", "SELECT 1"],
  ["Here it is:\n```\nselect a\nfrom t\n```", "select a\nfrom t"],
  ["SELECT a FROM t WHERE b = ';' LIMIT 1; SELECT 2", "SELECT a FROM t WHERE b = ';' LIMIT 1"],
  ["The query is SELECT a FROM t", "SELECT a FROM t"],
  // Cut off before the closing fence.
  ["```sql\nWITH x AS (SELECT 1) SELECT * FROM x", "WITH x AS (SELECT 1) SELECT * FROM x"],
  ["<think>SELECT wrong</think>\nSELECT right_one FROM t", "SELECT right_one FROM t"],
  ["```sql\n-- all\nSELECT a FROM t\n```", "SELECT a FROM t"],
  ["With the given schema, the query is:\nSELECT a FROM b", "SELECT a FROM b"],
  ["With that in mind: SELECT a FROM b", "SELECT a FROM b"],
  ["Run this:\nwith recursive n(i) as (SELECT 1) SELECT i FROM n", "with recursive n(i) as (SELECT 1) SELECT i FROM n"],
  ['WITH "a b" AS NOT MATERIALIZED (SELECT 1)\n\nSELECT 2', 'WITH "a b" AS NOT MATERIALIZED (SELECT 1)\n\nSELECT 2'],
  ["```\nshop, park\n```\nso\n```sql\nSELECT a FROM b\n```", "SELECT a FROM b"],
  ["``` ```\nSELECT a FROM b", "SELECT a FROM b"],
  ["(SELECT 1)", "SELECT 1"],
  ["```sql\n(\n  SELECT max(a) FROM b\n);\n```", "SELECT max(a) FROM b"],
  ["The query (SELECT max(a) FROM b) finds it.", "SELECT max(a) FROM b"],
  ["The query: SELECT a FROM t WHERE a IN\n(SELECT b FROM u)", "SELECT a FROM t WHERE a IN\n(SELECT b FROM u)"],
  ["It is SELECT a FROM t WHERE a IN (\nSELECT b FROM u)", "SELECT a FROM t WHERE a IN (\nSELECT b FROM u)"],
  // Invalid in SQLite, but kept whole, so that it fails instead of passing as half a query.
  ["(SELECT 1) UNION (SELECT 2)", "(SELECT 1) UNION (SELECT 2)"],
  ["SELECT a FROM b\n\nThis query is about b; it's short.", "SELECT a FROM b"],
  ["SELECT count(*) FROM b\n\n**Explanation**", "SELECT count(*) FROM b"],
  ["SELECT a FROM b ORDER BY a DESC\n\nFirst, we sort.", "SELECT a FROM b ORDER BY a DESC"],
  ["SELECT a,\n\nb FROM t\n\nWHERE a = 'x\n\ny z'", "SELECT a,\n\nb FROM t\n\nWHERE a = 'x\n\ny z'"],
  ["SELECT a\nFROM t\n\nx JOIN u ON x.a = u.a", "SELECT a\nFROM t\n\nx JOIN u ON x.a = u.a"],
  ["I do not know, with regrets.", null],
  ["", null],
])("reads the query in %j", (text, sql) => {
  expect(readSql(text)).toBe(sql);
});

test("the prompt has every table with types and keys, and the question", () => {
  const shop = data.databases.get("shop");
  expect(schemaText(shop)).toContain(`CREATE TABLE product (
  id INTEGER PRIMARY KEY,
  name TEXT,
  price REAL,
  colour TEXT,
  "year made" INTEGER,
  maker_id INTEGER,
  FOREIGN KEY (maker_id) REFERENCES maker(id)
);`);
  expect(schemaText(shop, 1)).toContain("/* first rows:\n1 | Acme | Peru\n*/");
  expect(givenPrompt(shop, "How many?", 0).user).toMatch(/### Question\nHow many\?\n/);
});

const options = { seed: 1, tries: 1, concurrency: 3, sample_rows: 0 };

test("the gold written out is right by both rules; a schema above the context is named", async () => {
  const eval_ = data.questions.filter(({ split }) => split === "eval");
  const databases = [...new Set(eval_.map(({ database_name }) => database_name))];
  const writer: Writer = {
    name: "gold",
    write: async ({ question_id }) => ({
      text: `\`\`\`sql\n${eval_.find((question) => question.question_id === question_id)!.gold_sql};\n\`\`\``,
      ...{ tokens: 3, prompt_tokens: 40 },
    }),
  };
  const attempts = await writeAttempts(data, writer, { ...options, databases });
  const outcomes = await judgeAttempts(data, attempts!);
  expect(outcomes).toHaveLength(eval_.length);
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      spider: true,
      bird: true,
      answer: null,
      reason: null,
      tokens: 3,
      prompt_tokens: 40,
    });

  const small: Writer = { name: "small", write: async () => ({ text: null, tokens: 0, prompt_tokens: 9000 }) };
  const none = await judgeAttempts(data, (await writeAttempts(data, small, { ...options, databases }))!);
  expect(none.every(({ reason, spider }) => reason === TOO_LONG && !spider)).toBe(true);

  const broken: Writer = { name: "broken", write: () => Promise.reject(new Error("endpoint down")) };
  const errors = await judgeAttempts(data, (await writeAttempts(data, broken, { ...options, databases }))!);
  expect(errors[0]).toMatchObject({ error: "endpoint down", reason: "broken", spider: false });
});

test("an interrupted run has no attempts", async () => {
  const abort = new AbortController();
  abort.abort();
  const writer: Writer = { name: "w", write: async () => ({ text: "SELECT 1", tokens: 1, prompt_tokens: 1 }) };
  const databases = data.databases.names;
  expect(await writeAttempts(data, writer, { ...options, databases, signal: abort.signal })).toBeUndefined();
});
