import { beforeAll, expect, test } from "vitest";
import { strangeDatabase } from "../../../test/helpers/strange-data.ts";
import { checkGold } from "../data/index.ts";
import { runGold, verifyAnswer } from "../env/index.ts";
import { createDatabase, Database, loadSqlite, normalizeSql } from "../sql/index.ts";
import { type Made, makeQuestions } from "./make.ts";
import { personalColumns, reportMarkdown } from "./report.ts";

let bytes: Uint8Array;
let made: Made;

beforeAll(async () => {
  await loadSqlite();
  bytes = await strangeDatabase();
  made = makeQuestions([{ name: "brews", bytes }], { questions: 100 });
});

test("writes the wanted number of questions about a schema in a style of its own", () => {
  expect(made.questions).toHaveLength(100);
  const [report] = made.report.databases;
  expect(report!.by_difficulty).toEqual({ easy: 40, medium: 35, hard: 25 });
  expect(report!.references).toEqual([
    { table: "beers", column: "breweryid", to: "tblBreweries", key: "BreweryID", declared: false },
  ]);
  expect(report!.left_out).toContainEqual({ name: "empty_notes", reason: "it has no rows" });
  expect(personalColumns(report!)).toEqual(["tblBreweries.email (email addresses)"]);
  expect(new Set(report!.columns.map(({ column, kind }) => `${column} ${kind}`))).toEqual(
    new Set([
      "BreweryID id",
      "breweryName name",
      "homeCity category",
      "foundedYear year",
      "email name",
      "beer_no id",
      "BeerName name",
      "breweryid reference",
      "bottlePrice money",
      "is_organic flag",
      "style category",
      "firstBrewed date",
    ]),
  );
});

test("every gold query runs, and the verifier accepts its answer", () => {
  const database = new Database("brews", bytes);
  for (const question of made.questions) {
    expect(checkGold(question, database)).toMatchObject({ ok: true });
    expect(verifyAnswer(question.gold_answer, runGold(question, database)), question.question_text).toBe(true);
    expect(question.gold_answer).not.toMatch(/^(?:0|NULL)?$/);
  }
  database.close();
});

test("no two questions have the same words, and no query is in both splits", () => {
  const texts = made.questions.map(({ question_text }) => question_text.toLowerCase());
  expect(new Set(texts).size).toBe(texts.length);
  const queries = (split: string) =>
    new Set(made.questions.filter((one) => one.split === split).map(({ gold_sql }) => normalizeSql(gold_sql)));
  const evaluation = queries("eval");
  expect(evaluation.size).toBeGreaterThan(10);
  expect([...queries("train")].filter((sql) => evaluation.has(sql))).toEqual([]);
});

test("the same seed gives the same questions, another seed others", () => {
  expect(makeQuestions([{ name: "brews", bytes }], { questions: 100 })).toEqual(made);
  const other = makeQuestions([{ name: "brews", bytes }], { seed: 7, questions: 100 });
  expect(other.questions).toHaveLength(100);
  expect(other.questions).not.toEqual(made.questions);
});

test("questions speak of columns and tables in words", () => {
  const texts = made.questions.map(({ question_text }) => question_text).join("\n");
  expect(texts).toContain("bottle price");
  expect(texts).toContain("breweries");
  expect(texts).not.toMatch(/tbl|BreweryID|bottlePrice|is_organic|undefined/);
});

test("of several databases, some are held out whole", () => {
  const { questions, report } = makeQuestions(
    ["a", "b", "c", "d"].map((name) => ({ name, bytes })),
    { questions: 20 },
  );
  expect(report.held_out_databases).toHaveLength(1);
  const [held] = report.held_out_databases;
  expect(new Set(questions.filter(({ database_name }) => database_name === held).map(({ split }) => split))).toEqual(
    new Set(["eval"]),
  );
  expect(report.questions.train).toBeGreaterThan(40);
});

test("names and values that JavaScript objects have are names and values like others", () => {
  const rows = ["constructor", "toString", "__proto__", "valueOf", "hasOwnProperty", "plain"].map((name, i) => [
    i,
    name,
    i % 2 ? "constructor" : "__proto__",
    10 + i,
  ]);
  const ddl = "CREATE TABLE constructors (id INTEGER PRIMARY KEY, name TEXT, constructor TEXT, cost INTEGER)";
  const odd = createDatabase([{ name: "constructors", ddl, rows }]);
  const { questions } = makeQuestions([{ name: "odd", bytes: odd }], { questions: 20 });
  expect(questions).toHaveLength(20);
  expect(questions.map(({ question_text }) => question_text).join()).not.toMatch(/native code|undefined/);
});

test("a damaged database is refused", () => {
  const damaged = new Uint8Array(bytes);
  damaged[4096] = 0; // the kind of the second page
  expect(() => makeQuestions([{ name: "brews", bytes: damaged }])).toThrow("database brews is damaged: ");
});

test("a database without rows is refused with the reason", () => {
  const empty = createDatabase([{ name: "t", ddl: "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)", rows: [] }]);
  expect(() => makeQuestions([{ name: "void", bytes: empty }])).toThrow(
    "no question can be made: void; it has no rows",
  );
});

test("the report says what was made and what was not", () => {
  const text = reportMarkdown(made.report);
  expect(text).toContain("80 training and 20 evaluation questions on 1 database, seed 42.");
  expect(text).toContain("- beers.breweryid → tblBreweries.BreweryID");
  expect(text).toContain("- empty_notes: it has no rows");
  expect(text).toContain("| beers.bottlePrice | money | bottle price |");
});
