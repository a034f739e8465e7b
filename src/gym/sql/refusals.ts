// Replaces built-in functions that are not allowed by stubs. The authorizer sees only what a statement itself calls:
// expressions of generated columns and indexes are resolved while the schema is read, without the authorizer.
import { DETERMINISTIC, type Pointer, registerFunction, type Sqlite, sqlite } from "./sqlite.ts";

interface Stub {
  readonly name: string;
  readonly count: number;
  /**
   * Copied from the replaced function: SQLite rejects indexes and generated columns if, for example, DETERMINISTIC is
   * missing.
   */
  readonly flags: number;
  /** The error message, in the engine's memory. */
  readonly message: Pointer;
}

let installed: { readonly refuse: Pointer; readonly stubs: readonly Stub[] } | undefined;

/**
 * Replaces every built-in function of a connection that is not in `allowed` by one that refuses to run. `allowed` must
 * be the same for all connections.
 */
export function refuseOtherFunctions(db: Pointer, allowed: ReadonlySet<string>): void {
  installed ??= makeStubs(sqlite(), allowed);
  const { refuse, stubs } = installed;
  for (const { name, count, message, flags } of stubs) registerFunction(db, name, count, refuse, message, flags);
}

function makeStubs({ oo1, wasm }: Sqlite, allowed: ReadonlySet<string>): typeof installed & {} {
  const scratch = new oo1.DB(":memory:"); // this connection still has its modules, so it can list the functions
  try {
    const listed = scratch.selectArrays("SELECT DISTINCT name, narg, flags FROM pragma_function_list");
    const stubs = listed
      .map(([name, count, flags]) => ({ name: String(name), count: Number(count), flags: Number(flags) }))
      .filter(({ name }) => !allowed.has(name.toLowerCase()))
      .map(({ name, count, flags }) => ({
        name,
        count: Math.max(count, -1), // values below −1 encode the minimum number of arguments
        flags: flags & DETERMINISTIC,
        message: wasm.allocCString(`not authorized: function ${name}`, false) as Pointer,
      }));
    const refuse = wasm.installFunction("v(pip)", (context: Pointer) => {
      wasm.exports.sqlite3_result_error(context, wasm.exports.sqlite3_user_data(context), -1);
    });
    return { refuse, stubs };
  } finally {
    scratch.close();
  }
}
