// Reads a database's tables and keys, and finds the references that its schema does not declare.
import { type Cell, type Column, type Database, MAX_INSTRUCTIONS, quoteName } from "../sql/index.ts";
import { singular, wordsIn } from "./words.ts";

/** Rows of a table that are read. Queries always run on all rows. */
export const READ_ROWS = 2_000;

/** A table as it was found: its rows (a sample of a large table), and statistics of all of them. */
export interface FoundTable {
  readonly name: string;
  readonly columns: readonly FoundColumn[];
  /** Number of all rows. */
  readonly count: number;
  readonly rows: readonly (readonly Cell[])[];
}

export interface FoundColumn extends Column {
  readonly index: number;
  /** Whether the schema declares this column as a reference, even one that is not used: its numbers are codes. */
  readonly coded: boolean;
  readonly nulls: number;
  /** Number of different values. */
  readonly distinct: number;
}

/** A column that refers to the key of another table. */
export interface Reference {
  readonly table: string;
  readonly column: string;
  readonly to: string;
  readonly key: string;
  /** Whether the schema declares it; else it was guessed from names and values. */
  readonly declared: boolean;
}

/** Something that was left out, and the reason. */
export interface Note {
  /** `table` or `table.column`. */
  readonly name: string;
  readonly reason: string;
}

export interface FoundSchema {
  readonly tables: readonly FoundTable[];
  readonly references: readonly Reference[];
  readonly notes: readonly Note[];
}

/**
 * Reads everything that is needed to write questions about a database. References to tables of which only some rows are
 * there (`isPartial`) are guessed by name alone.
 */
export function readSchema(
  database: Database,
  { isPartial = () => false }: { readonly isPartial?: (table: string) => boolean } = {},
): FoundSchema {
  const notes: Note[] = [];
  const tables: FoundTable[] = [];
  for (const table of database.tables) {
    if (table.kind === "view") {
      notes.push({ name: table.name, reason: "a view: only tables are asked about" });
      continue;
    }
    const found = readTable(database, table.name, table.columns);
    if (!found) notes.push({ name: table.name, reason: "it could not be read within the limits" });
    else if (found.count === 0) notes.push({ name: table.name, reason: "it has no rows" });
    else tables.push(found);
  }
  const references = [...declaredReferences(database, tables, notes)];
  references.push(...guessedReferences(database, tables, references, isPartial));
  return { tables, references, notes };
}

function readTable(database: Database, name: string, columns: readonly Column[]): FoundTable | undefined {
  const from = quoteName(name);
  const list = columns.map((column) => quoteName(column.name));
  const whole = { maxRows: READ_ROWS, maxBytes: 64_000_000, maxInstructions: MAX_INSTRUCTIONS };
  const counted = database.run(`SELECT COUNT(*) FROM ${from}`);
  if (!counted.ok) return undefined;
  const count = Number(counted.table.rows[0]![0]);
  // One row in `step`, spread over the table; a table without rowids gives its first rows.
  const step = Math.ceil(count / READ_ROWS);
  const spread = step > 1 ? database.run(`SELECT ${list} FROM ${from} WHERE rowid % ${step} = 0`, whole) : undefined;
  const read =
    spread?.ok && spread.table.rows.length > READ_ROWS / 4
      ? spread
      : database.run(`SELECT ${list} FROM ${from} LIMIT ${READ_ROWS}`, whole);
  if (!read.ok) return undefined;
  const found = columns.map((column, index) => {
    const result = database.run(`SELECT COUNT(*) - COUNT(${list[index]}), COUNT(DISTINCT ${list[index]}) FROM ${from}`);
    const [nulls, distinct] = result.ok ? result.table.rows[0]!.map(Number) : [count, 0];
    const coded = database
      .table(name)!
      .foreign_keys.some((key) => key.column.toLowerCase() === column.name.toLowerCase());
    return { ...column, index, coded, nulls: nulls!, distinct: distinct! };
  });
  return { name, columns: found, count, rows: read.table.rows };
}

function find(tables: readonly FoundTable[], name: string): FoundTable | undefined {
  return tables.find((table) => table.name.toLowerCase() === name.toLowerCase());
}

function columnNamed(table: FoundTable, name: string): FoundColumn | undefined {
  return table.columns.find((column) => column.name.toLowerCase() === name.toLowerCase());
}

/** Whether every row has a value and no value occurs twice. */
export function isKey(table: FoundTable, column: FoundColumn): boolean {
  return column.nulls === 0 && column.distinct === table.count;
}

function declaredReferences(database: Database, tables: readonly FoundTable[], notes: Note[]): Reference[] {
  const found = new Map<string, Reference>();
  for (const table of tables) {
    const declared = database.table(table.name)!.foreign_keys;
    for (const { column: from, table: target, references } of declared) {
      const [column, to] = [columnNamed(table, from), find(tables, target)];
      const key = to && columnNamed(to, references);
      const name = `${table.name}.${from}`;
      if (found.has(name.toLowerCase())) continue;
      const drop = (reason: string) =>
        notes.push({ name, reason: `its reference to ${target} is not used: ${reason}` });
      if (!column || !to || !key) drop("a column of it, or its table, is missing or empty");
      else if (to === table) drop("it refers to its own table");
      else if (!isKey(to, key)) drop(`${to.name}.${key.name} is not unique`);
      else {
        const orphans = countOrphans(database, table, column, to, key);
        if (orphans > 0) drop(`${orphans} of ${table.count} rows refer to a row that is not there`);
        else found.set(name.toLowerCase(), reference(table, column, to, key, true));
      }
    }
  }
  return [...found.values()];
}

function reference(table: FoundTable, column: FoundColumn, to: FoundTable, key: FoundColumn, declared: boolean) {
  return { table: table.name, column: column.name, to: to.name, key: key.name, declared };
}

/** Number of rows whose value is not in the other table; infinite if counting takes too long. */
function countOrphans(database: Database, table: FoundTable, column: FoundColumn, to: FoundTable, key: FoundColumn) {
  const [from, value] = [quoteName(table.name), quoteName(column.name)];
  const sql = `SELECT COUNT(*) FROM ${from} WHERE ${value} IS NOT NULL AND ${value} NOT IN (SELECT ${quoteName(key.name)} FROM ${quoteName(to.name)})`;
  const result = database.run(sql);
  return result.ok ? Number(result.table.rows[0]![0]) : Number.POSITIVE_INFINITY;
}

/** Names of keys that say nothing about their table. */
const GENERIC = new Set(["id", "code", "name", "no", "number", "key", "uid", "uuid", "title"]);

/** Guesses references: a column named like another table's key, or like the table, whose values all occur there. */
function guessedReferences(
  database: Database,
  tables: readonly FoundTable[],
  declared: readonly Reference[],
  isPartial: (table: string) => boolean,
): Reference[] {
  const found: Reference[] = [];
  const isKnown = (table: FoundTable, column: FoundColumn) =>
    [...declared, ...found].some((one) => one.table === table.name && one.column === column.name);
  for (const table of tables) {
    for (const column of table.columns) {
      if (isKnown(table, column) || column.distinct === 0) continue;
      for (const to of tables) {
        if (to === table) continue;
        // Of two tables that share a key, the one that is named like it is referred to.
        if (isOwnKey(table, column) && !isNamedLike(column, to)) continue;
        const key = keysFor(table, column, to).find(
          (key) =>
            isSameKind(table, column, to, key) &&
            (isPartial(to.name) || countOrphans(database, table, column, to, key) === 0),
        );
        if (!key) continue;
        found.push(reference(table, column, to, key, false));
        break;
      }
    }
  }
  return found;
}

function isOwnKey(table: FoundTable, column: FoundColumn): boolean {
  return column.primary_key && isKey(table, column);
}

/** Keys of `to` that a column's name may point to: `StuID` to `StuID`, `home_club_id` to the id of clubs, `planet` to their name. */
function keysFor(table: FoundTable, column: FoundColumn, to: FoundTable): FoundColumn[] {
  const keys = to.columns.filter((key) => isKey(to, key) && (key.primary_key || isIdName(key.name)));
  const flat = flatName(column.name);
  const same = keys.find((key) => flatName(key.name) === flat && !GENERIC.has(flat));
  if (same && !(isOwnKey(table, column) && table.count < to.count && isNamedLike(column, table))) return [same];
  if (isNamedLike(column, to)) return keys.slice(0, 1);
  if (!isNamedAs(column, to) || isOwnKey(table, column)) return [];
  return to.columns.filter(
    (key) => isKey(to, key) && (key.primary_key || isIdName(key.name) || /name$|title$/i.test(key.name)),
  );
}

function flatName(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** Whether a name ends as keys do. */
export function isIdName(name: string): boolean {
  return /(?:^|[_\W]|[a-z])(?:id|code|key|no|nr|uuid)$/i.test(name) && !/(?:valid|paid|grid)$/i.test(name);
}

/** Whether a column such as `airline` of flights has the name of a table, whose numbers or codes it holds. */
function isNamedAs(column: FoundColumn, to: FoundTable): boolean {
  const words = (name: string) => wordsIn(name).map((word) => singular(word.toLowerCase()));
  return words(column.name).join(" ") === words(to.name).join(" ");
}

/** Whether a column such as `home_club_id` is named after a table such as `clubs`. */
function isNamedLike(column: FoundColumn, to: FoundTable): boolean {
  if (!isIdName(column.name)) return false;
  const stem = wordsIn(column.name, new Set(wordsIn(to.name).map(singular)))
    .map((word) => singular(word.toLowerCase()))
    .slice(0, -1)
    .join(" ");
  const noun = wordsIn(to.name)
    .map((word) => singular(word.toLowerCase()))
    .join(" ");
  return stem !== "" && (stem === noun || stem.endsWith(` ${noun}`));
}

/** Whether both columns hold values of one JavaScript type, so that values of one can be found in the other. */
function isSameKind(table: FoundTable, column: FoundColumn, to: FoundTable, key: FoundColumn): boolean {
  const typeOf = (rows: FoundTable["rows"], index: number) => typeof rows.find((row) => row[index] !== null)?.[index];
  return typeOf(table.rows, column.index) === typeOf(to.rows, key.index);
}
