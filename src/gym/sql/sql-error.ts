// Why a statement failed, as data: the player sees the class and the message, and the episode continues.

/** Kinds of failure that a player can act on. */
export const SQL_ERROR_CLASSES = [
  "syntax", // SQLite could not parse it
  "unknown_table", // no such table
  "unknown_column", // no such column
  "unknown_function", // no such function
  "invalid", // parses, but is invalid: ambiguous names, misused aggregates, wrong number of columns
  "not_select", // a write, a PRAGMA, an EXPLAIN, several statements: anything but one SELECT
  "denied", // a SELECT that uses something forbidden: the clock, random numbers, SQLite internals
  "too_long", // stopped at the instruction limit
  "too_large", // a value, the text, the program or the memory exceeds its limit
  "timeout", // stopped at the time limit: depends on the machine, not on the player
  "no_memory", // other databases hold the engine's memory: depends on what else is open, not on the player
  "corrupt", // the database file is damaged
] as const;

/** Whether an error is not the player's doing, so that the episode cannot be scored. */
export function isUnscorable(error_class: string | undefined): boolean {
  return error_class === "timeout" || error_class === "no_memory";
}

export type SqlErrorClass = (typeof SQL_ERROR_CLASSES)[number];

export interface SqlError {
  readonly error_class: SqlErrorClass;
  /** SQLite's message if there is one; never contains a path. */
  readonly message: string;
}

// Primary result codes: https://sqlite.org/rescode.html
const NOMEM = 7;
const INTERRUPT = 9;
const CORRUPT = 11;
const TOOBIG = 18;
const AUTH = 23;
const NOTADB = 26;

/** Classifies SQLite's result code and message. */
export function classifyError(code: number, message: string): SqlError {
  const primary = code & 0xff;
  return { error_class: classify(primary, message), message };
}

/** Whether a result code means out of memory. */
export function isNoMemory(code: number): boolean {
  return (code & 0xff) === NOMEM;
}

function classify(primary: number, message: string): SqlErrorClass {
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

/** @deprecated use `SqlError` */
export type SqlFault = SqlError;

/** @deprecated use `SqlErrorClass` */
export type SqlFaultClass = SqlErrorClass;

/** @deprecated use `SQL_ERROR_CLASSES` */
export { SQL_ERROR_CLASSES as SQL_FAULT_CLASSES };
