import { beforeAll, expect, test } from "vitest";
import { random } from "../../../random.ts";
import { assemble, type DataSet } from "../../data/index.ts";
import { type Cell, createDatabase, Database, DatabasePool, loadSqlite, type NewTable } from "../../sql/index.ts";
import { goldHints, makeTwin } from "./twin.ts";
import { Twins } from "./twins.ts";

const r = random("twin test");
const people = Array.from({ length: 40 }, (_, i): Cell[] => [
  i + 1,
  `Person ${i + 1}`,
  20 + r.int(0, 40),
  r.pick(["Rome", "Oslo", null]),
  r.int(100, 999) / 10,
]);
const TABLES: readonly NewTable[] = [
  {
    name: "person",
    ddl: "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER CHECK (age > 0), city TEXT, pay REAL)",
    rows: people,
  },
  {
    name: "visit",
    ddl: "CREATE TABLE visit (person_id INTEGER REFERENCES person(id), day INTEGER, PRIMARY KEY (person_id, day))",
    rows: people.flatMap(([id]) => [1, 2].map((day) => [id!, day])).slice(0, 50),
  },
  {
    name: 'odd "name"',
    ddl: 'CREATE TABLE "odd ""name""" ("a b" "type); DROP TABLE person", twice INTEGER GENERATED ALWAYS AS (2), "select" TEXT)',
    rows: [],
  },
];

const GOLDS = [
  "SELECT count(*) FROM person WHERE age > 61", // nobody is older than 60
  "SELECT T1.name FROM person AS T1 JOIN visit AS T2 ON T1.id = T2.person_id WHERE T1.city = 'Rome'",
  "SELECT name FROM person ORDER BY age DESC LIMIT 1",
  "SELECT city, count(*) FROM person GROUP BY city",
];

let database: Database;
let data: DataSet;
beforeAll(async () => {
  await loadSqlite();
  const bytes = createDatabase(TABLES);
  database = new Database("people", bytes);
  const databases = new DatabasePool({ names: ["people"], read: () => bytes });
  const drafts = GOLDS.map((gold_sql) => ({
    ...{ question_text: "?", database_name: "people", gold_sql },
    split: "eval" as const,
  }));
  data = await assemble("people", drafts, databases);
});

const rowsOf = (twin: Database, sql: string) => {
  const result = twin.run(sql);
  if (!result.ok) throw new Error(result.error.message);
  return result.table.rows;
};

test("hints are joined columns and the values that columns are compared with", () => {
  const { joined, compared } = goldHints([
    ...GOLDS,
    `SELECT a FROM t WHERE b = "Norway" AND c BETWEEN 3 AND 5 AND d NOT IN (SELECT e FROM u)`,
  ]);
  expect([...joined].sort()).toEqual(["d", "e", "id", "person_id"]);
  expect(compared.get("age")).toEqual({ numbers: new Set([61]), texts: new Set() });
  expect(compared.get("city")!.texts).toEqual(new Set(["Rome"]));
  expect(compared.get("b")!.texts).toEqual(new Set(["Norway"]));
  expect(compared.get("c")!.numbers).toEqual(new Set([3, 5]));
});

test("a twin has the same tables and other rows; keys stay unique and references valid", () => {
  const hints = goldHints(GOLDS);
  const seen = new Set<string>();
  for (let seed = 0; seed < 3; seed++) {
    const twin = makeTwin(database, hints, seed);
    const names = ({ tables }: Database) => tables.map(({ name, columns }) => [name, columns.map((c) => c.name)]);
    expect(names(twin)).toEqual(names(database));
    const all = rowsOf(twin, "SELECT * FROM person");
    seen.add(JSON.stringify(all));
    expect(rowsOf(makeTwin(database, hints, seed), "SELECT * FROM person")).toEqual(all);
    expect(all.length).toBeGreaterThan(20);
    expect(new Set(all.map(([id]) => id)).size).toBe(all.length);
    expect(
      all.every(([, name, age]) => typeof name === "string" && Number.isInteger(age) && (age as number) >= 0),
    ).toBe(true);
    const texts = new Set(people.map(([, name]) => name));
    expect(all.every(([, name]) => texts.has(name!))).toBe(true); // texts are exchanged, not invented
    const orphans = "SELECT count(*) FROM visit WHERE person_id NOT IN (SELECT id FROM person)";
    expect(rowsOf(twin, orphans)).toEqual([[0]]);
    const twice = "SELECT person_id, day FROM visit GROUP BY person_id, day HAVING count(*) > 1";
    expect(rowsOf(twin, twice)).toEqual([]);
    const near = rowsOf(twin, "SELECT count(*) FROM person WHERE age IN (60, 61, 62)")[0]![0];
    expect(near).toBeGreaterThan(0); // values from conditions do occur
    twin.close();
  }
  expect(seen.size).toBe(3);
});

test("twins reject queries that are right by luck, and accept rewritten golds", () => {
  const twins = new Twins(data, 2);
  const [older, rome] = data.questions;
  const agrees = (question: DataSet["questions"][number], sql: string) =>
    twins.agrees(question, sql, twins.goldsOf(question));
  expect(twins.goldsOf(older!)).toHaveLength(2);
  expect(agrees(older!, "SELECT count(1) FROM person AS p WHERE NOT p.age <= 61")).toBe(true);
  expect(agrees(older!, "SELECT 0")).toBe(false);
  expect(agrees(older!, "SELECT count(*) FROM person WHERE age >= 61")).toBe(false);
  expect(agrees(older!, "SELECT nothing_such FROM person")).toBe(false);
  expect(agrees(rome!, `${rome!.gold_sql} ORDER BY T1.name`)).toBe(true);
  for (const question of data.questions) expect(agrees(question, question.gold_sql)).toBe(true);
  twins.close();
});
