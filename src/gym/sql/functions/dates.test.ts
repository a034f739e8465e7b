// Date functions are SQLite's own, but no function can read the clock or the time zone.
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { cases } from "../../../../test/helpers/cases.ts";
import { createDatabase } from "../create.ts";
import { Database } from "../database.ts";
import { ALLOWED_FUNCTIONS } from "../sandbox.ts";
import { loadSqlite } from "../sqlite.ts";

const { oo1 } = await loadSqlite();
const NOW = "x'6e6f7700'"; // "now" followed by a NUL, where SQLite's string ends
const database = new Database(
  "views",
  createDatabase([
    { name: "t", ddl: "CREATE TABLE t (a)", rows: [[1]] },
    { name: "clock", ddl: `CREATE VIEW clock AS SELECT datetime(${NOW}) AS now FROM t`, rows: [] },
    {
      name: "zone",
      ddl: "CREATE VIEW zone AS SELECT datetime('2020-01-01 00:00', x'6c6f63616c74696d6500') AS then_ FROM t",
      rows: [],
    },
  ]),
);
const native = new oo1.DB(":memory:");
const value = (expression: string) => {
  const result = database.run(`SELECT ${expression}`);
  return result.ok ? result.table.rows[0]![0] : result.error.message;
};

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

test.each([
  `datetime(${NOW})`,
  "date()",
  "date('now')",
  "julianday('NOW')",
  "unixepoch(x'73756273656300')",
  "strftime('%s')",
  `strftime('%s', ${NOW})`,
  `timediff(${NOW}, '2020-01-01')`,
  "date(x'6e6f77')",
  "unixepoch(CAST('now' AS BLOB))",
  "datetime('2024-01-01', x'6c6f63616c74696d65')",
  "datetime('2024-01-01', x'6c6f63616c74696d6500')",
  "datetime('2024-01-01', 'LocalTime')",
  "datetime('2024-01-01', x'55544300ff')",
  "strftime('%H', '2024-01-01', '+1 day', 'utc')",
])("%s is refused", (call) => {
  const result = database.run(`SELECT ${call}`);
  expect(result).toMatchObject({
    ok: false,
    error: {
      error_class: "denied",
      message: `not authorized: ${/^\w+/.exec(call)![0]}() must not read the clock or time zone`,
    },
  });
});

test("a view in a data file cannot read them either", () => {
  for (const view of ["clock", "zone"]) {
    expect(database.run(`SELECT * FROM ${view}`)).toMatchObject({ error: { error_class: "denied" } });
  }
});

test("every allowed function depends on its arguments alone", () => {
  const values = ["NULL", "''", "1", "2450000.5", "'now'", NOW, "x'73756273656300'", "'localtime'", "x'75746300'"];
  values.push("x'6c6f63616c74696d6500'", "'2020-01-01 12:00'", "'%s %J'", "'auto'", "'subsec'");
  const lists = ["", ...values, ...values.flatMap((a) => values.map((b) => `${a}, ${b}`))];
  lists.push(...values.map((last) => `'%H', '2020-01-01', ${last}`));
  const all = () => [...ALLOWED_FUNCTIONS].flatMap((name) => lists.map((list) => value(`${name}(${list})`)));
  const under = (date: string, zone: string) => {
    vi.stubEnv("TZ", zone);
    vi.useFakeTimers({ now: new Date(date), toFake: ["Date"] });
    return { hour: new Date(0).getHours(), results: all() };
  };
  const first = under("2001-02-03T04:05:06Z", "UTC");
  const second = under("2031-12-30T21:22:23.456Z", "Asia/Tokyo");
  expect([first.hour, second.hour]).toEqual([0, 9]); // the time zones do differ
  expect(second.results).toEqual(first.results);
  expect(first.results.filter((result) => /clock or time zone/.test(String(result))).length).toBeGreaterThan(200);
});

const time = fc.oneof(
  fc.constantFrom("'2020-02-29'", "'2020-01-02 12:00'", "'1999-12-31 23:59:59.999'", "'12:00'", "'2020-13-01'", "NULL"),
  fc.constantFrom(
    "2459000",
    "2459000.25",
    "'2459000.5'",
    "-1",
    "1e10",
    "x'323032302d30312d3031'",
    "'2020-01-01T00:00+02:00'",
  ),
);
const modifier = fc.constantFrom(
  ..."'+1 month','-3 days','start of year','weekday 2','unixepoch','auto','+12:30','subsec','floor','nonsense',NULL,7".split(
    ",",
  ),
);

test("the date functions are SQLite's own", () => {
  const call = fc.oneof(
    fc.tuple(
      fc.constantFrom("date", "time", "datetime", "julianday", "unixepoch"),
      time,
      fc.array(modifier, { maxLength: 3 }),
    ),
    fc.tuple(
      fc.constantFrom("strftime"),
      time.map((t) => `'%Y-%m-%d %f %J %s %w %%', ${t}`),
      fc.array(modifier, { maxLength: 2 }),
    ),
    fc.tuple(fc.constantFrom("timediff"), fc.tuple(time, time).map(String), fc.constant([])),
  );
  fc.assert(
    fc.property(call, ([name, first, rest]) => {
      const expression = `${name}(${[first, ...rest].join(", ")})`;
      const both = `quote(${expression}) || typeof(${expression})`;
      expect(value(both), expression).toBe(native.selectValue(`SELECT ${both}`));
    }),
    { numRuns: cases(1000, 10_000), seed: 3 },
  );
});

test("julianday is a real number at noon too", () => {
  expect(value("(julianday('2020-01-02 12:00') - julianday('2020-01-01 12:00')) / 2")).toBe(0.5);
  expect(value("typeof(julianday('2020-01-01 12:00'))")).toBe("real");
});
