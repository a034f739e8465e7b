// The SQLite engine: one WebAssembly module for the whole process, loaded once.
import type { CAPI, Sqlite3Static, WASM_API } from "@sqlite.org/sqlite-wasm";
import { messageOf, SqlEnvError } from "../../errors.ts";
import { MAX_HEAP_BYTES } from "./limits.ts";

/** A pointer into the module's memory. */
export type Pointer = number;

export interface Sqlite {
  readonly capi: CAPI;
  readonly oo1: Sqlite3Static["oo1"];
  readonly wasm: WASM_API & { readonly exports: SqliteExports };
  /** SQLite's version, such as "3.50.4". */
  readonly version: string;
}

/**
 * C functions that are called directly, without the wrapper's argument conversion, because they run once per cell or
 * row.
 */
export interface SqliteExports {
  malloc(bytes: number): Pointer;
  free(pointer: Pointer): void;
  sqlite3_malloc(bytes: number): Pointer;
  sqlite3_free(pointer: Pointer): void;
  sqlite3_step(statement: Pointer): number;
  sqlite3_finalize(statement: Pointer): number;
  sqlite3_column_count(statement: Pointer): number;
  sqlite3_column_type(statement: Pointer, column: number): number;
  sqlite3_column_double(statement: Pointer, column: number): number;
  sqlite3_column_int64(statement: Pointer, column: number): bigint;
  sqlite3_column_text(statement: Pointer, column: number): Pointer;
  sqlite3_column_blob(statement: Pointer, column: number): Pointer;
  sqlite3_column_bytes(statement: Pointer, column: number): number;
  sqlite3_column_name(statement: Pointer, column: number): Pointer;
  sqlite3_value_type(value: Pointer): number;
  sqlite3_value_text(value: Pointer): Pointer;
  sqlite3_value_blob(value: Pointer): Pointer;
  sqlite3_value_bytes(value: Pointer): number;
  sqlite3_result_int(context: Pointer, value: number): void;
  sqlite3_result_error(context: Pointer, message: Pointer, bytes: number): void;
  sqlite3_result_error_code(context: Pointer, code: number): void;
  sqlite3_user_data(context: Pointer): Pointer;
  sqlite3_status64(which: number, current: Pointer, highest: Pointer, reset: number): number;
  sqlite3_db_status(db: Pointer, which: number, current: Pointer, highest: Pointer, reset: number): number;
  sqlite3_prepare_v3(
    db: Pointer,
    sql: Pointer,
    bytes: number,
    flags: number,
    statement: Pointer,
    tail: Pointer,
  ): number;
}

let loading: Promise<Sqlite> | undefined;
let loaded: Sqlite | undefined;

/**
 * Loads SQLite (about 30 ms the first time). After that, every function in this folder is synchronous.
 *
 * @example
 * await loadSqlite();
 * const data = bundledDataSet(); // synchronous from here on
 */
export function loadSqlite(): Promise<Sqlite> {
  loading ??= load();
  return loading;
}

let crash: SqlEnvError | undefined;

/**
 * Records that SQLite crashed in the middle of a call. Its memory is in an unknown state, so nothing may use it again.
 */
export function sqliteCrashed(cause: unknown): SqlEnvError {
  crash ??= new SqlEnvError("sqlite_crashed", {
    what: "SQLite crashed",
    value: messageOf(cause),
    remedy: "restart the process",
    cause,
  });
  return crash;
}

export function hasCrashed(): boolean {
  return crash !== undefined;
}

/** The engine. Throws before `loadSqlite()` and after a crash. */
export function sqlite(): Sqlite {
  if (crash) throw crash;
  if (!loaded) throw new Error("SQLite is not loaded yet: await loadSqlite() first");
  return loaded;
}

async function load(): Promise<Sqlite> {
  const silent = () => {};
  // Read by the module when it starts: without this, every failed query is printed to stderr.
  Object.assign(globalThis, { sqlite3ApiConfig: { warn: silent, error: silent, debug: silent, log: silent } });
  const { default: initialize } = await import("@sqlite.org/sqlite-wasm");
  const { capi, wasm, oo1, version }: Sqlite3Static = await initialize({ print: silent, printErr: silent });
  const scratch = new oo1.DB(":memory:");
  // Applies to the whole process. It can only be lowered later, and must be set before the first authorizer.
  scratch.exec(`PRAGMA hard_heap_limit=${MAX_HEAP_BYTES}`);
  scratch.close();
  loaded = { capi, oo1, wasm: wasm as Sqlite["wasm"], version: version.libVersion };
  return loaded;
}

const [UTF8, INNOCUOUS] = [1, 0x200000];

/** Flag of functions whose value depends only on their arguments. */
export const DETERMINISTIC = 0x800;

/**
 * Registers a function on a connection by a pointer that all connections may share. `count` −1 allows any number of
 * arguments; `data` is what `sqlite3_user_data` returns.
 */
export function registerFunction(
  db: Pointer,
  name: string,
  count: number,
  pointer: Pointer,
  data: Pointer,
  flags: number = DETERMINISTIC,
): void {
  const { capi } = sqlite();
  // The wrapper's types allow only JavaScript functions, but it passes pointers through.
  const args = [db, name, count, UTF8 | flags | INNOCUOUS, data, pointer, 0, 0, 0] as const;
  (capi.sqlite3_create_function_v2 as unknown as (...args: readonly unknown[]) => number)(...args);
}
