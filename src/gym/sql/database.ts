// A sandboxed read-only database: opened from bytes, described, sampled, and queried one SELECT at a time.
import { messageOf, SqlEnvError } from "../../errors.ts";
import { isSqlite } from "./encoding.ts";
import { quoteName, tokenizeSql } from "./lexer.ts";
import {
  MAX_CELL_BYTES,
  MAX_CHECK_INSTRUCTIONS,
  MAX_CHECK_MILLISECONDS,
  MAX_HUGE_VALUE_BYTES,
  MAX_INSTRUCTIONS,
  MAX_RESULT_BYTES,
  MAX_ROWS,
  MAX_SQL_BYTES,
  MAX_TABLES,
  MAX_VIEW_SELECTS,
  PAGE_CACHE_KIB,
  SAMPLE_ROWS,
} from "./limits.ts";
import {
  type BudgetReport,
  hasUsedUpMemory,
  LARGER_VALUES,
  limitConnection,
  readableNames,
  sandboxConnection,
  withBudget,
  withLargerValues,
} from "./sandbox.ts";
import { classifyError, isNoMemory, type SqlError } from "./sql-error.ts";
import { hasCrashed, type Pointer, sqlite, sqliteCrashed } from "./sqlite.ts";

/** One value. Integers beyond 2^53 are bigints; blobs are shown as `x'0a0b'`. */
export type Cell = null | number | bigint | string;

export type StorageClass = "null" | "integer" | "real" | "text" | "blob";

export interface ResultTable {
  readonly columns: readonly string[];
  /** The widest storage class in each column: distinguishes 3.0 from 3. */
  readonly types: readonly StorageClass[];
  readonly rows: readonly (readonly Cell[])[];
  /** A note about what was truncated; null if the result is complete. */
  readonly truncated: string | null;
  /** Whether there were more rows. */
  readonly has_more?: boolean;
  /** Bytes kept of each cell, if any cell was longer. */
  readonly cut_at?: number;
  /** The storage class of each cell, if `RunOptions.classes` is set. */
  readonly classes?: readonly (readonly StorageClass[])[];
}

export interface Column {
  readonly name: string;
  /** The declared type; may be empty. */
  readonly type: string;
  readonly primary_key: boolean;
  readonly not_null: boolean;
}

export interface ForeignKey {
  readonly column: string;
  readonly table: string;
  readonly references: string;
}

export interface Table {
  readonly name: string;
  readonly kind: "table" | "view";
  readonly columns: readonly Column[];
  readonly foreign_keys: readonly ForeignKey[];
}

export type RunResult =
  | { readonly ok: true; readonly table: ResultTable; readonly instructions: number }
  | { readonly ok: false; readonly error: SqlError };

export interface OpenOptions {
  /** Read "text" in double quotes as a string if there is no such column, as older data sets expect. @default false */
  readonly doubleQuotedStrings?: boolean;
}

export interface RunOptions {
  /** @default MAX_ROWS */
  readonly maxRows?: number;
  /** @default MAX_RESULT_BYTES */
  readonly maxBytes?: number;
  /** Also return the storage class of each cell, which distinguishes 3 from 3.0 and a blob from text. @default false */
  readonly classes?: boolean;
  /** Maximum virtual-machine instructions. @default MAX_INSTRUCTIONS */
  readonly maxInstructions?: number;
}

const [ROW, DONE] = [100, 101];
const [INTEGER, FLOAT, TEXT, BLOB, NULL] = [1, 2, 3, 4, 5];
const CLASSES: readonly StorageClass[] = ["null", "integer", "real", "text", "blob", "null"];
const WIDTH: Record<StorageClass, number> = { null: 0, integer: 1, real: 2, text: 3, blob: 4 };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * A read-only database. Any number of environments may share one: no call changes it.
 *
 * @example
 * await loadSqlite();
 * const database = new Database("shop", readFileSync("shop.sqlite"));
 * const result = database.run("SELECT name FROM item LIMIT 3");
 * console.log(result.ok ? result.table.rows : result.error.message);
 */
export class Database {
  readonly name: string;
  readonly byteLength: number;
  /** Whether "text" in double quotes may be a string. */
  readonly doubleQuotedStrings: boolean;
  readonly tables: readonly Table[];
  readonly #db: Pointer;
  readonly #memory: Pointer;
  readonly #readable: ReadonlySet<string>;
  readonly #counts = new Map<string, number>();
  /** Statements that exceeded a lowered limit, with that limit: training repeats the same ones again and again. */
  readonly #tooLong = new Map<string, number>();
  #closed = false;

  /** Opens a copy of `bytes`; `loadSqlite()` must have been awaited. Throws SqlEnvError `bad_database`. */
  constructor(name: string, bytes: Uint8Array, { doubleQuotedStrings = false }: OpenOptions = {}) {
    this.name = name;
    this.byteLength = bytes.length;
    this.doubleQuotedStrings = doubleQuotedStrings;
    checkHeader(name, bytes);
    this.#memory = copyToHeap(name, bytes);
    try {
      this.#db = deserialize(this.#memory, bytes.length);
    } catch (error) {
      sqlite().wasm.exports.free(this.#memory);
      throw bad(name, "the database cannot be opened", messageOf(error));
    }
    try {
      if (doubleQuotedStrings) {
        const { capi } = sqlite();
        capi.sqlite3_db_config(this.#db, capi.SQLITE_DBCONFIG_DQS_DML, 1, 0);
      }
      limitConnection(this.#db);
      this.tables = withBudget({ db: this.#db }, () => {
        for (const pragma of [`cache_size=-${PAGE_CACHE_KIB}`, "cell_size_check=ON"]) this.#exec(`PRAGMA ${pragma}`);
        return this.#readSchema();
      }).value;
      this.#readable = readableNames(this.tables.map((table) => table.name));
      sandboxConnection(this.#db);
    } catch (error) {
      if (isCrash(error)) throw sqliteCrashed(error);
      this.close();
      if (error instanceof SqlEnvError) throw error;
      throw bad(name, "the database cannot be read", messageOf(error));
    }
  }

  /** Finds a table by name, in any letter case. */
  table(name: string): Table | undefined {
    const wanted = name.toLowerCase();
    return this.tables.find((table) => table.name.toLowerCase() === wanted);
  }

  /** Number of rows in a table; null if counting took too long. */
  rowCount(table: Table): number | null {
    const known = this.#counts.get(table.name);
    if (known !== undefined) return known;
    const result = this.run(`SELECT count(*) FROM ${quoteName(table.name)}`);
    if (!result.ok) return null;
    const count = Number(result.table.rows[0]![0]);
    this.#counts.set(table.name, count);
    return count;
  }

  /** Returns the first rows of a table. */
  sample(table: Table, rows: number = SAMPLE_ROWS): RunResult {
    return this.run(`SELECT * FROM ${quoteName(table.name)} LIMIT ${rows}`);
  }

  /** Runs one SELECT within the limits. Never throws because of the SQL; the same SQL always gives the same result. */
  run(sql: string, options: RunOptions = {}): RunResult {
    const { maxRows = MAX_ROWS, maxBytes = MAX_RESULT_BYTES, classes = false } = options;
    const { maxInstructions = MAX_INSTRUCTIONS } = options;
    if (this.#closed) throw new Error(`database ${this.name} is closed`);
    const refusal = refuseText(sql);
    if (refusal) return { ok: false, error: refusal };
    const isWhole = maxRows >= MAX_ROWS && maxBytes >= MAX_RESULT_BYTES; // fewer rows may take fewer instructions
    if (isWhole && maxInstructions <= (this.#tooLong.get(sql) ?? 0)) return { ok: false, error: TOO_LONG };
    const { value, report } = this.#withBudget(maxInstructions, () => {
      const kept = { maxRows, maxBytes, classes };
      let result = this.#run(sql, kept);
      for (const room of LARGER_VALUES) {
        if (result.ok || result.error.message !== TOO_BIG) break;
        result = withLargerValues(this.#db, room, () => this.#run(sql, kept));
      }
      return result;
    });
    if (value.ok) return { ...value, instructions: report.instructions };
    const error = explain(value.error, report, sql);
    const isUsual = maxRows === MAX_ROWS && maxBytes === MAX_RESULT_BYTES;
    if (error === TOO_LONG && isUsual) this.#rememberTooLong(sql, maxInstructions);
    return { ok: false, error };
  }

  #rememberTooLong(sql: string, instructions: number): void {
    // Not at the full limit: servers share time between clients by how long statements run, so one that takes a second
    // must take it each time.
    if (instructions >= MAX_INSTRUCTIONS) return;
    if (this.#tooLong.size >= TOO_LONG_KEPT) this.#tooLong.clear();
    this.#tooLong.set(sql, instructions);
  }

  /** Damage that SQLite's integrity check finds, one line each; empty for an intact file. */
  integrityErrors(): string[] {
    // Uses a new connection to the same bytes, because the sandboxed one denies PRAGMA. It has the same limits. CHECK
    // constraints, which are code from the file, do not run; generated columns that are NOT NULL do.
    const db = deserialize(this.#memory, this.byteLength);
    try {
      const { capi } = sqlite();
      limitConnection(db);
      capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LENGTH, MAX_HUGE_VALUE_BYTES);
      const budget = { db, instructions: MAX_CHECK_INSTRUCTIONS, milliseconds: MAX_CHECK_MILLISECONDS };
      const { value: lines } = withBudget(budget, () => {
        for (const pragma of ["cell_size_check", "ignore_check_constraints"]) select(db, `PRAGMA ${pragma}=ON`);
        return select(db, "PRAGMA quick_check(10)").rows.map((row) => String(row[0]));
      });
      return lines.length === 1 && lines[0] === "ok" ? [] : lines;
    } catch (error) {
      if (isCrash(error)) throw sqliteCrashed(error);
      const message = messageOf(error);
      if (message === "interrupted") return ["the check was given up: it took too long"];
      return [message === TOO_BIG || NOT_AUTHORIZED.test(message) ? `the check was given up: ${message}` : message];
    } finally {
      sqlite().capi.sqlite3_close_v2(db);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (hasCrashed()) return;
    const { capi, wasm } = sqlite();
    capi.sqlite3_close_v2(this.#db);
    wasm.exports.free(this.#memory);
  }

  #run(
    sql: string,
    { maxRows, maxBytes, classes }: Required<Omit<RunOptions, "maxInstructions">>,
  ): { ok: true; table: ResultTable } | { ok: false; error: SqlError } {
    const { wasm, capi } = sqlite();
    const prepared = prepare(this.#db, sql);
    if (!prepared.ok) return prepared;
    const { statement } = prepared;
    try {
      const isRead = capi.sqlite3_stmt_readonly(statement) !== 0 && capi.sqlite3_stmt_isexplain(statement) === 0;
      if (!isRead || wasm.exports.sqlite3_column_count(statement) === 0) {
        return { ok: false, error: notSelect("only one SELECT statement is allowed") };
      }
      const limits = { maxRows, maxBytes, classes, maxRowBytes: MAX_RESULT_BYTES, maxCellBytes: MAX_CELL_BYTES };
      const read = this.#readRows(statement, limits);
      if (read.code === ROW || read.code === DONE) return { ok: true, table: read.table };
      return { ok: false, error: lastError(this.#db, read.code) };
    } finally {
      if (!hasCrashed()) wasm.exports.sqlite3_finalize(statement);
    }
  }

  #readRows(statement: Pointer, limits: ReadLimits): ReturnType<typeof readRows> {
    try {
      return readRows(statement, limits);
    } catch (error) {
      throw sqliteCrashed(error); // thrown here, before any clean-up runs
    }
  }

  /**
   * Runs work within a budget. An exception that passes through SQLite (a trap, a stack overflow, an error in a
   * callback) leaves the shared engine in an unknown state.
   */
  #withBudget<T>(instructions: number | undefined, work: () => T): { value: T; report: BudgetReport } {
    try {
      return withBudget({ db: this.#db, readable: this.#readable, instructions }, work);
    } catch (error) {
      throw error instanceof SqlEnvError ? error : sqliteCrashed(error);
    }
  }

  #exec(sql: string): void {
    select(this.#db, sql);
  }

  #readSchema(): Table[] {
    const listed = select(
      this.#db,
      `SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
       AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY rowid`,
    );
    if (listed.rows.length > MAX_TABLES)
      throw bad(this.name, "the database has too many tables", `${listed.rows.length}`);
    const selects = listed.rows
      .filter(([, type]) => type === "view")
      .reduce((sum, [, , sql]) => sum + tokenizeSql(String(sql)).filter(({ key }) => key === "SELECT").length, 0);
    if (selects > MAX_VIEW_SELECTS) throw bad(this.name, "the database's views are too deep", `${selects} SELECTs`);
    return listed.rows.map(([rawName, type]) => {
      const name = String(rawName);
      return {
        name,
        kind: type === "view" ? ("view" as const) : ("table" as const),
        columns: this.#readColumns(name),
        foreign_keys: select(this.#db, `PRAGMA foreign_key_list(${quoteName(name)})`).rows.map((row) => ({
          column: String(row[3]),
          table: String(row[2]),
          references: String(row[4] ?? row[3]),
        })),
      };
    });
  }

  #readColumns(table: string): Column[] {
    try {
      return select(this.#db, `PRAGMA table_xinfo(${quoteName(table)})`).rows.map((row) => ({
        name: String(row[1]),
        type: String(row[2]),
        primary_key: Number(row[5]) > 0,
        not_null: Number(row[3]) === 1,
      }));
    } catch {
      return []; // a view on missing tables stays in the list, and querying it gives SQLite's error
    }
  }
}

/** Refuses text before SQLite sees it: text that is too long, or has a NUL character, which would hide the rest. */
function refuseText(sql: string): SqlError | undefined {
  if (sql.length > MAX_SQL_BYTES || encoder.encode(sql).length > MAX_SQL_BYTES) {
    return { error_class: "too_large", message: `the statement is longer than ${MAX_SQL_BYTES} bytes` };
  }
  const nul = sql.indexOf("\0");
  if (nul >= 0) return { error_class: "syntax", message: `unrecognized token: NUL character at position ${nul}` };
  return undefined;
}

/** The connection's last error. If memory ran out before the statement used up its share, other connections hold it. */
function lastError(db: Pointer, code: number): SqlError {
  const error = classifyError(code, sqlite().capi.sqlite3_errmsg(db));
  return isNoMemory(code) && !hasUsedUpMemory() ? NO_MEMORY : error;
}

/** Like `lastError`, for compiling: there SQLite also reports a program that is too long as "out of memory". */
function compileError(db: Pointer, code: number): SqlError {
  const { exports } = sqlite().wasm;
  const probe = isNoMemory(code) ? exports.sqlite3_malloc(COMPILE_BYTES) : 0;
  exports.sqlite3_free(probe);
  return probe === 0 ? lastError(db, code) : classifyError(code, sqlite().capi.sqlite3_errmsg(db));
}

const COMPILE_BYTES = 1_000_000; // more than compiling a statement allocates at once

const TOO_BIG = "string or blob too big"; // SQLite's message

const NOT_AUTHORIZED = /^not authorized/; // start of the authorizer's message

const TOO_LONG: SqlError = { error_class: "too_long", message: "the statement needs too many steps; make it simpler" };

/** Maximum number of statements remembered as too long; each has at most MAX_SQL_BYTES. */
const TOO_LONG_KEPT = 64;

const NO_MEMORY: SqlError = { error_class: "no_memory", message: "other databases hold the engine's memory" };

/** Whether an error means that SQLite was interrupted in the middle of a call. */
function isCrash(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}

function notSelect(message: string): SqlError {
  return { error_class: "not_select", message };
}

/** Adds details that the sandbox knows but SQLite's message lacks. */
function explain(error: SqlError, report: BudgetReport, sql: string): SqlError {
  if (report.stoppedByMemory) return { error_class: "too_large", message: "out of memory" };
  if (report.stoppedByClock) return { error_class: "timeout", message: "the statement ran too long for this machine" };
  if (error.error_class === "too_long") return TOO_LONG;
  if (error.error_class === "denied") {
    const firstWord = /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)*(\w*)/.exec(sql)?.[1]?.toUpperCase() ?? "";
    if (!["SELECT", "WITH", "VALUES"].includes(firstWord)) return notSelect("only one SELECT statement is allowed");
    const bare = error.message === "not authorized" && report.refused;
    return bare ? { ...error, message: `not authorized: ${report.refused}` } : error;
  }
  return error;
}

type Prepared = { ok: true; statement: Pointer } | { ok: false; error: SqlError };

/** Compiles exactly one statement. */
function prepare(db: Pointer, sql: string): Prepared {
  const { wasm } = sqlite();
  const bytes = encoder.encode(sql);
  const memory = wasm.exports.malloc(8 + bytes.length + 1); // two pointers that SQLite fills, the text, and a NUL
  if (memory === 0) throw new Error("out of WebAssembly memory");
  const [pStatement, pTail, text] = [memory, memory + 4, memory + 8];
  try {
    const heap = wasm.heap8u();
    heap.set(bytes, text);
    heap[text + bytes.length] = 0;
    const code = wasm.exports.sqlite3_prepare_v3(db, text, bytes.length + 1, 0, pStatement, pTail);
    if (code !== 0) return { ok: false, error: compileError(db, code) };
    const statement = wasm.peekPtr(pStatement);
    if (statement === 0) return { ok: false, error: { error_class: "syntax", message: "the statement is empty" } };
    const consumed = wasm.peekPtr(pTail) - text;
    if (!isBlank(sql.length === bytes.length ? sql.slice(consumed) : decoder.decode(bytes.subarray(consumed)))) {
      wasm.exports.sqlite3_finalize(statement);
      return { ok: false, error: notSelect("only one statement is allowed") };
    }
    return { ok: true, statement };
  } finally {
    wasm.exports.free(memory);
  }
}

/** Whether the rest is only white space, semicolons and comments. */
function isBlank(text: string): boolean {
  return text === "" || tokenizeSql(text).every((token) => token.text === ";");
}

interface ReadLimits {
  readonly maxRows: number;
  readonly maxBytes: number;
  readonly maxRowBytes: number;
  readonly maxCellBytes: number;
  readonly classes?: boolean;
}

/** Reads the rows. Keeps at most `maxBytes` plus one row of at most twice `maxRowBytes` (blobs become hexadecimal). */
function readRows(
  statement: Pointer,
  { maxRows, maxBytes, maxRowBytes, maxCellBytes, classes: wantsClasses = false }: ReadLimits,
): { code: number; table: ResultTable } {
  const { exports, cstrToJs } = sqlite().wasm;
  const width = exports.sqlite3_column_count(statement);
  const columns = Array.from({ length: width }, (_, i) => cstrToJs(exports.sqlite3_column_name(statement, i)) ?? "");
  const types: StorageClass[] = columns.map(() => "null");
  const cellBytes = Math.min(maxCellBytes, Math.floor(maxRowBytes / width));
  const rows: Cell[][] = [];
  const classes: StorageClass[][] = [];
  const truncated: string[] = [];
  let bytes = 0;
  let isCut = false;
  let code = exports.sqlite3_step(statement);
  for (; code === ROW; code = exports.sqlite3_step(statement)) {
    if (rows.length >= maxRows) truncated.push(`only the first ${maxRows} rows are kept`);
    else if (bytes > maxBytes) truncated.push(`only the first ${rows.length} rows are kept: the result is too large`);
    if (truncated.length > 0) break;
    const row: Cell[] = [];
    const rowClasses: StorageClass[] = [];
    for (let i = 0; i < width; i++) {
      const type = exports.sqlite3_column_type(statement, i);
      const cell = readCell(statement, i, type, cellBytes);
      isCut ||= (type === TEXT || type === BLOB) && exports.sqlite3_column_bytes(statement, i) > cellBytes;
      const storage = CLASSES[type]!;
      if (WIDTH[storage] > WIDTH[types[i]!]) types[i] = storage;
      bytes += typeof cell === "string" ? cell.length : 8;
      row.push(cell);
      if (wantsClasses) rowClasses.push(storage);
    }
    rows.push(row);
    if (wantsClasses) classes.push(rowClasses);
  }
  const has_more = truncated.length > 0;
  if (isCut) truncated.push(`only the first ${cellBytes} bytes of a cell are kept`);
  const extra = {
    ...(has_more ? { has_more } : {}),
    ...(isCut ? { cut_at: cellBytes } : {}),
    ...(wantsClasses ? { classes } : {}),
  };
  return { code, table: { columns, types, rows, truncated: truncated.join("; ") || null, ...extra } };
}

/** Reads one cell, at most `maxBytes` of it. */
function readCell(statement: Pointer, column: number, type: number, maxBytes: number): Cell {
  const { exports, heap8u } = sqlite().wasm;
  switch (type) {
    case INTEGER: {
      const approximate = exports.sqlite3_column_double(statement, column);
      return Number.isSafeInteger(approximate) ? approximate : exports.sqlite3_column_int64(statement, column);
    }
    case FLOAT:
      return exports.sqlite3_column_double(statement, column);
    case TEXT: {
      const start = exports.sqlite3_column_text(statement, column);
      const length = exports.sqlite3_column_bytes(statement, column);
      const heap = heap8u();
      let end = start + Math.min(length, maxBytes);
      // Do not cut a character in half.
      if (length > maxBytes) while (end > start && (heap[end]! & 0xc0) === 0x80) end--;
      return decoder.decode(heap.subarray(start, end));
    }
    case BLOB: {
      const start = exports.sqlite3_column_blob(statement, column);
      const length = Math.min(exports.sqlite3_column_bytes(statement, column), maxBytes);
      return `x'${hexOf(heap8u().subarray(start, start + length))}'`;
    }
    case NULL:
      return null;
    default:
      throw new Error(`unknown storage class ${type}`);
  }
}

const HEX_DIGITS = encoder.encode("0123456789abcdef");

function hexOf(bytes: Uint8Array): string {
  const digits = new Uint8Array(2 * bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    digits[2 * i] = HEX_DIGITS[bytes[i]! >> 4]!;
    digits[2 * i + 1] = HEX_DIGITS[bytes[i]! & 15]!;
  }
  return decoder.decode(digits);
}

const NO_LIMITS = { maxRows: Infinity, maxBytes: Infinity, maxRowBytes: Infinity, maxCellBytes: Infinity };

/** Runs trusted SQL outside the sandbox and reads all rows. */
function select(db: Pointer, sql: string): ResultTable {
  const { wasm, capi } = sqlite();
  const prepared = prepare(db, sql);
  if (!prepared.ok) throw new Error(prepared.error.message);
  try {
    const { code, table } = readRows(prepared.statement, NO_LIMITS);
    if (code !== DONE) throw new Error(capi.sqlite3_errmsg(db));
    return table;
  } finally {
    wasm.exports.sqlite3_finalize(prepared.statement);
  }
}

function copyToHeap(name: string, bytes: Uint8Array): Pointer {
  const { wasm } = sqlite();
  const memory = wasm.exports.malloc(Math.max(bytes.length, 1));
  if (memory === 0) throw bad(name, `the database of ${bytes.length} bytes does not fit into memory`);
  const heap = wasm.heap8u();
  heap.set(bytes, memory);
  // A file in memory has no write-ahead log, so a file written in WAL mode is marked as an ordinary one.
  for (const offset of [18, 19]) if (heap[memory + offset] === 2) heap[memory + offset] = 1;
  return memory;
}

/** Opens a read-only connection to bytes that we own. */
function deserialize(memory: Pointer, length: number): Pointer {
  const { capi, wasm } = sqlite();
  const out = wasm.exports.malloc(4);
  try {
    if (
      capi.sqlite3_open_v2(":memory:", out, capi.SQLITE_OPEN_READWRITE | capi.SQLITE_OPEN_CREATE, null as never) !== 0
    ) {
      throw new Error("SQLite could not open a connection");
    }
    const db = wasm.peekPtr(out);
    const code = capi.sqlite3_deserialize(db, "main", memory, length, length, capi.SQLITE_DESERIALIZE_READONLY);
    if (code !== 0) {
      capi.sqlite3_close_v2(db);
      throw new Error("SQLite could not take the bytes");
    }
    return db;
  } finally {
    wasm.exports.free(out);
  }
}

/** Reports the usual reasons why a file is not a database; SQLite's message is the same for all of them. */
function checkHeader(name: string, bytes: Uint8Array): void {
  if (bytes.length === 0) throw bad(name, "the file is empty");
  if (!isSqlite(bytes)) {
    throw bad(name, "the file is not a SQLite database, or it is encrypted");
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 100) throw bad(name, "the file is truncated inside its header", `${bytes.length} bytes`);
  const pageSize = view.getUint16(16) === 1 ? 65_536 : view.getUint16(16);
  const pages = view.getUint32(28);
  const pagesAreKnown = view.getUint32(24) === view.getUint32(92); // otherwise an old program left an outdated count
  if (pagesAreKnown && pages * pageSize > bytes.length) {
    throw bad(name, "the file is truncated", `${bytes.length} of ${pages * pageSize} bytes`);
  }
}

function bad(name: string, what: string, value?: string): SqlEnvError {
  return new SqlEnvError("bad_database", {
    what: `database ${name}: ${what}`,
    value,
    remedy: "export it again with sqlite3's .backup, or leave it out",
  });
}
