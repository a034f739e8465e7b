// The glass around a database: what a statement may do is decided inside SQLite while it is compiled, by an
// allow-list, and what it may use up while it runs. No text is searched for keywords.

import { type Budget, installChargedFunctions } from "./functions/charged.ts";
import { installDateFunctions, stopClock } from "./functions/dates.ts";
import * as limits from "./limits.ts";
import { wordView } from "./memory.ts";
import { refuseOtherFunctions } from "./refusals.ts";
import { type Pointer, type Sqlite, sqlite } from "./sqlite.ts";

/** Functions a statement may call: those whose value depends on nothing but their arguments, and are bounded in time and space. */
export const ALLOWED_FUNCTIONS: ReadonlySet<string> = new Set(
  `abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist
   date datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull iif instr julianday lag
   last_value lead length like likelihood likely ln log log10 log2 lower ltrim max min mod nth_value ntile nullif
   octet_length percent_rank pi pow power printf quote radians rank replace round row_number rtrim sign sin sinh sqrt
   strftime string_agg substr substring sum tan tanh time timediff total trim trunc typeof unicode unistr unixepoch
   unlikely upper`.split(/\s+/),
);

const SCHEMA_TABLES = ["sqlite_master", "sqlite_schema"];

// Actions of the authorizer: https://sqlite.org/c3ref/c_alter_table.html
const [READ, SELECT, FUNCTION, RECURSIVE] = [20, 21, 31, 33];
const [OK, DENY] = [0, 1];
const [MEMORY_USED, CACHE_USED] = [0, 1]; // counters of sqlite3_status64 and sqlite3_db_status
const CHECKS_PER_MEMORY_CHECK = 10; // so few instructions cannot take much

/** What the running statement may still do; one at a time, since every call into SQLite is synchronous. */
interface Watch {
  readonly readable: ReadonlySet<string>;
  instructionsLeft: number;
  readonly startedAt: number;
  readonly milliseconds: () => number;
  readonly db: Pointer;
  /** Bytes of the engine's heap that were in use before it started. */
  readonly bytesBefore: number;
  checks: number;
  /** Instructions each one counts for. */
  weight: number;
  stoppedByClock: boolean;
  stoppedByMemory: boolean;
  /** What the authorizer last refused, for the message. */
  refused: string | undefined;
}

let watch: Watch | undefined;
let sharedStart: number | undefined;
let allowedMilliseconds: () => number = () => limits.MAX_MILLISECONDS;
let hooks: { readonly authorize: Pointer; readonly progress: Pointer } | undefined;

export interface WatchReport {
  readonly instructions: number;
  readonly stoppedByClock: boolean;
  readonly stoppedByMemory: boolean;
  readonly refused: string | undefined;
}

/**
 * Sets the clock limit of this thread's statements. `milliseconds` is asked at every progress check how long the
 * running statement may take in all, so the answer may change while it runs.
 * @default MAX_MILLISECONDS
 */
export function limitStatementTime(milliseconds: () => number = () => limits.MAX_MILLISECONDS): void {
  allowedMilliseconds = milliseconds;
}

function installHooks(): typeof hooks & {} {
  const { wasm } = sqlite();
  stopClock(sqlite());
  tryFunctions();
  return {
    authorize: wasm.installFunction("i(pipppp)", authorize),
    progress: wasm.installFunction("i(p)", progress),
  };
}

const TRIALS = `SELECT length('aé'), substr('héllo', 2, 2), substring('héllo', -2), upper('aé'), lower('AÉ'), hex('aé'),
  quote('a''b'), unistr('\\0041'), trim(' a '), ltrim(' a '), rtrim(' a '), trim('xax', 'x'), ltrim('xax', 'x'),
  rtrim('xax', 'x'), replace('abc', 'b', 'xyz'), printf('%5d|%s', 7, 'é'), format('%x', 255), concat('a', 1), concat_ws('-', 'a', 'b'), 'aéb' LIKE 'A_%', 'ab' LIKE 'a!%' ESCAPE '!',
  unicode('é'), abs('-2'), round(2.567, 1), round('2.5'), sign('-3'), char(65, 233), sqrt(2), ceil(1.5), log(2, 8), mod(7, 4), atan2(1, 2),
  'aéb' GLOB 'a[^b]*', instr('éab', 'ab'), date('2020-01-31', '+1 month'), time('12:34:56', '+1 hour'), datetime(2459000.5),
  julianday('2020-01-01'), unixepoch('2020-01-01'), strftime('%Y', '2020-01-01'), timediff('2020-01-02', '2020-01-01')`;

/** Tries the functions out beside SQLite's own, and that long results are charged: their addresses and layouts come from no public interface. */
function tryFunctions(): void {
  const { oo1 } = sqlite();
  const scratch = new oo1.DB(":memory:");
  try {
    const expected = scratch.selectArray(TRIALS);
    installDateFunctions(scratch.pointer!, budget);
    installChargedFunctions(scratch.pointer!, budget);
    const { value: given } = underWatch({ db: scratch.pointer! }, () => scratch.selectArray(TRIALS));
    const { report } = underWatch({ db: scratch.pointer! }, () =>
      scratch.selectArray("SELECT printf('%.16000c', 'x')"),
    );
    if (JSON.stringify(given) !== JSON.stringify(expected) || Math.abs(report.instructions - 1002) > 2) {
      throw new Error(`SQLite ${sqlite().version} is not the build SQLEnv was made for; install the pinned version`);
    }
  } finally {
    scratch.close();
  }
}

/** Gives all statements run by `work` one time limit together, counted from now. */
export function sharingTime<T>(work: () => T): T {
  if (sharedStart !== undefined) return work();
  sharedStart = performance.now();
  try {
    return work();
  } finally {
    sharedStart = undefined;
  }
}

/** Bounds what a connection may use up and takes clock and modules away, before its schema is read: a hostile file's views are compiled then. */
export function bound(db: Pointer): void {
  const { capi } = sqlite();
  for (const [limit, value] of [
    [capi.SQLITE_LIMIT_COLUMN, limits.MAX_COLUMNS],
    [capi.SQLITE_LIMIT_EXPR_DEPTH, limits.MAX_EXPRESSION_DEPTH],
    [capi.SQLITE_LIMIT_COMPOUND_SELECT, limits.MAX_COMPOUND_SELECTS],
    [capi.SQLITE_LIMIT_VDBE_OP, limits.MAX_PROGRAM],
    [capi.SQLITE_LIMIT_FUNCTION_ARG, limits.MAX_FUNCTION_ARGUMENTS],
    [capi.SQLITE_LIMIT_ATTACHED, 0],
    [capi.SQLITE_LIMIT_VARIABLE_NUMBER, 0],
    [capi.SQLITE_LIMIT_TRIGGER_DEPTH, 1],
  ] as const) {
    capi.sqlite3_limit(db, limit, value);
  }
  for (const [option, on] of [
    [capi.SQLITE_DBCONFIG_DEFENSIVE, 1],
    [capi.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0],
    [capi.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0],
  ] as const) {
    capi.sqlite3_db_config(db, option, on, 0);
  }
  hooks ??= installHooks();
  capi.sqlite3_progress_handler(db, limits.INSTRUCTIONS_PER_CHECK, hooks.progress as never, 0);
  capi.sqlite3_drop_modules(db, 0 as never); // no virtual tables: json_each, dbstat, FTS5, other sessions' statements
  refuseOtherFunctions(db, ALLOWED_FUNCTIONS);
  installDateFunctions(db, budget);
  installChargedFunctions(db, budget);
}

/** Makes a bounded connection safe for untrusted SQL: authorizer, sizes. After this it can only read. */
export function guard(db: Pointer): void {
  const { capi } = sqlite();
  // Only now, since a table's own DDL may be longer.
  capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LENGTH, limits.MAX_VALUE_BYTES);
  capi.sqlite3_limit(db, capi.SQLITE_LIMIT_SQL_LENGTH, limits.MAX_SQL_BYTES);
  capi.sqlite3_set_authorizer(db, hooks!.authorize as never, 0);
}

export interface WatchOptions {
  readonly db: Pointer;
  /** Tables and views that may be read, in lower case. @default none */
  readonly readable?: ReadonlySet<string>;
  /** @default MAX_INSTRUCTIONS */
  readonly instructions?: number | undefined;
  /** @default what `limitStatementTime` set */
  readonly milliseconds?: number;
}

/** Runs `work`, which uses the connection `db`, under watch. */
export function underWatch<T>(options: WatchOptions, work: () => T): { value: T; report: WatchReport } {
  const { db, readable = NOTHING, instructions = limits.MAX_INSTRUCTIONS, milliseconds } = options;
  const mine: Watch = {
    readable,
    db,
    bytesBefore: bytesInUse(db),
    instructionsLeft: instructions,
    checks: 0,
    weight: 1,
    startedAt: milliseconds === undefined && sharedStart !== undefined ? sharedStart : performance.now(),
    milliseconds: milliseconds === undefined ? allowedMilliseconds : () => milliseconds,
    stoppedByClock: false,
    stoppedByMemory: false,
    refused: undefined,
  };
  watch = mine;
  try {
    const value = work();
    const { stoppedByClock, stoppedByMemory, refused } = mine;
    const used = Math.ceil(instructions - mine.instructionsLeft);
    return { value, report: { instructions: used, stoppedByClock, stoppedByMemory, refused } };
  } finally {
    watch = undefined;
  }
}

const NOTHING: ReadonlySet<string> = new Set();

/** Room for longer values than at first, and what each instruction counts for then. */
export const LARGER_VALUES = [
  { bytes: limits.MAX_LARGE_VALUE_BYTES, weight: limits.LARGE_VALUE_WEIGHT },
  { bytes: limits.MAX_HUGE_VALUE_BYTES, weight: limits.HUGE_VALUE_WEIGHT },
] as const;

/** Runs a statement with room for larger values, within the budget it is using already. */
export function withLargerValues<T>(db: Pointer, { bytes, weight }: (typeof LARGER_VALUES)[number], work: () => T): T {
  const { capi } = sqlite();
  capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LENGTH, bytes);
  if (watch) watch.weight = weight;
  const value = work(); // what is thrown through SQLite ends the engine's use
  capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LENGTH, limits.MAX_VALUE_BYTES);
  return value;
}

/** Whether the running statement has used up its memory; asked when SQLite says that there is none. */
export function hasUsedUpMemory(): boolean {
  return watch !== undefined && bytesInUse(watch.db) - watch.bytesBefore > limits.MAX_STATEMENT_BYTES;
}

let counters: Pointer | undefined; // where SQLite writes its counters

/** Bytes of the engine's heap in use, without the connection's page cache: that is kept between statements. */
function bytesInUse(db: Pointer): number {
  const { exports } = sqlite().wasm;
  const out = counters ?? exports.malloc(16);
  counters = out;
  exports.sqlite3_status64(MEMORY_USED, out, out + 8, 0);
  const used = wordView()[out >> 2]!;
  exports.sqlite3_db_status(db, CACHE_USED, out, out + 8, 0);
  return used - wordView()[out >> 2]!;
}

/** The set of names `underWatch` takes: the given tables and views, and SQLite's own list of them. */
export function readableNames(tables: Iterable<string>): ReadonlySet<string> {
  return new Set([...SCHEMA_TABLES, ...[...tables].map((name) => name.toLowerCase())]);
}

const budget: Budget = { charge, left: () => watch?.instructionsLeft ?? 0 };

function progress(): number {
  if (!charge(limits.INSTRUCTIONS_PER_CHECK * (watch?.weight ?? 1))) return 1;
  if (++watch!.checks % CHECKS_PER_MEMORY_CHECK !== 0 || !hasUsedUpMemory()) return 0;
  watch!.stoppedByMemory = true;
  return 1;
}

/** Takes instructions off the running statement's budget; false when it must stop. */
function charge(instructions: number): boolean {
  if (!watch) return false;
  watch.instructionsLeft -= instructions;
  if (watch.instructionsLeft <= 0) return false;
  if (instructions < limits.INSTRUCTIONS_PER_CHECK) return true; // the next check is near, and reading the clock takes time
  if (performance.now() - watch.startedAt < watch.milliseconds()) return true;
  watch.stoppedByClock = true;
  return false;
}

/** Called by SQLite for each thing a statement does, while it is compiled. Arguments 3–6 depend on the action. */
function authorize(_: Pointer, action: number, first: Pointer, second: Pointer, schema: Pointer): number {
  if (!watch) return DENY;
  const { wasm } = sqlite();
  switch (action) {
    case SELECT:
    case RECURSIVE:
      return OK;
    case READ: {
      const table = text(wasm, first).toLowerCase();
      if (schema === 0 && text(wasm, second) === "" && !isEngineName(table)) return OK; // rows counted, not read: a CTE
      if (watch.readable.has(table) && (schema === 0 || text(wasm, schema) === "main")) return OK;
      watch.refused = `table ${table}`;
      return DENY;
    }
    case FUNCTION: {
      const name = text(wasm, second);
      if (ALLOWED_FUNCTIONS.has(name.toLowerCase())) return OK;
      watch.refused = `function ${name}`;
      return DENY;
    }
    default:
      watch.refused = `action ${action}`;
      return DENY;
  }
}

/** Tables SQLite makes up by itself, which modules dropped or not must stay out of reach. */
function isEngineName(table: string): boolean {
  return table.startsWith("sqlite_") || table.startsWith("pragma_");
}

function text(wasm: Sqlite["wasm"], pointer: Pointer): string {
  return wasm.cstrToJs(pointer) ?? "";
}
