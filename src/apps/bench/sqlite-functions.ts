// Measures the overhead of charging SQLite's functions: queries over 500,000 rows in the sandbox and on an unguarded
// connection.
import { Database, type loadSqlite } from "../../gym/sql/index.ts";
import { median } from "./median.ts";

type Engine = Awaited<ReturnType<typeof loadSqlite>>;

export interface FunctionBench {
  readonly where: string;
  readonly guarded_ms: number;
  readonly sqlite_ms: number;
  readonly ratio: number;
}

const ROWS = 500_000;
const ROUNDS = 5;

const CONDITIONS = [
  "strftime('%Y', day) = '2015'",
  "date(day, '+1 month') > '2015-01-01'",
  "name LIKE '%of the%Oslo%'",
  "name GLOB '*of the*Oslo*'",
  "instr(name, 'Oslo') > 0",
  "replace(name, 'shop', 'market') = 'x'",
  "upper(name) = 'X'",
  "substr(name, 1, 8) = 'customer'",
  "length(name) > 40",
];

/** Median times over rounds that alternate between the two. */
export function benchFunctions({ oo1, capi, wasm }: Engine): FunctionBench[] {
  const maker = new oo1.DB(":memory:");
  maker.exec(
    `CREATE TABLE t (id INTEGER PRIMARY KEY, day TEXT, name TEXT);
     WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT ${ROWS}) INSERT INTO t
     SELECT n, date('2000-01-01', (n % 9000) || ' days'), 'customer number ' || n || ' of the shop in ' || char(65 + n % 26) || 'slo' FROM r`,
  );
  const bytes = capi.sqlite3_js_db_export(maker);
  maker.close();
  const guarded = new Database("functions", bytes);
  const native = new oo1.DB(":memory:");
  const copy = wasm.allocFromTypedArray(bytes);
  capi.sqlite3_deserialize(native, "main", copy, bytes.length, bytes.length, capi.SQLITE_DESERIALIZE_READONLY);
  const results = CONDITIONS.map((where) => {
    const sql = `SELECT count(*) FROM t WHERE ${where}`;
    const times = Array.from({ length: ROUNDS }, () => ({
      native: timed(() => native.selectValue(sql)),
      guarded: timed(() => {
        const result = guarded.run(sql);
        if (!result.ok) throw new Error(`${where}: ${result.error.message}`);
      }),
    }));
    const [guarded_ms, sqlite_ms] = [
      median(times.map((time) => time.guarded)),
      median(times.map((time) => time.native)),
    ];
    return { where, guarded_ms, sqlite_ms, ratio: Math.round((100 * guarded_ms) / sqlite_ms) / 100 };
  });
  guarded.close();
  native.close();
  wasm.dealloc(copy);
  return results;
}

function timed(run: () => unknown): number {
  const start = performance.now();
  run();
  return Math.round(10 * (performance.now() - start)) / 10;
}
