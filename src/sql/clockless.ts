// SQLite's date and time functions without its clock. They are needed (`strftime('%Y', born)`), but "now" and the
// machine's time zone would make answers depend on when and where they are computed.
import { type Pointer, registerFunction, sqlite } from "./sqlite.ts";

const DATE_FUNCTIONS = ["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"] as const;

/** Time values and modifiers that read the clock or the time zone. */
const FORBIDDEN = new Set(["now", "subsec", "subsecond", "localtime", "utc"]);

const MAX_ARGUMENTS = 8; // a time value and a handful of modifiers

let originals: { readonly select: (name: string, values: unknown[]) => unknown } | undefined;
let installed: ReadonlyMap<string, Pointer> | undefined;

/** Replaces the date functions of a connection by ones that refuse the clock and otherwise give what SQLite gives. */
export function installClocklessDates(db: Pointer): void {
  const { wasm } = sqlite();
  installed ??= new Map(DATE_FUNCTIONS.map((name) => [name, wasm.installFunction("v(pip)", clockless(name))]));
  for (const [name, pointer] of installed) registerFunction(db, name, -1, pointer);
}

function clockless(name: (typeof DATE_FUNCTIONS)[number]) {
  return (context: Pointer, count: number, values: Pointer): void => {
    const { capi } = sqlite();
    try {
      const args = capi.sqlite3_values_to_js(count, values) as unknown[];
      const timeValues = name === "timediff" ? 2 : name === "strftime" ? 2 : 1;
      const usesClock = args.map(textOf).some((text) => FORBIDDEN.has(text.trim().toLowerCase()));
      if (usesClock || args.length < timeValues) {
        capi.sqlite3_result_error(context, `not authorized: ${name}() must not read the clock or time zone`, -1);
      } else if (args.length > MAX_ARGUMENTS) {
        capi.sqlite3_result_error(context, `too many arguments to ${name}()`, -1);
      } else {
        capi.sqlite3_result_js(context, original(name, args) as never);
      }
    } catch (error) {
      capi.sqlite3_result_error(context, error instanceof Error ? error.message : String(error), -1);
    }
  };
}

/** An argument as SQLite would read it: a blob is taken for text. */
function textOf(arg: unknown): string {
  return arg instanceof Uint8Array ? new TextDecoder().decode(arg) : String(arg);
}

/** The built-in function's own value, asked of a private connection that holds no data. */
function original(name: string, args: unknown[]): unknown {
  originals ??= openOriginals();
  return originals.select(name, args);
}

function openOriginals() {
  const { oo1 } = sqlite();
  const db = new oo1.DB(":memory:");
  const statements = new Map<string, ReturnType<typeof db.prepare>>();
  return {
    select(name: string, args: unknown[]): unknown {
      const key = `${name}/${args.length}`;
      let statement = statements.get(key);
      if (!statement) {
        statement = db.prepare(`SELECT ${name}(${args.map(() => "?").join(", ")})`);
        statements.set(key, statement);
      }
      try {
        args.forEach((arg, i) => void statement.bind(i + 1, arg as never));
        statement.step();
        return statement.get(0);
      } finally {
        statement.reset(true);
      }
    },
  };
}
