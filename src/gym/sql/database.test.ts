import { expect, test } from "vitest";
import { openShop, shopBytes } from "../../../test/helpers/fixtures.ts";
import { createDatabase } from "./create.ts";
import { Database } from "./database.ts";
import { DatabasePool } from "./database-pool.ts";

test("describes tables, keys, references and views", () => {
  const shop = openShop();
  expect(shop.tables.map((table) => [table.name, table.kind])).toEqual([
    ["customers", "table"],
    ["orders", "table"],
    ["group", "table"],
    ["oslo", "view"],
  ]);
  const orders = shop.table("ORDERS")!;
  expect(orders.foreign_keys).toEqual([{ column: "customer_id", table: "customers", references: "id" }]);
  expect(orders.columns[0]).toEqual({ name: "id", type: "INTEGER", primary_key: true, not_null: false });
  expect(shop.rowCount(orders)).toBe(5);
  expect(shop.table("nope")).toBeUndefined();
});

test("samples a table whose name is a reserved word", () => {
  const shop = openShop();
  const result = shop.sample(shop.table("group")!, 2);
  expect(result).toMatchObject({
    ok: true,
    table: {
      columns: ["code", "note"],
      rows: [
        ["a", "x, y"],
        ["b", ""],
      ],
    },
  });
});

test("keeps integers exact, distinguishes reals from integers, shows blobs and unusual text", () => {
  const bytes = createDatabase([
    {
      name: "t",
      ddl: "CREATE TABLE t (a, b, c, d)",
      rows: [[9007199254740993n, 2.5, "naïve\u0000tail", null]],
    },
  ]);
  const database = new Database("t", bytes);
  expect(database.run("SELECT a, b, c, d, 3.0, 3, x'0aff' FROM t")).toMatchObject({
    ok: true,
    table: {
      rows: [[9007199254740993n, 2.5, "naïve\u0000tail", null, 3, 3, "x'0aff'"]],
      types: ["integer", "real", "text", "null", "real", "integer", "blob"],
    },
  });
  expect(database.run("SELECT -9223372036854775808, 9007199254740991, 9007199254740992")).toMatchObject({
    table: { rows: [[-9223372036854775808n, 9007199254740991, 9007199254740992n]] },
  });
});

test("truncates long results and says so", () => {
  const shop = openShop();
  const numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5000) SELECT x FROM c";
  const result = shop.run(numbers);
  expect(result.ok && result.table.rows.length).toBe(1000);
  expect(result.ok && result.table.truncated).toMatch(/first 1000 rows/);
  const wide = shop.run(`SELECT printf('%.16000c', 'x') FROM (${numbers})`);
  expect(wide.ok && wide.table.rows.length).toBeLessThan(100);
  expect(wide.ok && wide.table.truncated).toMatch(/too large/);
});

test("texts longer than a cell can be sampled, truncated and searched", () => {
  const long = (length: number) => `${"word ".repeat(length / 5 - 1)}needl`;
  const database = new Database(
    "long",
    createDatabase([
      {
        name: "t",
        ddl: "CREATE TABLE t (id, body)",
        rows: [20_000, 900_000, 10].map((length, i) => [i, long(length)]),
      },
      { name: "huge", ddl: "CREATE TABLE huge (body)", rows: [[long(1_500_000)]] },
    ]),
  );
  const sampled = database.sample(database.table("t")!);
  expect(sampled).toMatchObject({ ok: true, table: { cut_at: 16_384, truncated: expect.stringContaining("16384") } });
  expect(sampled.ok && sampled.table.rows.map(([, body]) => String(body).length)).toEqual([16_384, 16_384, 10]);
  const value = (sql: string) => {
    const result = database.run(sql);
    return result.ok ? result.table.rows : result.error;
  };
  expect(value("SELECT length(body), substr(body, -5), instr(body, 'needl'), body LIKE '%needl' FROM t")).toEqual([
    [20_000, "needl", 19_996, 1],
    [900_000, "needl", 899_996, 1],
    [10, "needl", 6, 1],
  ]);
  expect(value("SELECT count(*) FROM t WHERE upper(body) GLOB '*NEEDL' OR replace(body, 'word', 'x') = ''")).toEqual([
    [3],
  ]);
  expect(value("SELECT id FROM t ORDER BY body DESC")).toHaveLength(3);
  expect(value("SELECT substr(body, 1, 3) FROM huge")).toMatchObject({ error_class: "too_large" });
  expect(value("SELECT count(*), max(octet_length(body)) FROM huge")).toEqual([[1, 1_500_000]]);
});

test("the size of a row is limited, also with blobs, and the result says what was truncated", () => {
  const shop = openShop();
  const columns = Array.from({ length: 490 }, () => "b").join(", ");
  const wide = shop.run(`WITH t(b) AS (SELECT CAST(printf('%.16000c', 'x') AS BLOB)) SELECT ${columns} FROM t`);
  expect(wide).toMatchObject({
    ok: true,
    table: { cut_at: 2040, truncated: "only the first 2040 bytes of a cell are kept" },
  });
  expect(wide.ok && wide.table.rows[0]!.every((cell) => cell === `x'${"78".repeat(2040)}'`)).toBe(true);
  const split = shop.run(`WITH t(b) AS (SELECT printf('%.2039c', 'x') || '\u00e9') SELECT ${columns} FROM t`);
  expect(split.ok && split.table.rows[0]![0]).toBe("x".repeat(2039)); // é is not cut in half
  expect(shop.run("SELECT CAST(printf('%.16000c', 'x') AS BLOB) AS b")).toMatchObject({
    table: { rows: [[`x'${"78".repeat(16_000)}'`]], truncated: null },
  });
});

test("double-quoted text is a string only where a data set asks for it", () => {
  const lenient = openShop({ doubleQuotedStrings: true });
  expect(lenient.run('SELECT count(*) FROM customers WHERE city = "Oslo"')).toMatchObject({ table: { rows: [[2]] } });
  expect(openShop().run('SELECT count(*) FROM customers WHERE city = "Oslo"')).toMatchObject({
    error: { error_class: "unknown_column" },
  });
});

const header = (bytes: Uint8Array, offset: number, values: readonly number[]) => {
  const copy = bytes.slice();
  copy.set(values, offset);
  return copy;
};

test.each([
  ["empty", new Uint8Array(0), /is empty/],
  [
    "not SQLite",
    new TextEncoder().encode("PK\u0003\u0004 this is a zip file, not a database".repeat(10)),
    /not a SQLite/,
  ],
  ["encrypted", shopBytes.map((byte, i) => byte ^ (i % 251)), /encrypted/],
  ["cut in its header", shopBytes.slice(0, 50), /truncated/],
  ["cut in half", shopBytes.slice(0, shopBytes.length / 2), /truncated/],
  ["with a damaged schema page", header(shopBytes, 100, new Array(200).fill(0xff)), /cannot be read/],
])("refuses a file that is %s", (_, bytes, message) => {
  expect(() => new Database("x", bytes)).toThrow(message);
  expect(() => new Database("x", bytes)).toThrow(expect.objectContaining({ code: "bad_database" }));
});

test("reads a file written in WAL mode", () => {
  const wal = header(shopBytes, 18, [2, 2]);
  expect(new Database("x", wal).run("SELECT count(*) FROM customers")).toMatchObject({ table: { rows: [[5]] } });
});

test("damage inside a table is an error of the query and found by the integrity check", () => {
  const damaged = shopBytes.slice();
  damaged.fill(0xff, 4096, 4096 + 400);
  const database = new Database("x", damaged);
  expect(database.integrityErrors().length).toBeGreaterThan(0);
  expect(database.run("SELECT * FROM customers")).toMatchObject({ ok: false, error: { error_class: "corrupt" } });
  expect(openShop().integrityErrors()).toEqual([]);
});

/** A database with three rows whose column `g` is computed by an expression stored in the file. */
const generated = (expression: string) =>
  new Database(
    "x",
    createDatabase([
      { name: "t", ddl: `CREATE TABLE t (a, g AS (${expression}) NOT NULL)`, rows: [["41"], ["42"], ["43"]] },
    ]),
  );

test.each([
  "unhex(a)",
  "unhex(a || '!', '!')",
  "json_extract('[' || a || ']', '$[0]')",
  "('[' || a || ']') -> 0",
  "('[' || a || ']') ->> 0",
  "hex(zeroblob(a))",
  "unistr_quote(a)",
  "json_quote(a)",
])("a generated column calls only allowed functions, in a query and in the integrity check: %s", (expression) => {
  const database = generated(expression);
  const message = expect.stringMatching(/not authorized: function \S+$/);
  expect(database.run("SELECT g FROM t")).toMatchObject({ ok: false, error: { error_class: "denied", message } });
  expect(database.run("SELECT a FROM t")).toMatchObject({ ok: true, table: { rows: [["41"], ["42"], ["43"]] } });
  expect(database.integrityErrors()).toEqual([
    expect.stringMatching(/^the check was given up: not authorized: function/),
  ]);
  database.close();
});

test("a generated column of allowed functions is read and checked", () => {
  const database = generated(
    "upper(a) || CASE WHEN a LIKE '%1' OR a GLOB '*2' THEN date('2020-01-31', '+1 month') ELSE '' END",
  );
  expect(database.run("SELECT g FROM t")).toMatchObject({
    table: { rows: [["412020-03-02"], ["422020-03-02"], ["43"]] },
  });
  expect(database.integrityErrors()).toEqual([]);
  database.close();
});

test.each([
  ["length(printf('%.600000c', 'x') || printf('%.600000c', 'x'))", "the check was given up: string or blob too big"],
  ["trim(printf('%.90000c', 'x') || a, printf('%.90000c', 'y'))", "the check was given up: it took too long"],
])("the integrity check stops where a generated column takes too much: %s", (expression, error) => {
  const database = generated(expression);
  expect(database.integrityErrors()).toEqual([error]);
  database.close();
});

test("the integrity check allows long values", () => {
  const long = "x".repeat(1_500_000);
  const ddl =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL, n INTEGER NOT NULL, s REAL DEFAULT CURRENT_TIMESTAMP)";
  const database = new Database("x", createDatabase([{ name: "t", ddl, rows: [[1, long, 2, 1.5]] }]));
  expect(database.integrityErrors()).toEqual([]);
  database.close();
});

test("a pool opens each database once and closes the least recently used", () => {
  let reads = 0;
  const read = () => {
    reads++;
    return shopBytes;
  };
  const pool = new DatabasePool({ names: ["a", "b", "c"], read, maxOpenBytes: 2 * shopBytes.length });
  expect(pool.get("a")).toBe(pool.get("a"));
  pool.get("b");
  pool.get("a");
  pool.get("c"); // closes b
  expect(reads).toBe(3);
  pool.get("a");
  expect(reads).toBe(3);
  expect(pool.get("b").run("SELECT 1").ok).toBe(true);
  expect(reads).toBe(4);
  expect(() => pool.get("d")).toThrow("no such database: d");
  pool.close();
});
