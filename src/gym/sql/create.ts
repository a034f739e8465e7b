// Creates database files: the only place where SQL other than SELECT runs, on trusted input.
import type { Cell } from "./database.ts";
import { quoteName } from "./lexer.ts";
import { sqlite } from "./sqlite.ts";

export interface NewTable {
  readonly name: string;
  /** The CREATE TABLE statement. */
  readonly ddl: string;
  readonly rows: readonly (readonly Cell[])[];
}

/**
 * Creates a database file and returns its bytes; the same tables give the same bytes.
 *
 * @example
 * await loadSqlite();
 * const bytes = createDatabase([{ name: "pet", ddl: "CREATE TABLE pet (name TEXT)", rows: [["Rex"], ["Tom"]] }]);
 */
export function createDatabase(tables: readonly NewTable[]): Uint8Array {
  const { oo1, capi } = sqlite();
  const db = new oo1.DB(":memory:");
  try {
    db.exec("PRAGMA page_size=4096; BEGIN");
    for (const { name, ddl, rows } of tables) {
      db.exec(ddl);
      const width = rows[0]?.length ?? 0;
      if (width === 0) continue;
      const places = Array.from({ length: width }, () => "?").join(", ");
      const insert = db.prepare(`INSERT INTO ${quoteName(name)} VALUES (${places})`);
      try {
        for (const row of rows) insert.bind(row as never).stepReset();
      } finally {
        insert.finalize();
      }
    }
    db.exec("COMMIT");
    return capi.sqlite3_js_db_export(db.pointer!);
  } finally {
    db.close();
  }
}
