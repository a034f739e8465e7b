import { beforeAll, expect, test } from "vitest";
import { checkGold } from "../../data/index.ts";
import { loadSqlite } from "../../sql/index.ts";
import { practiceWorlds } from "./practice.ts";
import { practiceSet, STARTER_FORMS } from "./practice-set.ts";

beforeAll(async () => void (await loadSqlite()));

const data = (seed: number) => practiceSet({ seed, seen: 6, unseen: 4, difficulties: ["easy", "medium"] });

test("the same seed gives the same questions, another seed others", () => {
  expect(data(1).questions).toEqual(data(1).questions);
  const other = new Set(data(2).questions.map(({ question_id }) => question_id));
  expect(data(1).questions.some(({ question_id }) => other.has(question_id))).toBe(false);
});

test("training questions are only on the seen databases, and none is an evaluation question", () => {
  const { questions, databases } = data(3);
  const on = (split: string) => new Set(questions.filter((q) => q.split === split).map((q) => q.database_name));
  expect([on("train").size, on("eval").size, databases.names.length]).toEqual([6, 10, 10]);
  expect(questions.filter(({ split }) => split === "eval")).toHaveLength(10 * 4);
  expect(new Set(questions.map((q) => q.question_id)).size).toBe(questions.length);
  expect(new Set(questions.map((q) => `${q.database_name} ${q.gold_sql}`)).size).toBe(questions.length);
});

test("questions can be answered, and are of the difficulties and forms asked for", () => {
  const { questions, databases } = data(4);
  for (const question of questions) {
    expect(checkGold(question, databases.get(question.database_name)).ok).toBe(true);
  }
  expect(new Set(questions.map(({ difficulty }) => difficulty))).toEqual(new Set(["easy", "medium"]));
  databases.close();
  const counts = practiceSet({ seed: 4, seen: 3, unseen: 1, forms: ["count_category"] }).questions;
  expect(counts.length).toBeGreaterThan(4);
  for (const { gold_sql } of counts) expect(gold_sql).toMatch(/^SELECT COUNT\(\*\) FROM .* WHERE .* = '/);
});

test("forms that do not exist, or not for these difficulties, are refused", () => {
  const worlds = (options: object) => practiceWorlds({ seed: 1, ...options }).next();
  expect(() => worlds({ forms: ["higest"] })).toThrow(/did you mean highest/);
  expect(() => worlds({ forms: ["highest"], difficulties: ["hard"] })).toThrow(/no form has these difficulties/);
});

test("the starter's forms ask about one table, with one condition at most", () => {
  const { questions } = practiceSet({ seed: 7, seen: 12, unseen: 8, forms: STARTER_FORMS });
  for (const { gold_sql, tables_involved, difficulty } of questions) {
    expect(tables_involved).toHaveLength(1);
    expect(gold_sql).not.toMatch(/\b(?:JOIN|AND [^\d]|OR|HAVING)\b/);
    expect(["easy", "medium"]).toContain(difficulty);
  }
  expect(new Set(questions.map(({ answer_type }) => answer_type)).size).toBeGreaterThan(3);
});
