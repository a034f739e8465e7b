import { expect, test } from "vitest";
import { openShop } from "../../../../test/helpers/fixtures.ts";
import { outermostClauses, runGold } from "./gold.ts";

const shop = openShop();
const gold = (gold_sql: string) => runGold({ question_id: "q", gold_sql }, shop);
const groups = (sql: string) => gold(sql).groups.map(({ rows, take }) => [take, rows.map((row) => row[0]).sort()]);

test("finds the outermost ORDER BY and LIMIT, and no other", () => {
  expect(outermostClauses("SELECT a FROM (SELECT a FROM t ORDER BY b LIMIT 3)")).toMatchObject({
    order: undefined,
    limit: undefined,
  });
  expect(outermostClauses("SELECT a FROM t ORDER BY b DESC, lower(c) LIMIT 3 OFFSET 2;")).toEqual({
    core: "SELECT a FROM t",
    order: ["b DESC", "lower(c)"],
    limit: 3,
    offset: 2,
  });
  expect(outermostClauses("SELECT a FROM t ORDER BY b LIMIT 2, 3")).toMatchObject({ limit: 3, offset: 2 });
  expect(outermostClauses("SELECT row_number() OVER (ORDER BY b) FROM t").order).toBeUndefined();
  expect(outermostClauses("SELECT 'ORDER BY x' FROM t").order).toBeUndefined();
});

test("without ORDER BY all rows are one group", () => {
  expect(groups("SELECT name FROM customers WHERE age > 30")).toEqual([[3, ["Ada", "Bao", "Dov"]]]);
  expect(gold("SELECT name FROM customers WHERE age > 30").ordered).toBe(false);
});

test("rows tied in the order form a group", () => {
  expect(groups("SELECT name FROM customers ORDER BY age DESC")).toEqual([
    [2, ["Bao", "Dov"]],
    [1, ["Ada"]],
    [1, ["Chi"]],
    [1, ["Eve"]],
  ]);
});

test("where LIMIT cuts a tie, any of its rows is right", () => {
  const tie = [[1, ["Bao", "Dov"]]];
  expect(groups("SELECT name FROM customers ORDER BY age DESC LIMIT 1")).toEqual(tie);
  expect(groups("SELECT name AS n, age AS years FROM customers ORDER BY years DESC LIMIT 1")).toEqual(tie);
  expect(groups("SELECT name, age FROM customers ORDER BY 2 DESC LIMIT 1")).toEqual(tie);
  expect(groups("SELECT * FROM customers ORDER BY age DESC LIMIT 1")).toEqual([[1, [2, 4]]]);
  expect(groups("SELECT name nm, age years FROM customers ORDER BY years DESC LIMIT 1")).toEqual(tie);
  expect(groups("SELECT DISTINCT T1.name, T1.age FROM customers AS T1 ORDER BY age DESC LIMIT 1")).toEqual(tie);
  for (const limit of ["2 - 1", "0x1", "(SELECT 1)"]) {
    expect(groups(`SELECT name FROM customers ORDER BY age DESC LIMIT ${limit}`)).toEqual(tie);
  }
  expect(groups("WITH old AS (SELECT * FROM customers) SELECT name FROM old ORDER BY age DESC LIMIT 1")).toEqual(tie);
  expect(groups("SELECT name FROM customers ORDER BY age DESC LIMIT 1 OFFSET 1")).toEqual(tie);
});

test("ties of groups, of set operations and of DISTINCT are found", () => {
  const perCity = "SELECT city FROM customers WHERE city IS NOT NULL GROUP BY city ORDER BY count(*) DESC LIMIT 1";
  expect(groups(perCity)).toEqual([[1, ["Hanoi", "Oslo"]]]);
  expect(groups("SELECT age FROM customers UNION ALL SELECT age FROM customers ORDER BY age LIMIT 3")).toEqual([
    [2, [22, 22]],
    [1, [29, 29]],
  ]);
  expect(groups("SELECT DISTINCT age FROM customers ORDER BY age DESC LIMIT 2")).toEqual([
    [1, [41]],
    [1, [36]],
  ]);
});

test("with LIMIT and no ORDER BY any rows are right", () => {
  expect(groups("SELECT name FROM customers LIMIT 2")).toEqual([[2, ["Ada", "Bao", "Chi", "Dov", "Eve"]]]);
});

test("a hostile gold query is analysed quickly", () => {
  expect(groups(`SELECT name FROM customers ORDER BY age +${" ".repeat(5000)}id LIMIT 1`)).toEqual([[1, ["Eve"]]]);
});

test("where ties cannot be determined the order must be that of the gold", () => {
  expect(groups("SELECT DISTINCT city FROM customers ORDER BY age LIMIT 2").map(([take]) => take)).toEqual([1, 1]);
});

test.each([
  ["SELECT name FROM customers WHERE age > 100", /no rows/],
  ["SELECT city FROM customers WHERE name = 'Dov'", /only NULLs/],
  ["SELECT nope FROM customers", /fails: no such column/],
  ["DELETE FROM customers", /fails: only one SELECT/],
])("refuses the gold %s", (sql, message) => {
  expect(() => gold(sql)).toThrow(message);
});
