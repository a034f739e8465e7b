import { beforeAll, expect, test } from "vitest";
import { checkGold } from "../questions/index.ts";
import { loadSqlite } from "../sql/index.ts";
import { practiceWorlds } from "./practice.ts";
import { isHeldOut } from "./practice-names.ts";
import { simpleWorld } from "./practice-simple.ts";
import { namesOf } from "./practice-spec.ts";
import { STARTER_WORLDS, starterDataSet } from "./starter.ts";

beforeAll(async () => void (await loadSqlite()));

const data = (seed: number) => starterDataSet({ seed, seen: 6, unseen: 4 });

test("the same seed gives the same questions, another seed others", () => {
  expect(data(1).questions).toEqual(data(1).questions);
  const other = new Set(data(2).questions.map(({ question_id }) => question_id));
  expect(data(1).questions.some(({ question_id }) => other.has(question_id))).toBe(false);
});

test("training has questions on the seen databases only, and none that is judged", () => {
  const { questions, databases } = data(3);
  const on = (split: string) => new Set(questions.filter((q) => q.split === split).map((q) => q.database_name));
  expect([on("train").size, on("eval").size, databases.names.length]).toEqual([6, 10, 10]);
  expect(questions).toHaveLength(10 * 4 + 6 * 6);
  expect(new Set(questions.map((q) => q.question_id)).size).toBe(questions.length);
  expect(new Set(questions.map((q) => `${q.database_name} ${q.gold_sql}`)).size).toBe(questions.length);
});

test("questions can be answered, are about one table, and are easy or medium", () => {
  const { questions, databases } = data(4);
  for (const question of questions) {
    expect(checkGold(question, databases.get(question.database_name)).ok).toBe(true);
    expect(question.tables_involved).toHaveLength(1);
    expect(question.answer_type).toMatch(/^(?:integer|string)$/);
  }
  expect(new Set(questions.map(({ difficulty }) => difficulty))).toEqual(new Set(["easy", "medium"]));
  databases.close();
});

test("answers depend on the database: the same question has many", () => {
  const answers = new Map<string, Set<string>>();
  for (const { question_text, gold_answer } of starterDataSet({ seed: 5 }).questions) {
    answers.set(question_text, (answers.get(question_text) ?? new Set()).add(gold_answer));
  }
  const asked = starterDataSet({ seed: 5 }).questions;
  const often = asked.filter(({ question_text }) => answers.get(question_text)!.size > 1);
  expect(often.length).toBeGreaterThan(20);
});

test("all its forms occur, and names of the unseen bundled databases do not", () => {
  const forms = new Set<string>();
  for (const { questions } of practiceWorlds({ ...STARTER_WORLDS, seed: 6, worlds: 20 })) {
    for (const { form } of questions) forms.add(form);
  }
  expect([...forms].sort()).toEqual([...STARTER_WORLDS.forms].sort());
  for (let seed = 0; seed < 300; seed++) {
    const spec = simpleWorld(seed);
    expect(namesOf(spec).slice(1).filter(isHeldOut)).toEqual([]);
    expect(spec.tables.flatMap(({ one, many }) => [one, many]).filter(isHeldOut)).toEqual([]);
  }
});

test("forms that do not exist, or not for these difficulties, are refused", () => {
  const worlds = (options: object) => practiceWorlds({ seed: 1, ...options }).next();
  expect(() => worlds({ forms: ["higest"] })).toThrow(/did you mean highest/);
  expect(() => worlds({ forms: ["highest"], difficulties: ["hard"] })).toThrow(/no form has these difficulties/);
  expect(() => worlds({ simple: { words: 1 } })).toThrow(/words/);
  expect(() => worlds({ simple: { rows: [12, 100] } })).toThrow(/rows/);
});
