// A pool of open databases by name. A database is opened when first used and shared; the least recently used is closed
// first.
import { SqlEnvError } from "../../errors.ts";
import { Database, type OpenOptions } from "./database.ts";

export interface DatabasePoolOptions extends OpenOptions {
  /** Names of the databases. */
  readonly names: readonly string[];
  /** Reads a database file; called each time the database is opened. */
  readonly read: (name: string) => Uint8Array;
  /** Maximum total bytes of open databases; beyond it the least recently used are closed. @default 1 GB */
  readonly maxOpenBytes?: number;
}

/**
 * One open connection per database, however many environments use it.
 *
 * @example
 * const pool = new DatabasePool({ names: ["shop"], read: (name) => readFileSync(`${name}.sqlite`) });
 * pool.get("shop").run("SELECT count(*) FROM item");
 * pool.close();
 */
export class DatabasePool {
  readonly names: readonly string[];
  /** Whether "text" in double quotes may be a string in these databases. */
  readonly doubleQuotedStrings: boolean;
  readonly #options: DatabasePoolOptions;
  readonly #open = new Map<string, Database>(); // least recently used first
  #openBytes = 0;

  constructor(options: DatabasePoolOptions) {
    this.#options = options;
    this.names = options.names;
    this.doubleQuotedStrings = options.doubleQuotedStrings ?? false;
  }

  /** Returns a database by name. Do not keep it: it may be closed when others are opened. */
  get(name: string): Database {
    let database = this.#open.get(name);
    if (database) {
      this.#open.delete(name);
    } else {
      if (!this.names.includes(name)) {
        throw new SqlEnvError("unknown_database", {
          what: "no such database",
          value: name,
          remedy: `${this.names.length} are known`,
        });
      }
      database = new Database(name, this.#options.read(name), this.#options);
      this.#openBytes += database.byteLength;
      this.#makeRoom();
    }
    this.#open.set(name, database);
    return database;
  }

  close(): void {
    for (const database of this.#open.values()) database.close();
    this.#open.clear();
    this.#openBytes = 0;
  }

  #makeRoom(): void {
    const { maxOpenBytes = 1_000_000_000 } = this.#options;
    for (const [name, database] of this.#open) {
      if (this.#openBytes <= maxOpenBytes) return;
      this.#open.delete(name);
      this.#openBytes -= database.byteLength;
      database.close();
    }
  }
}

/** @deprecated use `DatabasePool` */
export { DatabasePool as DatabaseShelf };

/** @deprecated use `DatabasePoolOptions` */
export type ShelfOptions = DatabasePoolOptions;
