import { beforeAll, expect, test } from "vitest";
import { createDatabase, Database, loadSqlite } from "../../sql/index.ts";
import { asSpiderRuns, executeGold, judge, resultKey } from "./execution.ts";

let database: Database;
beforeAll(async () => {
  await loadSqlite();
  const ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, city TEXT)";
  const rows = [
    [1, "Ann", 30, "Rome"],
    [2, "Ben", 30, "Oslo"],
    [3, "Cleo", 41, null],
    [4, "Ann", 25, "Rome"],
  ];
  database = new Database("t", createDatabase([{ name: "t", ddl, rows }]));
});

const verdict = (gold: string, sql: string) => {
  const { spider, bird } = judge(database, sql, executeGold(database, gold));
  return [spider, bird];
};

test("only by Spider's rule may columns be reordered, and only by it do duplicates count", () => {
  expect(verdict("SELECT name, age FROM t", "SELECT age, name FROM t")).toEqual([true, false]);
  expect(verdict("SELECT name FROM t", "SELECT name FROM t GROUP BY name")).toEqual([false, true]);
  expect(verdict("SELECT name FROM t", "SELECT DISTINCT name FROM t")).toEqual([true, true]);
});

test("order counts by Spider's rule where the gold's text orders", () => {
  expect(verdict("SELECT name FROM t ORDER BY id", "SELECT name FROM t ORDER BY id DESC")).toEqual([false, true]);
  expect(verdict("SELECT name FROM t", "SELECT name FROM t ORDER BY id DESC")).toEqual([true, true]);
});

test("cells are equal as in Python: numbers by value, text exactly, NULL with NULL", () => {
  expect(verdict("SELECT 3", "SELECT 3.0")).toEqual([true, true]);
  expect(verdict("SELECT 3", "SELECT '3'")).toEqual([false, false]);
  expect(verdict("SELECT city FROM t WHERE id = 3", "SELECT NULL")).toEqual([true, true]);
  expect(verdict("SELECT 'a'", "SELECT 'A'")).toEqual([false, false]);
  expect(verdict("SELECT x'61'", "SELECT 'x''61'''")).toEqual([false, false]);
});

test("a query that fails is wrong and says why", () => {
  const gold = executeGold(database, "SELECT 1");
  expect(judge(database, "SELECT missing FROM t", gold)).toMatchObject({
    spider: false,
    bird: false,
    result: null,
    error: { error_class: "unknown_column" },
  });
});

test("queries are preprocessed like in Spider's evaluator", () => {
  expect(asSpiderRuns("SELECT count(DISTINCT a) FROM t WHERE b > = 1; SELECT 2")).toBe(
    "SELECT count( a) FROM t WHERE b >= 1;",
  );
  expect(asSpiderRuns("SELECT 'distinct', \"distinct\" FROM t WHERE y = YEAR(CURDATE())")).toBe(
    "SELECT 'distinct', \"distinct\" FROM t WHERE y = 2020",
  );
});

test("many columns are matched without trying every order", () => {
  const columns = Array.from({ length: 12 }, (_, i) => `(id + ${i}) % 4`);
  const gold = `SELECT ${columns.join(", ")} FROM t`;
  expect(verdict(gold, `SELECT ${[...columns].reverse().join(", ")} FROM t`)[0]).toBe(true);
  expect(verdict(gold, `SELECT ${[...columns.slice(1), "id"].join(", ")} FROM t`)[0]).toBe(false);
});

test("results with the same rows have the same key, whatever their order", () => {
  const key = (sql: string) => {
    const { result } = judge(database, sql, executeGold(database, "SELECT 1"));
    return resultKey(result!);
  };
  expect(key("SELECT name FROM t ORDER BY id")).toBe(key("SELECT name FROM t ORDER BY name DESC"));
  expect(key("SELECT name FROM t")).not.toBe(key("SELECT DISTINCT name FROM t"));
});
