// The charged functions return the same bytes as SQLite's own and stop when their budget is spent.
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cases, some } from "../../../../test/helpers/cases.ts";
import { openShop } from "../../../../test/helpers/fixtures.ts";
import { createDatabase } from "../create.ts";
import { Database } from "../database.ts";
import { limitStatementTime } from "../sandbox.ts";
import { sqlite } from "../sqlite.ts";

const native = new (sqlite().oo1.DB)(":memory:");
const shop = openShop();

beforeAll(() => limitStatementTime(() => 60_000)); // effectively no time limit: only instructions matter here
afterAll(() => limitStatementTime());

function ours(expression: string): unknown {
  const result = shop.run(`SELECT ${expression}`);
  return result.ok ? result.table.rows[0]![0] : result.error.message;
}

function theirs(expression: string): unknown {
  try {
    return native.selectValue(`SELECT ${expression}`);
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^.*?result code \d+: /, "") : error;
  }
}

// Letters, pattern characters, a NUL and invalid UTF-8 (a lone continuation byte, truncated and overlong sequences,
// 0xff).
const PARTS = [..."abA%_*?[]^-\\éÉ🙂 '"].map((character) => Buffer.from(character).toString("hex"));
PARTS.push("00", "80", "c3", "e282", "c080", "ff", "eda080", "efbfbf");
const bytes = fc.array(fc.constantFrom(...PARTS), { maxLength: 8 }).map((parts) => parts.join(""));
const value = fc.oneof(
  { weight: 8, arbitrary: bytes.map((hex) => `CAST(x'${hex}' AS TEXT)`) },
  { weight: 1, arbitrary: bytes.map((hex) => `x'${hex}'`) },
  { weight: 1, arbitrary: fc.constantFrom("NULL", "12", "3.0", "-1.5", "1e20", "-9223372036854775808") },
);

/** SQL for the type and bytes of a value. */
const exactly = (call: string) => `typeof(${call}) || ':' || coalesce(hex(CAST(${call} AS BLOB)), '')`;

test.each([
  ["instr", 2],
  ["replace", 3],
  ["trim", 1],
  ["trim", 2],
  ["ltrim", 2],
  ["rtrim", 2],
  ["like", 2],
  ["like", 3],
  ["glob", 2],
  ["upper", 1],
  ["lower", 1],
  ["hex", 1],
  ["quote", 1],
  ["length", 1],
  ["substr", 2],
  ["substr", 3],
  ["printf", 1],
  ["printf", 3],
  ["unicode", 1],
  ["abs", 1],
  ["round", 1],
  ["round", 2],
  ["sign", 1],
  ["char", 0],
  ["char", 2],
  ["sqrt", 1],
  ["ceil", 1],
  ["log", 1],
  ["log", 2],
  ["mod", 2],
  ["concat", 0],
  ["concat", 1],
  ["concat", 3],
  ["concat_ws", 1],
  ["concat_ws", 3],
] as const)("%s of %d arguments is SQLite's", (name, count) => {
  fc.assert(
    fc.property(fc.array(value, { minLength: count, maxLength: count }), (args) => {
      const call = exactly(`${name}(${args.join(", ")})`);
      expect(ours(call), call).toEqual(theirs(call));
    }),
    { numRuns: cases(800, 3000), seed: 11 },
  );
});

test("LIKE with ESCAPE is SQLite's", () => {
  fc.assert(
    fc.property(value, value, fc.constantFrom("'\\'", "'%'", "'_'", "'a'", "x'ff'"), (a, b, mark) => {
      const call = `${a} LIKE ${b} ESCAPE ${mark}`;
      expect(ours(call), call).toEqual(theirs(call));
    }),
    { numRuns: cases(800, 3000), seed: 12 },
  );
});

test("bytes after a NUL and bytes that are not UTF-8 are kept", () => {
  expect(ours("instr('a' || char(0) || 'b', 'b')")).toBe(3);
  expect(ours("hex(replace(x'ff41', 'A', 'B'))")).toBe("FF42");
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
  if (!result.ok) expect(["too_long", "too_large", "syntax"]).toContain(result.error.error_class);
  expect(shop.run("SELECT 1").ok).toBe(true);
});

const charged = [
  "max(concat(printf('%.16000c', 'x'), n))",
  "max(date(n, '+1 month', '+1 month', '+1 month', '+1 month', '+1 month', '+1 month', '+1 month', '+1 month'))",
  "sum(n LIKE '%' || n)",
  "max(length(upper(printf('%16000d', n))))",
  "sum(length(replace(printf('%16000d', n), ' ', 'x')))",
  "max(strftime('%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J%J', n))",
  "sum('abcdefghijklmnopqrstuvwxyz' || n LIKE '%y%x%w%')",
];
test.each(some(3, charged))(
  "the work of functions is charged: %s ends as too_long at the same instruction each time",
  (expression) => {
    const sql = `WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 2500000) SELECT ${expression} FROM r`;
    expect(shop.run(sql)).toMatchObject({ ok: false, error: { error_class: "too_long" } });
    const short = () => shop.run(sql.replace("2500000", "2000"));
    const [first, second] = [short(), short()];
    expect(first.ok && second.ok && first.instructions === second.instructions).toBe(true);
  },
);

test.each([
  "abs(s)",
  "round(s)",
  "round(1.5, s)",
  "sign(s)",
  "unicode(s)",
  "char(s)",
  "sqrt(s)",
  "ceil(s)",
  "mod(7, s)",
  "pow(s, s)",
  "substr('abc', s)",
  "printf('%d', s)",
])("numbers read from long texts are charged: %s", (call) => {
  const work = (expression: string) => {
    const result = shop.run(`WITH a AS MATERIALIZED (SELECT printf('%.16000c', '9') s) SELECT ${expression} FROM a`);
    return result.ok ? result.instructions : 0;
  };
  expect(work(call) - work("s")).toBeGreaterThanOrEqual(16_000 / 32);
});

test("ordinary work on half a million rows fits the budget", () => {
  const rows =
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 500000) SELECT count(*) FROM r WHERE";
  expect(shop.run(`${rows} strftime('%Y', 2450000 + n) > '2000'`)).toMatchObject({ ok: true });
  expect(shop.run(`${rows} 'customer number ' || n || ' of the shop' LIKE '%of the%shop%'`)).toMatchObject({
    ok: true,
  });
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
