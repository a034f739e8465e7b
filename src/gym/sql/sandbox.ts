// The SQL sandbox. While SQLite compiles a statement, an authorizer checks it against an allow-list; while it runs,
// limits on instructions, time and memory apply. Statements are never searched for keywords.

import { type Budget, installChargedFunctions } from "./functions/charged.ts";
import { installDateFunctions, stopClock } from "./functions/dates.ts";
import * as limits from "./limits.ts";
import { wordView } from "./memory.ts";
import { refuseOtherFunctions } from "./refusals.ts";
import { type Pointer, type Sqlite, sqlite } from "./sqlite.ts";

/** Functions a statement may call: deterministic ones whose time and memory are bounded. */
export const ALLOWED_FUNCTIONS: ReadonlySet<string> = new Set(
  `abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist
   date datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull iif instr julianday lag
   last_value lead length like likelihood likely ln log log10 log2 lower ltrim max min mod nth_value ntile nullif
   octet_length percent_rank pi pow power printf quote radians rank replace round row_number rtrim sign sin sinh sqrt
   strftime string_agg substr substring sum tan tanh time timediff total trim trunc typeof unicode unistr unixepoch
   unlikely upper`.split(/\s+/),
);

const SCHEMA_TABLES = ["sqlite_master", "sqlite_schema"];

// Action codes of the authorizer: https://sqlite.org/c3ref/c_alter_table.html
const [READ, SELECT, FUNCTION, RECURSIVE] = [20, 21, 31, 33];
const [OK, DENY] = [0, 1];
const [MEMORY_USED, CACHE_USED] = [0, 1]; // counters of sqlite3_status64 and sqlite3_db_status
const CHECKS_PER_MEMORY_CHECK = 10; // this few instructions cannot allocate much

/** What the running statement may still use. Only one runs at a time, since every call into SQLite is synchronous. */
interface StatementBudget {
  readonly readable: ReadonlySet<string>;
  instructionsLeft: number;
  readonly startedAt: number;
  readonly milliseconds: () => number;
  readonly db: Pointer;
  /** Heap bytes in use before the statement started. */
  readonly bytesBefore: number;
  checks: number;
  /** Instructions charged per instruction. */
  weight: number;
  stoppedByClock: boolean;
  stoppedByMemory: boolean;
  /** What the authorizer refused last, for the error message. */
  refused: string | undefined;
}

let running: StatementBudget | undefined;
let sharedStart: number | undefined;
let allowedMilliseconds: () => number = () => limits.MAX_MILLISECONDS;
let hooks: { readonly authorize: Pointer; readonly progress: Pointer } | undefined;

export interface BudgetReport {
  readonly instructions: number;
  readonly stoppedByClock: boolean;
  readonly stoppedByMemory: boolean;
  readonly refused: string | undefined;
}

/**
 * Sets the time limit of this thread's statements. `milliseconds` is called at every progress check and returns how
 * long the running statement may take in total, so the limit may change while it runs.
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

/**
 * Compares our functions with SQLite's own and checks that long results are charged, because addresses and layouts are
 * not a public interface.
 */
function tryFunctions(): void {
  const { oo1 } = sqlite();
  const scratch = new oo1.DB(":memory:");
  try {
    const expected = scratch.selectArray(TRIALS);
    installDateFunctions(scratch.pointer!, budget);
    installChargedFunctions(scratch.pointer!, budget);
    const { value: given } = withBudget({ db: scratch.pointer! }, () => scratch.selectArray(TRIALS));
    const { report } = withBudget({ db: scratch.pointer! }, () =>
      scratch.selectArray("SELECT printf('%.16000c', 'x')"),
    );
    if (JSON.stringify(given) !== JSON.stringify(expected) || Math.abs(report.instructions - 1002) > 2) {
      throw new Error(`SQLite ${sqlite().version} is not the build SQLEnv was made for; install the pinned version`);
    }
  } finally {
    scratch.close();
  }
}

/** Gives all statements that `work` runs one shared time limit, starting now. */
export function sharingTime<T>(work: () => T): T {
  if (sharedStart !== undefined) return work();
  sharedStart = performance.now();
  try {
    return work();
  } finally {
    sharedStart = undefined;
  }
}

/**
 * Limits a connection's resources and removes the clock and modules. Call it before the schema is read, which compiles
 * the views of a possibly hostile file.
 */
export function limitConnection(db: Pointer): void {
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
  // Removes virtual tables: json_each, dbstat, FTS5, other sessions' statements.
  capi.sqlite3_drop_modules(db, 0 as never);
  refuseOtherFunctions(db, ALLOWED_FUNCTIONS);
  installDateFunctions(db, budget);
  installChargedFunctions(db, budget);
}

/**
 * Makes a limited connection safe for untrusted SQL by an authorizer and size limits. From then on it can only read.
 */
export function sandboxConnection(db: Pointer): void {
  const { capi } = sqlite();
  // Set only now, since a table's own DDL may be longer.
  capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LENGTH, limits.MAX_VALUE_BYTES);
  capi.sqlite3_limit(db, capi.SQLITE_LIMIT_SQL_LENGTH, limits.MAX_SQL_BYTES);
  capi.sqlite3_set_authorizer(db, hooks!.authorize as never, 0);
}

export interface BudgetOptions {
  readonly db: Pointer;
  /** Tables and views that may be read, in lower case. @default none */
  readonly readable?: ReadonlySet<string>;
  /** @default MAX_INSTRUCTIONS */
  readonly instructions?: number | undefined;
  /** @default what `limitStatementTime` set */
  readonly milliseconds?: number;
}

/** Runs `work`, which uses the connection `db`, within a budget. */
export function withBudget<T>(options: BudgetOptions, work: () => T): { value: T; report: BudgetReport } {
  const { db, readable = NOTHING, instructions = limits.MAX_INSTRUCTIONS, milliseconds } = options;
  const mine: StatementBudget = {
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
  running = mine;
  try {
    const value = work();
    const { stoppedByClock, stoppedByMemory, refused } = mine;
    const used = Math.ceil(instructions - mine.instructionsLeft);
    return { value, report: { instructions: used, stoppedByClock, stoppedByMemory, refused } };
  } finally {
    running = undefined;
  }
}

const NOTHING: ReadonlySet<string> = new Set();

/** Higher limits for statements that need longer values, and the instructions charged per instruction under each. */
export const LARGER_VALUES = [
  { bytes: limits.MAX_LARGE_VALUE_BYTES, weight: limits.LARGE_VALUE_WEIGHT },
  { bytes: limits.MAX_HUGE_VALUE_BYTES, weight: limits.HUGE_VALUE_WEIGHT },
] as const;

/** Runs a statement with a higher limit on values, within the budget already in use. */
export function withLargerValues<T>(db: Pointer, { bytes, weight }: (typeof LARGER_VALUES)[number], work: () => T): T {
  const { capi } = sqlite();
  capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LENGTH, bytes);
  if (running) running.weight = weight;
  const value = work(); // on an exception nothing is restored: the engine is unusable then
  capi.sqlite3_limit(db, capi.SQLITE_LIMIT_LENGTH, limits.MAX_VALUE_BYTES);
  return value;
}

/** Whether the running statement has used up its memory. Called when SQLite reports that it is out of memory. */
export function hasUsedUpMemory(): boolean {
  return running !== undefined && bytesInUse(running.db) - running.bytesBefore > limits.MAX_STATEMENT_BYTES;
}

let counters: Pointer | undefined; // address to which SQLite writes its counters

/** Heap bytes in use, without the connection's page cache, which is kept between statements. */
function bytesInUse(db: Pointer): number {
  const { exports } = sqlite().wasm;
  const out = counters ?? exports.malloc(16);
  counters = out;
  exports.sqlite3_status64(MEMORY_USED, out, out + 8, 0);
  const used = wordView()[out >> 2]!;
  exports.sqlite3_db_status(db, CACHE_USED, out, out + 8, 0);
  return used - wordView()[out >> 2]!;
}

/** Names for `BudgetOptions.readable`: the given tables and views, and SQLite's own list of them. */
export function readableNames(tables: Iterable<string>): ReadonlySet<string> {
  return new Set([...SCHEMA_TABLES, ...[...tables].map((name) => name.toLowerCase())]);
}

const budget: Budget = { charge, left: () => running?.instructionsLeft ?? 0 };

function progress(): number {
  if (!charge(limits.INSTRUCTIONS_PER_CHECK * (running?.weight ?? 1))) return 1;
  if (++running!.checks % CHECKS_PER_MEMORY_CHECK !== 0 || !hasUsedUpMemory()) return 0;
  running!.stoppedByMemory = true;
  return 1;
}

/** Charges instructions to the running statement; returns false if it must stop. */
function charge(instructions: number): boolean {
  if (!running) return false;
  running.instructionsLeft -= instructions;
  if (running.instructionsLeft <= 0) return false;
  // The next check comes soon, and reading the clock takes time.
  if (instructions < limits.INSTRUCTIONS_PER_CHECK) return true;
  if (performance.now() - running.startedAt < running.milliseconds()) return true;
  running.stoppedByClock = true;
  return false;
}

/**
 * Called by SQLite for each action while it compiles a statement. The meaning of arguments 3–6 depends on the action.
 */
function authorize(_: Pointer, action: number, first: Pointer, second: Pointer, schema: Pointer): number {
  if (!running) return DENY;
  const { wasm } = sqlite();
  switch (action) {
    case SELECT:
    case RECURSIVE:
      return OK;
    case READ: {
      const table = text(wasm, first).toLowerCase();
      // Rows of a CTE are counted, not read.
      if (schema === 0 && text(wasm, second) === "" && !isEngineName(table)) return OK;
      if (running.readable.has(table) && (schema === 0 || text(wasm, schema) === "main")) return OK;
      running.refused = `table ${table}`;
      return DENY;
    }
    case FUNCTION: {
      const name = text(wasm, second);
      if (ALLOWED_FUNCTIONS.has(name.toLowerCase())) return OK;
      running.refused = `function ${name}`;
      return DENY;
    }
    default:
      running.refused = `action ${action}`;
      return DENY;
  }
}

/** Whether SQLite provides this table itself; such tables are denied even though their modules are dropped. */
function isEngineName(table: string): boolean {
  return table.startsWith("sqlite_") || table.startsWith("pragma_");
}

function text(wasm: Sqlite["wasm"], pointer: Pointer): string {
  return wasm.cstrToJs(pointer) ?? "";
}
