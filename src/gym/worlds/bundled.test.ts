import { beforeAll, describe, expect, test } from "vitest";
import { random } from "../../random.ts";
import {
  ANSWER_TYPES,
  answerTypeOf,
  checkGold,
  type DataSet,
  DIFFICULTIES,
  difficultyOf,
  formatAnswer,
  type QuestionRecord,
  questionSchema,
  tablesInvolved,
} from "../data/index.ts";
import { loadSqlite, normalizeSql, quoteName, sqlSkeleton } from "../sql/index.ts";
import { ask } from "./ask.ts";
import { fillWorld } from "./build.ts";
import { BUNDLED_SPECS, bundledDataSet, TRAIN_DATABASES, UNSEEN_DATABASES, unseenNames } from "./bundled.ts";
import { FORMS } from "./forms/index.ts";

let set: DataSet;
let train: QuestionRecord[];
let seen: QuestionRecord[];
let unseen: QuestionRecord[];

beforeAll(async () => {
  await loadSqlite();
  set = bundledDataSet();
  train = set.questions.filter(({ split }) => split === "train");
  seen = set.questions.filter((q) => q.split === "eval" && TRAIN_DATABASES.includes(q.database_name));
  unseen = set.questions.filter((q) => q.split === "eval" && UNSEEN_DATABASES.includes(q.database_name));
});

function countBy<T>(items: readonly T[], key: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1);
  return counts;
}

describe("what is in the set", () => {
  test("473 questions to train on, 101 and 102 to evaluate on", () => {
    expect([train.length, seen.length, unseen.length, set.questions.length]).toEqual([473, 101, 102, 676]);
    expect(new Set(train.map((q) => q.database_name))).toEqual(new Set(TRAIN_DATABASES));
    expect(new Set(unseen.map((q) => q.database_name))).toEqual(new Set(UNSEEN_DATABASES));
    expect(set.rejected).toEqual([]);
  });

  test("questions are distributed evenly over databases", () => {
    const spread = (questions: readonly QuestionRecord[]) => {
      const counts = [...countBy(questions, (q) => q.database_name).values()];
      return Math.max(...counts) - Math.min(...counts);
    };
    expect([spread(train), spread(seen), spread(unseen)].every((width) => width <= 1)).toBe(true);
  });

  test("about 40 % easy, 40 % medium, 20 % hard in each part", () => {
    for (const part of [train, seen, unseen]) {
      const counts = countBy(part, (q) => q.difficulty);
      const shares = DIFFICULTIES.map((difficulty) => counts.get(difficulty)! / part.length);
      for (const [i, share] of [0.4, 0.4, 0.2].entries()) expect(Math.abs(shares[i]! - share)).toBeLessThan(0.03);
    }
  });

  test("many shapes of query and every type of answer in each part", () => {
    const shapes = (questions: readonly QuestionRecord[]) =>
      new Set(questions.map((q) => sqlSkeleton(q.gold_sql))).size;
    expect(shapes(set.questions)).toBeGreaterThanOrEqual(80);
    for (const part of [train, seen, unseen]) {
      expect(shapes(part)).toBeGreaterThanOrEqual(45);
      expect(new Set(part.map((q) => q.answer_type))).toEqual(new Set(ANSWER_TYPES));
    }
  });

  test("no shape of query makes up more than a twentieth", () => {
    expect(Math.max(...countBy(set.questions, (q) => sqlSkeleton(q.gold_sql)).values())).toBeLessThan(676 / 20);
  });
});

describe("each question", () => {
  test("is a complete record that agrees with its gold query", () => {
    for (const question of set.questions) {
      questionSchema.parse(question);
      const database = set.databases.get(question.database_name);
      const gold = checkGold(question, database);
      if (!gold.ok) throw new Error(`${question.question_id}: ${gold.detail}`);
      const { rows } = gold.table;
      expect(rows.length).toBeLessThanOrEqual(20);
      expect(rows.flat()).not.toContain(null);
      expect(question.gold_answer).toBe(formatAnswer(gold.table));
      expect(question.gold_answer.length).toBeLessThanOrEqual(600);
      expect(question.answer_type).toBe(answerTypeOf(gold.table));
      expect(question.tables_involved).toEqual(tablesInvolved(question.gold_sql, database.tables));
      expect(question.tables_involved.length).toBeGreaterThan(0);
    }
  });

  test("has the difficulty of its query", () => {
    const wrong = set.questions.filter((q) => difficultyOf(q.gold_sql) !== q.difficulty);
    expect(wrong.map((q) => q.gold_sql)).toEqual([]);
  });

  test("has a unique id with its database and split", () => {
    expect(new Set(set.questions.map((q) => q.question_id)).size).toBe(676);
    for (const q of set.questions) expect(q.question_id).toMatch(new RegExp(`^${q.database_name}_${q.split}_\\d{3}$`));
  });

  test("is unique: no text and no query occurs twice, so training and evaluation do not overlap", () => {
    expect(new Set(set.questions.map((q) => q.question_text.toLowerCase())).size).toBe(676);
    expect(new Set(set.questions.map((q) => normalizeSql(q.gold_sql))).size).toBe(676);
  });

  test("names the values of its query", () => {
    for (const { question_text, gold_sql } of set.questions) {
      for (const [, quoted] of gold_sql.matchAll(/= '((?:[^']|'')*)'/g)) {
        expect(question_text).toContain(quoted!.replaceAll("''", "'"));
      }
    }
  });
});

/** Patterns that no sentence should contain. */
const SLIPS: readonly RegExp[] = [
  /undefined|null|NaN|\[object|[{}]/,
  / {2}|^ | $| [?.,]/,
  /\b(\w+) \1\b/i,
  /(?<![\p{L}])a (?=[aeio])(?!one\b|eu)/u,
  /\ban (?=[bcdfgjklmnpqrstvwxyz])/i,
  /\bthe the\b|\bof of\b|\bwith with\b/i,
  /\b1 \w+s\b/,
  /_/,
];

function slipsIn(text: string): string[] {
  const found = SLIPS.filter((slip) => slip.test(text)).map(String);
  return /^[A-Z].*[?.]$/.test(text) ? found : [...found, "starts small or has no end"];
}

test("every sentence is correct English as far as a test can tell", () => {
  const bad = set.questions
    .filter((q) => slipsIn(q.question_text.replaceAll("@post.example", "")).length > 0)
    .map((q) => `${q.question_text} (${slipsIn(q.question_text)})`);
  expect(bad).toEqual([]);
});

test("the same seed gives the same bytes and questions, another seed gives other questions", () => {
  const again = bundledDataSet({ seed: 42 });
  expect(again.questions).toEqual(set.questions);
  for (const name of set.databases.names) expect(again.file!(name)).toEqual(set.file!(name));
  const other = bundledDataSet({ seed: 7 });
  expect(other.questions).toHaveLength(676);
  const texts = new Set(set.questions.map((q) => q.question_text));
  expect(other.questions.filter((q) => texts.has(q.question_text)).length).toBeLessThan(676 / 4);
  again.databases.close();
  other.databases.close();
});

test("every form finds questions in the bundled databases, and its shape of query is in the set", () => {
  const shapes = new Set(set.questions.map((q) => sqlSkeleton(q.gold_sql)));
  const worlds = BUNDLED_SPECS.map((spec) => fillWorld(spec, 42));
  const unused = FORMS.filter((form) =>
    worlds.every((world) => {
      const database = set.databases.get(world.spec.name);
      const r = random("form test", form.name, world.spec.name);
      const asked = Array.from({ length: 15 }, () => ask(form, world, database, r));
      return !asked.some((question) => question && shapes.has(sqlSkeleton(question.gold_sql)));
    }),
  );
  expect(unused.map((form) => form.name)).toEqual([]);
});

describe("the databases", () => {
  test("have 2–8 tables of 10–200 rows, foreign keys and NULLs", () => {
    for (const { name, tables } of BUNDLED_SPECS) {
      const database = set.databases.get(name);
      expect(database.integrityErrors()).toEqual([]);
      expect(database.tables.length).toBeGreaterThanOrEqual(2);
      expect(database.tables.length).toBeLessThanOrEqual(8);
      expect(database.tables.some((table) => table.foreign_keys.length > 0)).toBe(true);
      for (const table of database.tables) {
        expect(database.rowCount(table)).toBeGreaterThanOrEqual(10);
        expect(database.rowCount(table)).toBeLessThanOrEqual(200);
      }
      expect(tables.some((table) => table.columns.some((column) => column.kind === "date"))).toBe(true);
      expect(tables.some((table) => table.columns.some((column) => column.nulls))).toBe(true);
      expect(tables.every((table) => (table.given?.rows.length ?? 0) <= table.rows)).toBe(true);
    }
  });

  test("a few have names that need quotes, seen and unseen ones", () => {
    const quoted = BUNDLED_SPECS.filter(({ tables }) =>
      tables.some((table) => [table, ...table.columns].some(({ name }) => quoteName(name) !== name)),
    ).map(({ name }) => name);
    expect(quoted.filter((name) => TRAIN_DATABASES.includes(name)).length).toBeGreaterThanOrEqual(2);
    expect(quoted.filter((name) => UNSEEN_DATABASES.includes(name)).length).toBeGreaterThanOrEqual(1);
  });

  test("held-out databases share no names with training databases except id and name", () => {
    const namesOf = (databases: readonly string[]) =>
      new Set(
        databases.flatMap((database) => [
          database,
          ...set.databases.get(database).tables.flatMap(({ name, columns }) => [name, ...columns.map((c) => c.name)]),
        ]),
      );
    const trained = namesOf(TRAIN_DATABASES);
    expect(
      [...namesOf(UNSEEN_DATABASES)].filter((name) => trained.has(name) && !["id", "name"].includes(name)),
    ).toEqual([]);
    for (const name of namesOf(UNSEEN_DATABASES))
      expect(unseenNames().has(name) || ["id", "name"].includes(name)).toBe(true);
    for (const noun of ["animal", "wines", "rocket", "painting"]) expect(unseenNames().has(noun)).toBe(true);
  });
});
