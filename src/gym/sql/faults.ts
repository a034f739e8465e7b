// Why a statement gave no result, as data: the player sees class and message, and the episode goes on.

/** Kinds of failure a player can act on. */
export const SQL_FAULT_CLASSES = [
  "syntax", // SQLite could not parse it
  "unknown_table", // no such table
  "unknown_column", // no such column
  "unknown_function", // no such function
  "invalid", // parses, but makes no sense: ambiguous names, misused aggregates, wrong number of columns
  "not_select", // a write, a PRAGMA, an EXPLAIN, several statements: anything but one SELECT
  "denied", // a SELECT that reaches for something forbidden: the clock, chance, the engine's insides
  "too_long", // stopped at the instruction limit
  "too_large", // a value, the text, the program or memory outgrew its limit
  "timeout", // stopped by the clock: depends on the machine, not on the player
  "no_memory", // other databases hold the engine's memory: depends on what else is open, not on the player
  "corrupt", // the database file is damaged
] as const;

/** Faults that say nothing about the player: such an episode cannot be scored. */
export function isUnscorable(error_class: string | undefined): boolean {
  return error_class === "timeout" || error_class === "no_memory";
}

export type SqlFaultClass = (typeof SQL_FAULT_CLASSES)[number];

export interface SqlFault {
  readonly error_class: SqlFaultClass;
  /** SQLite's own words where it had any; never a path. */
  readonly message: string;
}

// Primary result codes, fixed by SQLite's file format of errors: https://sqlite.org/rescode.html
const NOMEM = 7;
const INTERRUPT = 9;
const CORRUPT = 11;
const TOOBIG = 18;
const AUTH = 23;
const NOTADB = 26;

/** Sorts SQLite's result code and message into a class. */
export function faultOf(code: number, message: string): SqlFault {
  const primary = code & 0xff;
  return { error_class: classify(primary, message), message };
}

/** Whether a result code says that there is no memory. */
export function isNoMemory(code: number): boolean {
  return (code & 0xff) === NOMEM;
}

function classify(primary: number, message: string): SqlFaultClass {
  if (primary === AUTH) return "denied";
  if (primary === INTERRUPT) return "too_long";
  if (primary === TOOBIG || primary === NOMEM) return "too_large";
  if (primary === CORRUPT || primary === NOTADB) return "corrupt";
  if (/^no such table/.test(message)) return "unknown_table";
  if (/^no such column/.test(message)) return "unknown_column";
  if (/^(no such|unknown) function/.test(message)) return "unknown_function";
  if (/not authorized|is prohibited|^unsafe use of/.test(message)) return "denied";
  if (/syntax error|^unrecognized token|^incomplete input|^malformed/.test(message)) return "syntax";
  if (/too (large|many|big|long|complex)|stack overflow|^at most \d+ tables|recursion/.test(message))
    return "too_large";
  return "invalid";
}
