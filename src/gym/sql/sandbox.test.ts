import { afterAll, beforeAll, expect, test } from "vitest";
import { openShop, shopBytes } from "../../../test/helpers/fixtures.ts";
import { limitStatementTime } from "./sandbox.ts";
import type { SqlErrorClass } from "./sql-error.ts";

const shop = openShop();
beforeAll(() => limitStatementTime(() => 60_000)); // the assertions must not depend on the machine
afterAll(() => {
  limitStatementTime();
  shop.close();
});

function errorOf(sql: string) {
  const result = shop.run(sql);
  return result.ok ? { error_class: "none", message: JSON.stringify(result.table.rows) } : result.error;
}

const doubling = (step: (from: string) => string) =>
  `WITH a0 AS (SELECT 1 AS q)${Array.from({ length: 40 }, (_, i) => `, a${i + 1} AS (${step(`a${i}`)})`).join("")} SELECT count(*) FROM a40`;

const HOSTILE: [SqlErrorClass, string][] = [
  // writes, in any spelling
  ["not_select", "DELETE FROM customers"],
  ["not_select", "INSERT INTO customers VALUES (9, 'x', 'y', 1)"],
  ["not_select", "UPDATE customers SET age = 0"],
  ["not_select", "REPLACE INTO customers VALUES (1, 'x', 'y', 1)"],
  ["not_select", "DROP TABLE customers"],
  ["not_select", "CREATE TABLE x (a)"],
  ["not_select", "CREATE TEMP TABLE x AS SELECT 1"],
  ["not_select", "CREATE TEMP VIEW x AS SELECT 1"],
  ["not_select", "CREATE TEMP TRIGGER t AFTER INSERT ON customers BEGIN SELECT 1; END"],
  ["not_select", "ALTER TABLE customers ADD COLUMN x"],
  ["not_select", "CREATE INDEX i ON customers (age)"],
  ["not_select", "VACUUM"],
  ["not_select", "VACUUM INTO '/tmp/out.db'"],
  ["not_select", "REINDEX"],
  ["not_select", "ANALYZE"],
  ["denied", "WITH x AS (SELECT 1) DELETE FROM customers"],
  ["denied", "WITH x AS (SELECT 1) INSERT INTO customers SELECT 9, 'x', 'y', 1"],
  ["not_select", "/* SELECT */ DELETE FROM customers -- SELECT"],
  ["not_select", "DeLeTe/**/FROM/**/customers"],
  ["not_select", "INSERT INTO customers VALUES (9, 'x', 'y', 1) RETURNING name"],
  // other databases and SQLite's settings
  ["not_select", "ATTACH DATABASE '/etc/passwd' AS other"],
  ["not_select", "ATTACH ':memory:' AS other"],
  ["not_select", "DETACH main"],
  ["not_select", "PRAGMA writable_schema = 1"],
  ["not_select", "PRAGMA database_list"],
  ["denied", "SELECT * FROM pragma_database_list"],
  ["denied", "SELECT count(*) FROM pragma_table_info('customers')"],
  ["denied", "SELECT 1 FROM sqlite_temp_master"],
  ["unknown_table", "SELECT * FROM sqlite_stmt"],
  ["unknown_table", "SELECT count(*) FROM sqlite_stmt"],
  ["unknown_table", "SELECT * FROM dbstat"],
  ["unknown_table", "SELECT * FROM sqlite_dbpage"],
  ["unknown_table", "SELECT * FROM bytecode('SELECT 1')"],
  ["unknown_table", "SELECT * FROM json_each('[1]')"],
  // several statements, explanations, transactions
  ["not_select", "SELECT 1; SELECT 2"],
  ["not_select", "SELECT 1; DELETE FROM customers"],
  ["not_select", "SELECT 1;;; /* x */ DROP TABLE customers"],
  ["not_select", "EXPLAIN SELECT 1"],
  ["not_select", "EXPLAIN QUERY PLAN SELECT 1"],
  ["not_select", "BEGIN"],
  ["not_select", "COMMIT"],
  ["not_select", "SAVEPOINT x"],
  // random numbers, the clock, SQLite internals
  ["denied", "SELECT random()"],
  ["denied", "SELECT name FROM customers ORDER BY RANDOM()"],
  ["denied", "SELECT randomblob(10)"],
  ["denied", "SELECT hex(zeroblob(1000000000))"],
  ["denied", "SELECT CURRENT_TIMESTAMP"],
  ["denied", "SELECT current_date"],
  ["denied", "SELECT date('now')"],
  ["denied", "SELECT DATE('NOW')"],
  ["denied", "SELECT date()"],
  ["denied", "SELECT strftime('%s')"],
  ["denied", "SELECT strftime('%Y', lower('NOW'))"],
  ["denied", "SELECT julianday('subsec')"],
  ["denied", "SELECT datetime('2024-01-01', 'localtime')"],
  ["denied", "SELECT datetime('2024-01-01', 'utc')"],
  ["denied", "SELECT last_insert_rowid()"],
  ["denied", "SELECT changes()"],
  ["denied", "SELECT sqlite_version()"],
  ["denied", "SELECT sqlite_compileoption_get(1)"],
  ["denied", "SELECT sqlite_offset(age) FROM customers"],
  ["denied", "SELECT json_extract('[1]', '$')"],
  ["unknown_function", "SELECT load_extension('x')"],
  ["unknown_function", "SELECT readfile('/etc/passwd')"],
  ["unknown_function", "SELECT writefile('/tmp/x', 'y')"],
  // bombs
  ["too_long", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"],
  ["too_long", `SELECT count(*) FROM ${Array.from({ length: 20 }, (_, i) => `customers t${i}`).join(", ")}`],
  ["too_large", `SELECT * FROM ${Array.from({ length: 70 }, (_, i) => `customers t${i}`).join(", ")}`],
  ["too_large", "SELECT group_concat(printf('%.16000c', 'x')) FROM customers a, customers b, customers c"],
  ["too_large", "SELECT replace(printf('%.8000c', 'a'), 'a', printf('%.200c', 'a'))"],
  ["too_long", "WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || 'a' FROM c) SELECT count(*) FROM c"],
  ["too_large", `SELECT ${"not ".repeat(2000)}1`],
  ["too_large", `SELECT ${"1+".repeat(3000)}1`],
  ["too_large", `SELECT '${"x".repeat(20_000)}'`],
  ["too_large", Array.from({ length: 60 }, () => "SELECT 1").join(" UNION ALL ")],
  ["too_large", `SELECT name LIKE '${"%a".repeat(60)}' FROM customers`],
  ["too_large", doubling((from) => `SELECT x.q FROM ${from} x, ${from} y`)],
  ["too_large", doubling((from) => `SELECT q FROM ${from} UNION ALL SELECT q FROM ${from}`)],
  // ordinary mistakes
  ["syntax", ""],
  ["syntax", "   -- nothing"],
  ["syntax", "SELEC 1"],
  ["syntax", "SELECT"],
  ["syntax", "SELECT 'open"],
  ["syntax", "SELECT 1 \0; DELETE FROM customers"],
  ["syntax", "ＳＥＬＥＣＴ 1"],
  ["unknown_table", "SELECT * FROM customer"],
  ["unknown_column", "SELECT nam FROM customers"],
  ["unknown_column", 'SELECT "Oslo"'],
  ["unknown_function", "SELECT median(age) FROM customers"],
  ["invalid", "SELECT id FROM customers, orders"],
  ["invalid", "SELECT max(count(*)) FROM customers"],
];

test.each(HOSTILE)("%s: %s", (error_class, sql) => {
  limitStatementTime(() => 60_000); // the instruction limit must end bombs, even on a slow machine
  const error = errorOf(sql);
  limitStatementTime();
  expect(error).toMatchObject({ error_class });
  // Names no file and no other database.
  expect(error.message).not.toMatch(/\/etc|\/tmp|node_modules|\.wasm|unable to open/);
});

test("no hostile statement changed the database", () => {
  const before = openShop();
  for (const table of before.tables) {
    const all = (database: typeof shop) => database.run(`SELECT * FROM "${table.name}"`);
    expect(all(shop)).toEqual(all(before));
  }
  expect(shop.tables).toEqual(before.tables);
  before.close();
});

test("after a bomb memory is below the limit and the connection usable", () => {
  const bomb =
    "SELECT x FROM (WITH RECURSIVE c(x, y) AS (SELECT 1, printf('%.16000c', 'x') UNION ALL SELECT x + 1, y FROM c) SELECT * FROM c) ORDER BY y || x DESC";
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 3; i++) expect(errorOf(bomb).error_class).toMatch(/too_l/);
  expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000);
  expect(shop.run("SELECT count(*) FROM customers")).toMatchObject({ ok: true, table: { rows: [[5]] } });
});

test("the same statement stops at the same instruction", () => {
  const run = () => shop.run("SELECT count(*) FROM customers a, customers b, customers c, customers d");
  const [first, second] = [run(), run()];
  expect(first).toEqual(second);
  expect(first.ok && first.instructions).toBeGreaterThan(0);
});

test("the thread's time limit applies to a statement and may change while it runs", () => {
  const heavy = "SELECT count(*) FROM customers a, customers b, customers c, customers d";
  let asked = 0;
  try {
    limitStatementTime(() => (++asked < 5 ? 60_000 : 0));
    expect(errorOf(heavy)).toMatchObject({ error_class: "timeout" });
    expect(asked).toBe(5);
    limitStatementTime(() => 60_000);
    expect(shop.run(heavy)).toMatchObject({ ok: true });
  } finally {
    limitStatementTime(() => 60_000);
  }
  expect(shop.run(heavy)).toMatchObject({ ok: true });
});

test("dates work without the clock", () => {
  const result = shop.run(
    "SELECT strftime('%Y', placed), date(placed, '+1 month'), julianday('2000-01-01'), unixepoch('1970-01-02') FROM orders LIMIT 1",
  );
  expect(result).toMatchObject({ ok: true, table: { rows: [["2024", "2024-02-05", 2451544.5, 86400]] } });
});

test("a database never writes to the bytes it was given", () => {
  const copy = shopBytes.slice();
  const database = openShop();
  for (const [, sql] of HOSTILE.slice(0, 20)) database.run(sql);
  database.close();
  expect(Buffer.compare(copy, shopBytes)).toBe(0);
});
