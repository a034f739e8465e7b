// CSV files as one database: one table per file, types and keys inferred from the values.
import { QuestionLoadError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { type Cell, createDatabase, Database, quoteName } from "../../sql/index.ts";
import type { SourceDatabase } from "../make.ts";
import { type FoundSchema, isIdName, isKey, type Note, readSchema } from "../schema.ts";
import type { ColumnFilter } from "./columns.ts";
import { copyTables, type SourceReference, type SourceTable } from "./copy.ts";
import { readCsv } from "./csv.ts";
import { databaseName } from "./database-name.ts";
import { MAX_SOURCE_COLUMNS } from "./limits.ts";

/** A CSV file, wherever it is. */
export interface CsvFile {
  /** The table's name. */
  readonly name: string;
  /** The file's path or name, for error messages. */
  readonly label: string;
  /** Reads the file from its beginning; called again for each pass over it. */
  bytes(): Iterable<Uint8Array>;
}

export interface CsvOptions {
  readonly seed: number;
  /** Rows per table; more are sampled. */
  readonly maxRows: number;
  readonly filter: ColumnFilter;
}

/** Reads CSV files as one database. */
export async function readCsvTables(
  name: string,
  files: readonly CsvFile[],
  { seed, maxRows, filter }: CsvOptions,
): Promise<SourceDatabase> {
  const tables: CsvTable[] = [];
  const notes: Note[] = [];
  for (const file of files) {
    const table = openTable(file, maxRows, seed, filter);
    if (tables.some((other) => other.name.toLowerCase() === table.name.toLowerCase()))
      throw new QuestionLoadError({ what: "two files would be one table", value: file.label, remedy: "rename one" });
    notes.push(...table.notes);
    if (table.columns.length > 0) tables.push(table);
  }
  const keyed = withKeys(tables);
  const { bytes, notes: copied } = await copyTables(keyed, maxRows);
  return { name: databaseName(name), bytes, guessed: true, notes: [...notes, ...copied] };
}

/** The name of a table or database that is made from a CSV file. */
export function csvName(file: string): string {
  return file.replace(/\.(?:csv|tsv)$/i, "");
}

interface CsvTable {
  readonly file: CsvFile;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly at: number }[];
  /** Sampled rows. */
  readonly rows: readonly (readonly Cell[])[];
  readonly total: number;
  readonly notes: readonly Note[];
}

/** Reads a file once: keeps a sample of its rows (reservoir sampling) and infers the types from all of them. */
function openTable(file: CsvFile, maxRows: number, seed: number, filter: ColumnFilter): CsvTable {
  const { name, label } = file;
  const records = recordsOf(file);
  const first = records.next();
  if (first.done)
    throw new QuestionLoadError({ what: "the file is empty", value: label, remedy: "leave it out" }, "bad_csv");
  const names = headerOf(first.value, label);
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
    file,
    name,
    columns,
    rows: texts.map((row) => row.map((text, i) => cellOf(text, columns[i]!.type))),
    total,
    notes,
  };
}

function headerOf(record: readonly string[], label: string): string[] {
  const names = record.map((text, i) => text.trim() || `column_${i + 1}`);
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name.toLowerCase()))
      throw new QuestionLoadError(
        { what: "two columns have one name", value: `${name} (${label})`, remedy: "rename one" },
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
  const { name, columns, rows, total, file } = table;
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
      const records = recordsOf(file);
      records.next();
      for (const record of records) {
        const value = cellOf(record[at]!, columns.find((one) => one.at === at)!.type);
        if (wanted.has(String(value))) matching.push(columns.map((one) => cellOf(record[one.at]!, one.type)));
      }
      return matching;
    },
  };
}

function recordsOf(file: CsvFile): Generator<readonly string[]> {
  return readCsv(pieces(file.bytes(), file.label), { file: file.label, maxColumns: MAX_SOURCE_COLUMNS });
}

/** The text of a file, piece by piece. */
function* pieces(chunks: Iterable<Uint8Array>, label: string): Generator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for (const chunk of chunks) yield decode(decoder, chunk, true, label);
  yield decode(decoder, new Uint8Array(), false, label);
}

function decode(decoder: TextDecoder, bytes: Uint8Array, stream: boolean, label: string): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw new QuestionLoadError(
      {
        what: "the file is not text in UTF-8",
        value: label,
        remedy: "convert it, for example with iconv -t utf-8, or save it as CSV UTF-8 in a spreadsheet",
      },
      "bad_csv",
    );
  }
}
