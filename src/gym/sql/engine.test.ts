// Tests the SQLite engine that all databases share: its memory limit and its behaviour after a crash.
import { expect, test, vi } from "vitest";

/** Loads a separate engine for each test, since limits can only be lowered and crashes are final. */
async function freshEngine() {
  vi.resetModules();
  const [sql, { sqlite }] = await Promise.all([import("./index.ts"), import("./sqlite.ts")]);
  await sql.loadSqlite();
  const bytes = sql.createDatabase([{ name: "t", ddl: "CREATE TABLE t (a)", rows: [[1]] }]);
  sql.limitStatementTime(() => 60_000);
  return { ...sql, sqlite, bytes, open: () => new sql.Database("t", bytes) };
}

/** A statement that holds n rows of 4,000 bytes at once. */
const holding = (rows: number) =>
  `WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT ${rows}),
   m AS MATERIALIZED (SELECT printf('%.4000c', 'x') FROM r) SELECT count(*) FROM m`;

test("a statement's memory limit does not depend on which other databases are open", async () => {
  const { open } = await freshEngine();
  const database = open();
  const fits = (rows: number) => {
    const result = database.run(holding(rows));
    if (!result.ok) expect(result.error).toEqual({ error_class: "too_large", message: "out of memory" });
    return result.ok;
  };
  let [most, least] = [14_000, 18_000];
  while (least - most > 50) {
    const middle = (most + least) >> 1;
    if (fits(middle)) most = middle;
    else least = middle;
  }
  expect(most * 4000).toBeGreaterThan(40e6);
  const others = Array.from({ length: 100 }, open);
  for (const other of others) other.run("SELECT * FROM t");
  expect([fits(most), fits(least), fits(most)]).toEqual([true, false, true]);
  for (const other of others) other.close();
  database.close();
});

test("out of memory because of other databases is unscorable", async () => {
  const { open, sqlite, isUnscorable } = await freshEngine();
  const database = open();
  const scratch = new (sqlite().oo1.DB)(":memory:");
  scratch.exec("PRAGMA hard_heap_limit=20000000"); // as if other connections had allocated the rest
  scratch.close();
  const result = database.run(holding(10_000));
  expect(result).toMatchObject({ ok: false, error: { error_class: "no_memory" } });
  expect(isUnscorable("no_memory")).toBe(true);
  expect(database.run("SELECT a FROM t")).toMatchObject({ ok: true, table: { rows: [[1]] } });
});

test("after an exception thrown through SQLite the engine cannot be used", async () => {
  const { open, bytes, Database, limitStatementTime } = await freshEngine();
  const [database, other] = [open(), open()];
  limitStatementTime(() => {
    throw new RangeError("Maximum call stack size exceeded");
  });
  const crash = expect.objectContaining({ code: "sqlite_crashed" });
  expect(() => database.run(holding(1000))).toThrow(crash);
  limitStatementTime();
  expect(() => database.run("SELECT 1")).toThrow(crash);
  expect(() => other.run("SELECT 1")).toThrow(crash);
  expect(() => new Database("t", bytes)).toThrow(crash);
  other.close();
});

test("an integrity check of a hostile file does not run its author's code", async () => {
  const { sqlite, Database } = await freshEngine();
  const { oo1, capi } = sqlite();
  const file = new oo1.DB(":memory:");
  const endless = "instr(hex(zeroblob(2000000)), hex(zeroblob(1000000)) || '1') >= 0"; // would compare for hours
  file.exec(`PRAGMA ignore_check_constraints=ON;
    CREATE TABLE t (a CHECK (${endless})); INSERT INTO t VALUES (1);
    CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('words');`);
  const database = new Database("hostile", capi.sqlite3_js_db_export(file));
  expect(database.integrityErrors()).toEqual([]);
  expect(database.run("SELECT * FROM f WHERE f MATCH 'words'")).toMatchObject({ ok: false });
  file.exec("UPDATE f_data SET block = x'ffffffff'"); // damage that only FTS5's own code would find
  const damaged = new Database("hostile", capi.sqlite3_js_db_export(file));
  expect(damaged.integrityErrors()).toEqual([]);
  file.close();
});
