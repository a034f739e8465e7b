// Runs random statements and noise: none may throw, change anything or fail without an error class.
import fc from "fast-check";
import { expect, test } from "vitest";
import { cases } from "../../../test/helpers/cases.ts";
import { openShop } from "../../../test/helpers/fixtures.ts";
import { SQL_ERROR_CLASSES } from "./sql-error.ts";

const RUNS = cases(20_000, 100_000);

const WORDS =
  `SELECT FROM WHERE GROUP BY ORDER LIMIT OFFSET HAVING UNION ALL INTERSECT EXCEPT WITH RECURSIVE AS JOIN LEFT ON USING
   DISTINCT CASE WHEN THEN ELSE END IN EXISTS BETWEEN LIKE GLOB IS NULL NOT AND OR CAST COLLATE NOCASE OVER PARTITION
   INSERT INTO VALUES UPDATE SET DELETE DROP TABLE CREATE VIEW TRIGGER INDEX ALTER ATTACH DETACH PRAGMA VACUUM BEGIN
   COMMIT ROLLBACK SAVEPOINT EXPLAIN ANALYZE REINDEX REPLACE RETURNING TEMP MATERIALIZED main temp sqlite_master
   sqlite_schema sqlite_sequence sqlite_stmt dbstat pragma_table_info customers orders "group" oslo id name city age
   customer_id "total price" placed code note rowid * ( ) , ; . + - / % = <> < > || ' " \` [ ] -- /* */ 0 1 2 -1 1e999
   9223372036854775807 0x7f 'Oslo' 'x' x'00' ? ?1 :a @b $c count(*) sum(age) max(name) min(id) avg(age) abs(-1)
   random() randomblob(9) zeroblob(9) hex(name) printf('%d',1) group_concat(name) substr(name,1,2) date('now') date(placed)
   strftime('%Y',placed) load_extension('x') row_number() dense_rank() lag(age) char(0) typeof(age) instr(name,'a')
   \u0000 \ufeff \u202e é 🙂 \\`.split(/\s+/);

/** Statements that usually parse: nested, joined, grouped, combined by UNION, with some hostile parts. */
const { query } = fc.letrec<{ query: string; value: string; source: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    { weight: 12, arbitrary: fc.constantFrom("1", "'Oslo'", "NULL", "-2.5", "count(*)") },
    { weight: 3, arbitrary: fc.constantFrom("id", "name", "age", "rowid") },
    { weight: 1, arbitrary: fc.constantFrom("random()", "date('now')", "randomblob(9)", "nope", "main.customers.id") },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.constantFrom("max", "lower", "abs", "typeof"), tie("value")).map(([f, x]) => `${f}(${x})`),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(tie("value"), fc.constantFrom("+", "=", "<", "LIKE", "AND", "||", "IS NOT"), tie("value"))
        .map(([a, op, b]) => `(${a} ${op} ${b})`),
    },
    { weight: 1, arbitrary: tie("query").map((sub) => `EXISTS (${sub})`) },
    { weight: 1, arbitrary: tie("value").map((x) => `CASE WHEN ${x} THEN 1 ELSE ${x} END`) },
  ),
  source: fc.oneof(
    { depthSize: "small" },
    { weight: 20, arbitrary: fc.constantFrom("customers", "orders", '"group"', "oslo", "sqlite_master") },
    { weight: 1, arbitrary: fc.constantFrom("sqlite_stmt", "pragma_table_list", "temp.x", "main.customers") },
    { weight: 3, arbitrary: tie("query").map((sub) => `(${sub})`) },
    { weight: 2, arbitrary: fc.tuple(tie("source"), tie("source")).map(([a, b]) => `${a} AS a JOIN ${b} AS b`) },
  ),
  query: fc
    .record({
      head: fc.constantFrom("SELECT", "SELECT DISTINCT", "WITH c AS (SELECT 1) SELECT", "VALUES"),
      items: fc.array(tie("value"), { minLength: 1, maxLength: 3 }),
      source: tie("source"),
      tail: fc.oneof(
        fc.constantFrom("", "", "", "LIMIT 3", "ORDER BY 1", "ORDER BY random()", "RETURNING 1"),
        tie("value").map((x) => `WHERE ${x}`),
        tie("value").map((x) => `GROUP BY ${x} HAVING ${x}`),
        tie("query").map((other) => `UNION ${other}`),
      ),
    })
    .map(({ head, items, source, tail }) =>
      head === "VALUES" ? `VALUES (${items.join(", ")})` : `${head} ${items.join(", ")} FROM ${source} ${tail}`,
    ),
}));

const statement = fc.oneof(
  { weight: 5, arbitrary: query },
  { weight: 3, arbitrary: fc.array(fc.constantFrom(...WORDS), { maxLength: 14 }).map((words) => words.join(" ")) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
);

test(`${RUNS} statements: no throw, no change, every error classified, no path leaked`, () => {
  const shop = openShop();
  const contents = () => JSON.stringify(shop.tables.map((table) => shop.run(`SELECT * FROM "${table.name}"`)));
  const before = contents();
  let succeeded = 0;
  fc.assert(
    fc.property(statement, (sql) => {
      const result = shop.run(sql);
      if (result.ok) {
        succeeded++;
        return;
      }
      if (!SQL_ERROR_CLASSES.includes(result.error.error_class)) throw new Error(`unknown class for ${sql}`);
      if (/\/home|\/root|\/tmp|node_modules|\.wasm/.test(result.error.message)) throw new Error(`leak for ${sql}`);
    }),
    { numRuns: RUNS, seed: 20261115 },
  );
  expect(contents()).toBe(before);
  expect(succeeded).toBeGreaterThan(RUNS / 10); // the generator produces real queries, not only noise
  shop.close();
}, 300_000);
