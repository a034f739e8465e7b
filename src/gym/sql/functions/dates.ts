// SQLite's date and time functions without its clock. Questions need them (`strftime('%Y', born)`), but "now" and the
// machine's time zone would make answers depend on when and where they are computed.

import { byteView, wordView } from "../memory.ts";
import { type Pointer, registerFunction, type Sqlite, sqlite } from "../sqlite.ts";
import { type Budget, interrupt } from "./charged.ts";
import { findNatives, type Native, textStart, valueBytes } from "./natives.ts";

const DATE_FUNCTIONS = ["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"] as const;

// Measured costs in virtual-machine instructions: a time value, a modifier, and one byte of a format at worst (`%J`).
const [TIME_VALUE_COST, MODIFIER_COST, FORMAT_BYTE_COST] = [3, 8, 5];
const ERROR = 1;

let clockWasRead = false;
let installed:
  | readonly { readonly name: string; readonly count: number; pointer: Pointer; data: Pointer }[]
  | undefined;

/** Removes SQLite's clock: functions that read the time fail, and the attempt is recorded. */
export function stopClock({ capi, wasm }: Sqlite): void {
  const vfs = new capi.sqlite3_vfs(capi.sqlite3_vfs_find(null as never) as never);
  const refuse = wasm.installFunction("i(pp)", () => {
    clockWasRead = true;
    return ERROR;
  });
  Object.assign(vfs, { $xCurrentTime: refuse, $xCurrentTimeInt64: refuse });
  vfs.dispose();
}

/**
 * Replaces the date functions of a connection. The new ones refuse the clock, are charged, and otherwise call SQLite's
 * own.
 */
export function installDateFunctions(db: Pointer, budget: Budget): void {
  installed ??= makeFunctions(sqlite(), budget);
  for (const { name, count, pointer, data } of installed) registerFunction(db, name, count, pointer, data);
}

function makeFunctions(engine: Sqlite, budget: Budget) {
  const natives = findNatives(engine, new Set(DATE_FUNCTIONS));
  return DATE_FUNCTIONS.map((name) => {
    const count = name === "timediff" ? 2 : -1;
    const native = natives.get(`${name}/${count}`);
    if (!native) throw new Error(`this build of SQLite has no ${name}() where it should be`);
    const code = clockless(name, native, budget);
    return { name, count, pointer: engine.wasm.installFunction("v(pip)", code), data: native.data };
  });
}

function clockless(name: (typeof DATE_FUNCTIONS)[number], { call }: Native, budget: Budget) {
  const { capi } = sqlite();
  const hasFormat = name === "strftime";
  const firstModifier = hasFormat ? 2 : 1;
  return (context: Pointer, count: number, values: Pointer): void => {
    const at = values >> 2;
    const words = wordView();
    const format = hasFormat && count > 0 ? valueBytes(words, words[at]!) : 0;
    const modifiers = Math.max(0, count - firstModifier);
    if (!budget.charge(TIME_VALUE_COST + MODIFIER_COST * modifiers + FORMAT_BYTE_COST * format)) {
      interrupt(context);
      return;
    }
    clockWasRead = false;
    let isRefused = false;
    for (let i = firstModifier; i < count && !isRefused; i++) isRefused = readsTimeZone(wordView()[at + i]!);
    if (!isRefused) call(context, count, values);
    if (isRefused || clockWasRead) {
      capi.sqlite3_result_error(context, `not authorized: ${name}() must not read the clock or time zone`, -1);
    }
  };
}

/** Whether a modifier is `localtime` or `utc` by SQLite's rules: a blob counts as text and ends at its first NUL. */
function readsTimeZone(value: Pointer): boolean {
  const start = textStart(value);
  if (start === 0) return false;
  const bytes = byteView();
  const first = bytes[start]! | 0x20;
  if (first !== L && first !== U) return false;
  const end = start + Math.min(valueBytes(wordView(), value), LONGEST_ZONE + 1);
  let text = "";
  for (let i = start; i < end && bytes[i] !== 0; i++) text += String.fromCharCode(bytes[i]!);
  return text.toLowerCase() === "localtime" || text.toLowerCase() === "utc";
}

const LONGEST_ZONE = "localtime".length;
const [L, U] = ["l".charCodeAt(0), "u".charCodeAt(0)];
