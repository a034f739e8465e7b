// A PostgreSQL database as a source: its tables are read in one read-only transaction and copied. Passwords come from the
// environment (PGPASSWORD) or ~/.pgpass only, since a command line is visible to everybody on the machine.
import { messageOf, QuestionLoadError, UsageError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import type { Cell } from "../../sql/index.ts";
import type { SourceDatabase } from "../make.ts";
import type { Note } from "../schema.ts";
import type { ColumnFilter } from "./columns.ts";
import { copyTables, type SourceReference, type SourceTable } from "./copy.ts";
import { databaseName } from "./database-name.ts";

export interface PostgresOptions {
  readonly seed: number;
  readonly maxRows: number;
  /** @default public */
  readonly schema?: string;
  readonly filter: ColumnFilter;
  readonly onTable?: (name: string) => void;
}

/** The methods of a `pg` client that are used. */
interface Client {
  connect(): Promise<void>;
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): void;
}

const CONNECT_MS = 15_000;
const STATEMENT_MS = 300_000;
/** From this many rows on, a table is sampled by whole pages instead of reading every row. */
const LARGE = 5_000_000;
/** Values of one query that fetches the rows with these values. */
const LOOKED_UP = 5_000;

/** Whether a source is an address of PostgreSQL. */
export function isPostgres(source: string): boolean {
  return /^postgres(?:ql)?:/i.test(source);
}

/** Copies the tables of one schema. */
export async function readPostgres(address: string, options: PostgresOptions): Promise<SourceDatabase> {
  const { config, shown } = parseAddress(address);
  const client = await newClient(config);
  client.on("error", () => {}); // the query that runs is rejected as well
  try {
    await client.connect();
    await client.query("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const { tables, notes } = await listTables(client, options);
    if (tables.length === 0)
      throw new QuestionLoadError({
        what: `the schema ${options.schema ?? "public"} has no table that can be read`,
        value: shown,
        remedy: "choose another with --schema",
      });
    const { bytes, notes: copied } = await copyTables(tables, options.maxRows);
    return { name: databaseName(config.database), bytes, notes: [...notes, ...copied] };
  } catch (error) {
    if (error instanceof QuestionLoadError || error instanceof UsageError) throw error;
    throw failed(error, shown);
  } finally {
    await client.end().catch(() => {});
  }
}

interface Config {
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly user: string | undefined;
  readonly database: string;
  readonly ssl?: boolean | { readonly rejectUnauthorized: boolean };
}

/** Parses an address and refuses a password in it. */
function parseAddress(address: string): { readonly config: Config; readonly shown: string } {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    throw new UsageError({ what: "not a PostgreSQL address", remedy: "write postgres://user@host:port/database" });
  }
  if (url.password !== "" || url.searchParams.has("password"))
    throw new UsageError({
      what: "a password in the address is visible to everybody on this machine",
      remedy: "put it into the environment variable PGPASSWORD or into ~/.pgpass",
    });
  const database = decodeURIComponent(url.pathname.slice(1));
  if (database === "" || database.includes("/"))
    throw new UsageError({
      what: "the address names no database",
      value: url.href,
      remedy: "write postgres://user@host:port/database",
    });
  const unknown = [...url.searchParams.keys()].find((key) => !["sslmode", "host"].includes(key));
  if (unknown !== undefined)
    throw new UsageError({
      what: "unknown parameter in the address",
      value: unknown,
      remedy: "host and sslmode are known",
    });
  const mode = url.searchParams.get("sslmode");
  if (mode !== null && !["disable", "prefer", "require", "verify-full"].includes(mode))
    throw new UsageError({ what: "unknown sslmode", value: mode, remedy: "use disable, require or verify-full" });
  return {
    shown: url.href,
    config: {
      host: url.searchParams.get("host") ?? (url.hostname === "" ? undefined : decodeURIComponent(url.hostname)),
      port: url.port === "" ? undefined : Number(url.port),
      user: url.username === "" ? undefined : decodeURIComponent(url.username),
      database,
      ...(mode === "require" && { ssl: { rejectUnauthorized: false } }),
      ...(mode === "verify-full" && { ssl: true }),
      ...(mode === "disable" && { ssl: false }),
    },
  };
}

async function newClient(config: Config): Promise<Client> {
  const name: string = "pg"; // a variable, so that the compiler does not look for the optional package
  let pg: { readonly default: { readonly Client: new (config: object) => Client } };
  try {
    pg = (await import(name)) as typeof pg;
  } catch (cause) {
    throw new UsageError({ what: "the package pg is not installed", remedy: "install it: npm install pg", cause });
  }
  return new pg.default.Client({
    ...config,
    application_name: "sqlenv",
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
  });
}

function failed(error: unknown, shown: string): QuestionLoadError {
  const { code } = error as { code?: string };
  // A list of addresses that were tried has no message of its own.
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const message = messageOf(first).split("\n")[0] || String(code);
  const isLogin = code === "28P01" || code === "28000" || /password|SASL/i.test(message);
  const isThere = !["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENOENT", "ETIMEDOUT"].includes(code ?? "");
  return new QuestionLoadError(
    {
      what: `PostgreSQL: ${message}`,
      value: shown,
      remedy: isLogin
        ? "put the password into PGPASSWORD or ~/.pgpass"
        : isThere
          ? "nothing was written; try again"
          : "check host and port",
      cause: error,
    },
    "postgres",
  );
}

interface Listed {
  readonly table: string;
  readonly column: string;
  readonly full_type: string;
  readonly type: string;
  readonly kind: string;
  readonly scale: number | null;
  readonly estimate: number;
  readonly readable: boolean;
}

const LIST_COLUMNS = `
  SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, NULL) AS full_type,
         COALESCE(b.typname, t.typname) AS type, COALESCE(b.typtype, t.typtype)::text AS kind,
         CASE WHEN a.atttypmod >= 4 THEN (a.atttypmod - 4) & 65535 END AS scale,
         c.reltuples::float8 AS estimate, has_table_privilege(c.oid, 'SELECT') AS readable
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
  WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  ORDER BY c.relname, a.attnum`;

const LIST_KEYS = `
  SELECT k.contype::text AS kind, c.relname AS "table", a.attname AS "column", f.relname AS "to", fa.attname AS key
  FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
  LEFT JOIN pg_class f ON f.oid = k.confrelid AND f.relnamespace = c.relnamespace
  LEFT JOIN pg_attribute fa ON fa.attrelid = f.oid AND fa.attnum = k.confkey[1]
  WHERE n.nspname = $1 AND k.contype IN ('p', 'f') AND cardinality(k.conkey) = 1
  ORDER BY c.relname, a.attnum`;

async function listTables(
  client: Client,
  options: PostgresOptions,
): Promise<{ readonly tables: readonly SourceTable[]; readonly notes: readonly Note[] }> {
  const { schema = "public", filter } = options;
  const notes: Note[] = [];
  const columns = (await client.query(LIST_COLUMNS, [schema])).rows as unknown as readonly Listed[];
  const keys = (await client.query(LIST_KEYS, [schema])).rows as readonly Record<string, string>[];
  const tables: SourceTable[] = [];
  for (const name of new Set(columns.map(({ table }) => table))) {
    const all = columns.filter(({ table }) => table === name);
    if (!all[0]!.readable) {
      notes.push({ name, reason: "this user may not read it" });
      continue;
    }
    const allowed = all.filter(({ column }) => filter.allows(name, column));
    if (allowed.length < all.length)
      notes.push({ name, reason: `${all.length - allowed.length} of ${all.length} columns are excluded` });
    const read = allowed.flatMap((column) => {
      const how = reading(column);
      if (!how)
        notes.push({ name: `${name}.${column.column}`, reason: `values of type ${column.full_type} are not copied` });
      return how ? [{ ...column, ...how }] : [];
    });
    if (read.length === 0) continue;
    const own = keys.filter(({ table }) => table === name);
    tables.push(
      sourceTable(client, options, read, {
        primaryKey: own.find(({ kind }) => kind === "p")?.column,
        references: own
          .filter(({ kind, to, key }) => kind === "f" && to && key)
          .map(({ column, to, key }) => ({ column: column!, to: to!, key: key! })),
      }),
    );
  }
  return { tables, notes };
}

interface Read extends Listed {
  /** The expression that gives the value as text. */
  readonly sql: string;
  readonly declared: string;
  readonly cell: (text: string) => Cell;
}

/** How a column is read; undefined if its type has no counterpart. */
function reading({ column, type, kind, scale }: Listed): Pick<Read, "sql" | "declared" | "cell"> | undefined {
  const name = quoted(column);
  const plain = { sql: `${name}::text`, cell: (text: string): Cell => text };
  if (kind === "e") return { ...plain, declared: "TEXT" };
  switch (type) {
    case "int2":
    case "int4":
    case "int8":
      return { ...plain, declared: "INTEGER", cell: integer };
    case "numeric":
      return scale === 0
        ? { ...plain, declared: "INTEGER", cell: integer }
        : { ...plain, declared: "REAL", cell: real };
    case "float4":
    case "float8":
      return { ...plain, declared: "REAL", cell: real };
    case "bool":
      return { sql: `${name}::int::text`, declared: "BOOLEAN", cell: integer };
    case "date":
      return { sql: `to_char(${name}, 'YYYY-MM-DD')`, declared: "DATE", cell: plain.cell };
    case "timestamp":
      return { sql: `to_char(${name}, 'YYYY-MM-DD HH24:MI:SS')`, declared: "DATETIME", cell: plain.cell };
    case "timestamptz":
      return {
        sql: `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')`,
        declared: "DATETIME",
        cell: plain.cell,
      };
    case "text":
    case "varchar":
    case "bpchar":
    case "name":
    case "citext":
    case "uuid":
    case "time":
    case "timetz":
    case "interval":
    case "inet":
    case "cidr":
    case "macaddr":
      return { ...plain, declared: "TEXT" };
    default:
      return undefined;
  }
}

function integer(text: string): Cell {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : text.includes(".") ? value : BigInt(text);
}

/** NaN and the infinities have no counterpart. */
function real(text: string): Cell {
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

function sourceTable(
  client: Client,
  { schema = "public", seed, onTable }: PostgresOptions,
  columns: readonly Read[],
  {
    primaryKey,
    references,
  }: { readonly primaryKey: string | undefined; readonly references: readonly SourceReference[] },
): SourceTable {
  const { table: name, estimate } = columns[0]!;
  const from = `${quoted(schema)}.${quoted(name)}`;
  const list = columns.map(({ sql }, i) => `${sql} AS c${i}`).join(", ");
  const hasKey = columns.some(({ column }) => column === primaryKey);
  const rowsOf = async (rest: string, values?: readonly unknown[]): Promise<Cell[][]> => {
    const { rows } = await client.query(`SELECT ${list} FROM ${from} ${rest}`, values);
    return rows.map((row) =>
      columns.map(({ cell }, i) => {
        const text = row[`c${i}`] as string | null;
        return text === null ? null : cell(text);
      }),
    );
  };
  const count = async (sql: string) => Number((await client.query(sql)).rows[0]!.n);
  return {
    name,
    columns: columns.map(({ column, declared }) => ({ name: column, type: declared })),
    ...(hasKey && { primaryKey: primaryKey! }),
    references,
    sample: async (limit) => {
      onTable?.(name);
      const few = await count(`SELECT count(*) AS n FROM (SELECT 1 FROM ${from} LIMIT ${limit + 1}) AS few`);
      const order = hasKey ? ` ORDER BY ${quoted(primaryKey!)}` : "";
      if (few <= limit) return { rows: await rowsOf(order), total: few };
      const total = estimate > limit ? Math.round(estimate) : await count(`SELECT count(*) AS n FROM ${from}`);
      const percent = Math.min(100, (110 * limit) / total + 0.001);
      const method = total > LARGE ? "SYSTEM" : "BERNOULLI";
      const drawn = await rowsOf(`TABLESAMPLE ${method} (${percent.toFixed(6)}) REPEATABLE (${seed})${order}`);
      const chosen = new Set(
        random("make-postgres", seed, name).sample(
          drawn.map((_, i) => i),
          limit,
        ),
      );
      return { rows: drawn.filter((_, i) => chosen.has(i)), total };
    },
    rowsWith: async (column, values) => {
      const type = columns.find((one) => one.column === column)!.full_type;
      const found: Cell[][] = [];
      for (let at = 0; at < values.length; at += LOOKED_UP) {
        const some = values.slice(at, at + LOOKED_UP).map(String);
        found.push(...(await rowsOf(`WHERE ${quoted(column)} = ANY($1::${type}[])`, [some])));
      }
      return found;
    },
  };
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
