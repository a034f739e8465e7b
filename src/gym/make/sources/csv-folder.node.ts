// A folder of CSV files as a source: one table per file, types and keys inferred from the values.
import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { QuestionLoadError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { type Cell, createDatabase, Database, quoteName } from "../../sql/index.ts";
import type { SourceDatabase } from "../make.ts";
import { type FoundSchema, isIdName, isKey, type Note, readSchema } from "../schema.ts";
import type { ColumnFilter } from "./columns.ts";
import { copyTables, type SourceReference, type SourceTable } from "./copy.ts";
import { readCsv } from "./csv.ts";
import { MAX_SOURCE_COLUMNS } from "./limits.ts";
import { databaseName } from "./sqlite.node.ts";

const PIECE = 1 << 20; // bytes read at a time

export interface CsvFolderOptions {
  readonly seed: number;
  readonly maxRows: number;
  readonly filter: ColumnFilter;
}

/** Paths of the CSV files in a folder, in order. */
export function csvFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /\.(?:csv|tsv)$/i.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/** Reads CSV files as one database. */
export async function readCsvFiles(
  name: string,
  paths: readonly string[],
  { seed, maxRows, filter }: CsvFolderOptions,
): Promise<SourceDatabase> {
  const tables: CsvTable[] = [];
  const notes: Note[] = [];
  for (const path of paths) {
    const table = openTable(path, maxRows, seed, filter);
    if (tables.some((other) => other.name.toLowerCase() === table.name.toLowerCase()))
      throw new QuestionLoadError({ what: "two files would be one table", value: path, remedy: "rename one" });
    notes.push(...table.notes);
    if (table.columns.length > 0) tables.push(table);
  }
  const keyed = withKeys(tables);
  const { bytes, notes: copied } = await copyTables(keyed, maxRows);
  return { name: databaseName(name), bytes, guessed: true, notes: [...notes, ...copied] };
}

/** The name of the database of a folder or file. */
export function nameOfCsv(path: string): string {
  return databaseName(basename(resolve(path)).replace(/\.(?:csv|tsv)$/i, ""));
}

interface CsvTable {
  readonly path: string;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly at: number }[];
  /** The sample. */
  readonly rows: readonly (readonly Cell[])[];
  readonly total: number;
  readonly notes: readonly Note[];
}

/** Reads a file once: keeps a sample of its rows (reservoir sampling) and infers the types from all of them. */
function openTable(path: string, maxRows: number, seed: number, filter: ColumnFilter): CsvTable {
  const name = basename(path).replace(/\.(?:csv|tsv)$/i, "");
  const records = readCsv(pieces(path), { file: path, maxColumns: MAX_SOURCE_COLUMNS });
  const first = records.next();
  if (first.done)
    throw new QuestionLoadError({ what: "the file is empty", value: path, remedy: "leave it out" }, "bad_csv");
  const names = headerOf(first.value, path);
  const kept = names.flatMap((column, at) => (filter.allows(name, column) ? [{ name: column, at }] : []));
  const types = new Types(kept.length);
  const texts: string[][] = [];
  const r = random("make-csv", seed, name);
  let total = 0;
  for (const record of records) {
    const row = kept.map(({ at }) => record[at]!);
    types.add(row);
    if (texts.length < maxRows) texts.push(row);
    else {
      const at = Math.floor(r.next() * (total + 1));
      if (at < maxRows) texts[at] = row;
    }
    total++;
  }
  const columns = kept.map(({ name: column, at }, i) => ({ name: column, at, type: types.of(i) }));
  const notes =
    names.length > kept.length ? [{ name, reason: `${names.length - kept.length} columns are excluded` }] : [];
  return {
    path,
    name,
    columns,
    rows: texts.map((row) => row.map((text, i) => cellOf(text, columns[i]!.type))),
    total,
    notes,
  };
}

function headerOf(record: readonly string[], path: string): string[] {
  const names = record.map((text, i) => text.trim() || `column_${i + 1}`);
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name.toLowerCase()))
      throw new QuestionLoadError(
        { what: "two columns have one name", value: `${name} (${path})`, remedy: "rename one" },
        "bad_csv",
      );
    seen.add(name.toLowerCase());
  }
  return names;
}

const NULLS = new Set(["", "NULL", "\\N"]);
const INTEGER = /^-?(?:0|[1-9]\d{0,14})$/;
const REAL = /^-?(?:0|[1-9]\d{0,14})?(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/;

/** The narrowest type of every column that all its values have. Numbers with leading zeros are text. */
class Types {
  readonly #isInteger: boolean[];
  readonly #isReal: boolean[];
  readonly #isUsed: boolean[];

  constructor(columns: number) {
    this.#isInteger = Array(columns).fill(true);
    this.#isReal = Array(columns).fill(true);
    this.#isUsed = Array(columns).fill(false);
  }

  add(row: readonly string[]): void {
    row.forEach((text, i) => {
      if (NULLS.has(text)) return;
      this.#isUsed[i] = true;
      if (this.#isInteger[i] && !INTEGER.test(text)) this.#isInteger[i] = false;
      if (this.#isReal[i] && !(REAL.test(text) && /\d/.test(text))) this.#isReal[i] = false;
    });
  }

  of(column: number): string {
    if (!this.#isUsed[column]) return "TEXT";
    return this.#isInteger[column] ? "INTEGER" : this.#isReal[column] ? "REAL" : "TEXT";
  }
}

function cellOf(text: string, type: string): Cell {
  if (NULLS.has(text)) return null;
  return type === "TEXT" ? text : Number(text);
}

/** Adds keys and references, inferred from the samples of all files as a database. */
function withKeys(tables: readonly CsvTable[]): SourceTable[] {
  const plain = createDatabase(
    tables.map(({ name, columns, rows }) => ({
      name,
      ddl: `CREATE TABLE ${quoteName(name)} (${columns.map((column) => `${quoteName(column.name)} ${column.type}`).join(", ")})`,
      rows,
    })),
  );
  const database = new Database("csv", plain);
  try {
    const schema = readSchema(database, {
      isPartial: (table) => tables.some(({ name, total, rows }) => name === table && total > rows.length),
    });
    return tables.map((table) => sourceTable(table, schema));
  } finally {
    database.close();
  }
}

function sourceTable(table: CsvTable, { tables, references }: FoundSchema): SourceTable {
  const { name, columns, rows, total, path } = table;
  const own: SourceReference[] = references.filter((one) => one.table === name);
  const found = tables.find((one) => one.name === name);
  const used = references.find(({ to }) => to === name)?.key;
  const key = used ?? found?.columns.find((column) => isIdName(column.name) && isKey(found, column))?.name;
  return {
    name,
    columns,
    ...(key !== undefined && { primaryKey: key }),
    references: own,
    sample: async () => ({ rows, total }),
    rowsWith: async (column, values) => {
      const wanted = new Set(values.map(String));
      const { at } = columns.find((one) => one.name === column)!;
      const matching: Cell[][] = [];
      const records = readCsv(pieces(path), { file: path, maxColumns: MAX_SOURCE_COLUMNS });
      records.next();
      for (const record of records) {
        const value = cellOf(record[at]!, columns.find((one) => one.at === at)!.type);
        if (wanted.has(String(value))) matching.push(columns.map((one) => cellOf(record[one.at]!, one.type)));
      }
      return matching;
    },
  };
}

/** The text of a file, piece by piece. */
function* pieces(path: string): Generator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const file = openSync(path, "r");
  try {
    const buffer = new Uint8Array(PIECE);
    for (;;) {
      const read = readSync(file, buffer);
      yield decode(decoder, buffer.subarray(0, read), read > 0, path);
      if (read === 0) return;
    }
  } finally {
    closeSync(file);
  }
}

function decode(decoder: TextDecoder, bytes: Uint8Array, stream: boolean, path: string): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw new QuestionLoadError(
      { what: "the file is not text in UTF-8", value: path, remedy: "convert it, for example with iconv -t utf-8" },
      "bad_csv",
    );
  }
}
