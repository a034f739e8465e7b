// The counted functions give what SQLite's own give, and stop when their budget is spent.
import fc from "fast-check";
import { expect, test } from "vitest";
import { cases } from "../../test/cases.ts";
import { openShop } from "../../test/fixtures.ts";
import { createDatabase } from "./create.ts";
import { Database } from "./database.ts";
import { sqlite } from "./sqlite.ts";
import { quoteText } from "./tokens.ts";

const native = new (sqlite().oo1.DB)(":memory:");
const shop = openShop();

function ours(expression: string): unknown {
  const result = shop.run(`SELECT ${expression}`);
  return result.ok ? result.table.rows[0]![0] : result.fault.message;
}

function theirs(expression: string): unknown {
  try {
    return native.selectValue(`SELECT ${expression}`);
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^.*?result code \d+: /, "") : error;
  }
}

const text = fc.array(
  fc.constantFrom("a", "b", "A", "%", "_", "*", "?", "[", "]", "^", "-", "\\", "é", "É", "🙂", " ", "'"),
  { maxLength: 8 },
);
const value = fc.oneof(
  { weight: 9, arbitrary: text.map((parts) => quoteText(parts.join(""))) },
  { weight: 1, arbitrary: fc.constantFrom("NULL", "12", "3.0", "-1.5", "1e20", "x'4142'") },
);

test.each([
  ["instr", 2],
  ["replace", 3],
  ["trim", 1],
  ["trim", 2],
  ["ltrim", 2],
  ["rtrim", 2],
  ["like", 2],
  ["glob", 2],
] as const)("%s of %d arguments is SQLite's", (name, count) => {
  fc.assert(
    fc.property(fc.array(value, { minLength: count, maxLength: count }), (args) => {
      fc.pre(name !== "instr" || !args.some((arg) => arg.startsWith("x'"))); // blobs are counted in bytes there
      fc.pre(name !== "replace" || args[2] !== "NULL"); // SQLite gives the text when it has nothing to look for
      const call = `${name}(${args.join(", ")})`;
      expect(ours(call), call).toEqual(theirs(call));
    }),
    { numRuns: cases(800, 3000), seed: 11 },
  );
});

test("LIKE with ESCAPE is SQLite's", () => {
  fc.assert(
    fc.property(value, value, fc.constantFrom("'\\'", "'%'", "'a'"), (a, b, mark) => {
      const call = `${a} LIKE ${b} ESCAPE ${mark}`;
      expect(ours(call), call).toEqual(theirs(call));
    }),
    { numRuns: cases(800, 3000), seed: 12 },
  );
});

const long =
  "WITH a AS MATERIALIZED (SELECT printf('%.16300c', 'x') s), b AS MATERIALIZED (SELECT printf('%.16000c', 'x') || 'y' p) SELECT";
const doubled = (leaf: string) =>
  `WITH a AS MATERIALIZED (SELECT printf('%.16300c', 'a') s, printf('%.8000c', 'a') || 'b' p), k0 AS (SELECT ${leaf} v FROM a)${Array.from(
    { length: 13 },
    (_, i) => `, k${i + 1} AS (SELECT v + v v FROM k${i})`,
  ).join("")} SELECT v FROM k13`;

test.each([
  ...["instr(s, p)", "trim(s, p)", "replace(s, p, s)", "s LIKE '%x%x%x%x%x%x%x%x%y'", "s GLOB '*x*x*x*x*x*x*y'"].map(
    (call) => `${long} ${Array.from({ length: 150 }, () => call).join(", ")} FROM a, b`,
  ),
  doubled("instr(s, p)"),
  doubled("s LIKE '%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'"),
])("straight-line calls end in time: %.90s", (sql) => {
  const result = shop.run(sql);
  if (!result.ok) expect(["too_long", "too_large", "syntax"]).toContain(result.fault.error_class);
  expect(shop.run("SELECT 1").ok).toBe(true);
});

test("blobs do not read the clock either", () => {
  for (const call of [
    "date(x'6e6f77')",
    "unixepoch(CAST('now' AS BLOB))",
    "datetime('2024-01-01', x'6c6f63616c74696d65')",
  ]) {
    expect(ours(call), call).toMatch(/must not read the clock/);
  }
});

test("views nested too deep are refused before they are compiled", () => {
  const nested = (depth: number) => `${"SELECT * FROM (".repeat(depth)}SELECT 1 AS x${")".repeat(depth)}`;
  const views = (count: number, depth: number) =>
    createDatabase([
      { name: "t", ddl: "CREATE TABLE t (a)", rows: [[1]] },
      ...Array.from({ length: count }, (_, i) => ({
        name: `v${i}`,
        ddl: `CREATE VIEW v${i} AS ${nested(depth)}`,
        rows: [],
      })),
    ]);
  expect(() => new Database("deep", views(8, 60))).toThrow(/views are too deep: 488 SELECTs/);
  expect(new Database("fine", views(3, 20)).run("SELECT x FROM v2")).toMatchObject({ ok: true });
});
