// Perturbed twins of a database: the same tables with other rows, which expose queries that are right by luck. Keys and
// references stay valid, and texts are only exchanged, never invented, so the gold query stays sensible.
import { type Random, random } from "../../../random.ts";
import { type Cell, createDatabase, Database, type SqlToken, type Table, tokenizeSql } from "../../sql/index.ts";

/** Incremented when the same seed starts to give another twin. */
export const TWINS_VERSION = "twins-1";

/**
 * Maximum rows copied per table; larger tables are truncated, since a dozen twins of a database may be open at once.
 */
export const MAX_TWIN_ROWS = 10_000;

/** Maximum bytes copied per table. */
export const MAX_TWIN_BYTES = 4_000_000;

const MOVED = 0.5; // share of rows that change; the others keep combined conditions satisfiable
const DROPPED = 0.12; // share of rows that are left out
const COPIED = 0.06; // share of rows that are duplicated, with a new key if they have one
const SWAPPED = 0.6; // share of cells that change in a changed row
const REPEATED = 0.08; // share of changed cells in a unique text column that repeat another row's text
const FEW_VALUES = 12; // a numeric column with fewer distinct values is categorical and keeps them
const JITTER = 0.2; // maximum change, relative to a number or to its column's spread
const PLACED = 0.15; // share of a compared column's cells that get a value from a condition, or a neighbour of one
const MIN_ROWS = 3; // smaller tables keep their rows
const SHARED = 0.5; // two columns with the same name count as a reference if they share this part of their values

/** What the gold queries reveal about a database. */
export interface GoldHints {
  /** Names of columns used in joins, in lower case. */
  readonly joined: ReadonlySet<string>;
  /** Values that conditions compare a column with, by column name in lower case. */
  readonly compared: ReadonlyMap<
    string,
    { readonly numbers: ReadonlySet<number>; readonly texts: ReadonlySet<string> }
  >;
}

const COMPARISONS = new Set(["=", "==", "<>", "!=", "<", ">", "<=", ">=", "BETWEEN"]);

/** Collects the hints from gold queries. */
export function goldHints(queries: readonly string[]): GoldHints {
  const joined = new Set<string>();
  const compared = new Map<string, { numbers: Set<number>; texts: Set<string> }>();
  const addLiteral = (name: string, { kind, text }: SqlToken) => {
    const { numbers, texts } = compared.get(name) ?? { numbers: new Set<number>(), texts: new Set<string>() };
    if (kind === "number") numbers.add(Number(text));
    else texts.add(text.slice(1, -1).replaceAll(text[0]!.repeat(2), text[0]!));
    compared.set(name, { numbers, texts });
  };
  for (const sql of queries) {
    const tokens = tokenizeSql(sql);
    const isName = (i: number) => tokens[i]?.kind === "word" || tokens[i]?.kind === "quoted";
    const nameAt = (i: number) => tokens[i]!.text.replace(/^["`[]|["`\]]$/g, "").toLowerCase();
    tokens.forEach(({ key, text }, i) => {
      if (COMPARISONS.has(key) && isName(i - 1)) {
        const right = tokens[i + 1];
        const end = tokens[i + 2]?.text === "." ? i + 3 : i + 1;
        if (right?.kind === "number" || right?.kind === "string" || (right?.text[0] === '"' && end === i + 1)) {
          addLiteral(nameAt(i - 1), right);
          if (key === "BETWEEN" && tokens[i + 3]?.kind === "number") addLiteral(nameAt(i - 1), tokens[i + 3]!);
        } else if (text === "=" && isName(end) && tokens[end]!.key !== "SELECT") {
          joined.add(nameAt(i - 1)).add(nameAt(end));
        }
      }
      if (key === "IN" && tokens[i + 1]?.text === "(" && tokens[i + 2]?.key === "SELECT") {
        const left = tokens[i - 1]?.key === "NOT" ? i - 2 : i - 1;
        const selected = tokens[i + 4]?.text === "." ? i + 5 : i + 3;
        if (isName(left) && isName(selected)) joined.add(nameAt(left)).add(nameAt(selected));
      }
    });
  }
  return { joined, compared };
}

/** Makes the twin for a seed. Throws SqlEnvError if the tables cannot be recreated. */
export function makeTwin(database: Database, hints: GoldHints, seed: number): Database {
  const r = random(TWINS_VERSION, database.name, seed);
  const tables = database.tables.filter(({ kind }) => kind === "table");
  const contents = tables.map((table) => readContent(database, table));
  const keys = keyColumns(contents, hints);
  const kept = contents.map((content) => ({ ...content, rows: dropRows(content, r.fork("drop", content.table.name)) }));
  const twins = kept.map((content) => {
    const { table } = content;
    const columns = table.columns.map((_, c) => keys.has(`${table.name}.${c}`));
    const values = table.columns.map((_, c) => allowedValues(content, c, kept));
    const changed = changeRows(content, columns, values, hints, r.fork("change", table.name));
    placeLiterals(table, changed, columns, hints, r.fork("literals", table.name));
    const rows = withUniqueKeys(table, copyRows(table, changed, columns, r.fork("copy", table.name)));
    return { name: table.name, ddl: ddlOf(table), rows };
  });
  const { name, doubleQuotedStrings } = database;
  return new Database(name, createDatabase(twins), { doubleQuotedStrings });
}

interface Content {
  readonly table: Table;
  readonly rows: readonly (readonly Cell[])[];
}

function readContent(database: Database, table: Table): Content {
  const all = database.run(`SELECT * FROM ${quoted(table.name)}`, { maxRows: MAX_TWIN_ROWS, maxBytes: MAX_TWIN_BYTES });
  return { table, rows: all.ok ? all.table.rows : [] };
}

/**
 * Columns whose values link rows, as `table.number`: declared keys, columns used in joins, and columns that share a
 * name and values.
 */
function keyColumns(contents: readonly Content[], { joined }: GoldHints): Set<string> {
  const keys = new Set<string>();
  const named = new Map<string, { id: string; values: ReadonlySet<Cell> }[]>();
  for (const { table, rows } of contents) {
    table.columns.forEach(({ name, primary_key }, c) => {
      const id = `${table.name}.${c}`;
      const lower = name.toLowerCase();
      if (primary_key || joined.has(lower)) keys.add(id);
      const others = named.get(lower) ?? [];
      named.set(lower, [...others, { id, values: new Set(rows.map((row) => row[c] ?? null)) }]);
    });
    for (const { column, table: parent, references } of table.foreign_keys) {
      for (const [owner, name] of [
        [table.name, column],
        [parent, references],
      ] as const) {
        const found = contents.find((content) => content.table.name.toLowerCase() === owner.toLowerCase())?.table;
        const c = found?.columns.findIndex((one) => one.name.toLowerCase() === name.toLowerCase()) ?? -1;
        if (found && c >= 0) keys.add(`${found.name}.${c}`);
      }
    }
  }
  for (const columns of named.values()) {
    for (const one of columns) {
      for (const other of columns) {
        if (one === other) continue;
        const common = [...one.values].filter((value) => value !== null && other.values.has(value)).length;
        if (common > 1 && common >= SHARED * Math.min(one.values.size, other.values.size)) keys.add(one.id);
      }
    }
  }
  return keys;
}

function dropRows({ rows }: Content, r: Random): readonly (readonly Cell[])[] {
  if (rows.length < MIN_ROWS) return rows;
  const kept = rows.filter(() => !r.chance(DROPPED));
  return kept.length < MIN_ROWS ? rows : kept;
}

/** For a column that references another table, the values left in that table; undefined if any value is allowed. */
function allowedValues({ table }: Content, c: number, kept: readonly Content[]): ReadonlySet<Cell> | undefined {
  const key = table.foreign_keys.find(({ column }) => column.toLowerCase() === table.columns[c]!.name.toLowerCase());
  const parent = key && kept.find((content) => content.table.name.toLowerCase() === key.table.toLowerCase());
  const column = parent?.table.columns.findIndex(({ name }) => name.toLowerCase() === key!.references.toLowerCase());
  if (!parent || column === undefined || column < 0) return undefined;
  return new Set(parent.rows.map((row) => row[column] ?? null));
}

/** Changes cells of the rows to perturb, and of rows whose reference was dropped. */
function changeRows(
  { table, rows }: Content,
  isKey: readonly boolean[],
  allowed: readonly (ReadonlySet<Cell> | undefined)[],
  { compared }: GoldHints,
  r: Random,
): Cell[][] {
  const changed = rows.map((row) => [...row]);
  const moved = rows.map((_, i) => i).filter(() => r.chance(MOVED));
  table.columns.forEach((column, c) => {
    const values = rows.map((row) => row[c] ?? null);
    const different = new Set(values);
    const isUnique = different.size === values.length;
    const parents = allowed[c];
    if (isKey[c] && isUnique && !parents) return;
    if (column.primary_key && table.columns.filter(({ primary_key }) => primary_key).length === 1) return;
    if (isKey[c]) {
      const isReal = parents !== undefined && isRealReference(values, parents);
      const valid = parents ? values.filter((value) => value === null || parents.has(value)) : values;
      // A dangling reference makes every join empty in the original; the twin gets valid references.
      const pool = valid.some((value) => value !== null) ? valid : [...(parents ?? [])];
      if (pool.length === 0) return;
      const isMoved = new Set(moved);
      changed.forEach((row, i) => {
        const isOrphan = isReal && row[c] !== null && !parents.has(row[c]!);
        if (isOrphan || (isMoved.has(i) && r.chance(SWAPPED))) row[c] = r.pick(pool);
      });
      return;
    }
    const touched = moved.filter(() => r.chance(SWAPPED));
    const isNumeric = values.every((value) => value === null || typeof value === "number");
    if (isNumeric && different.size > FEW_VALUES) {
      const vary = jitterOf(values as (number | null)[], r);
      const literals = compared.get(column.name.toLowerCase())?.numbers;
      for (const i of touched) {
        const value = values[i] as number | null;
        if (value === null || literals?.has(value)) changed[i]![c] = r.pick(values);
        else changed[i]![c] = vary(value);
      }
      return;
    }
    // Unique texts are swapped, with a few duplicates; other texts are resampled, so that their counts change.
    const exchanged = isUnique ? r.shuffle(touched.map((i) => values[i]!)) : [];
    touched.forEach((i, place) => {
      changed[i]![c] = isUnique && !r.chance(REPEATED) ? exchanged[place]! : r.pick(values);
    });
  });
  return changed;
}

/**
 * Writes values from conditions, and their neighbours, into some cells of the compared columns. They distinguish `>`
 * from `>=`, and a condition from none.
 */
function placeLiterals(
  table: Table,
  rows: readonly Cell[][],
  isKey: readonly boolean[],
  { compared }: GoldHints,
  r: Random,
): void {
  if (rows.length < MIN_ROWS) return;
  table.columns.forEach(({ name }, c) => {
    const literals = compared.get(name.toLowerCase());
    if (!literals || isKey[c]) return;
    const values = rows.map((row) => row[c] ?? null).filter((value) => value !== null);
    const numbers = values.filter((value) => typeof value === "number");
    const isText = numbers.length === 0;
    const looksNumeric = isText && values.every((value) => /^-?\d+(?:\.\d+)?$/.test(String(value)));
    const unit = 10 ** -decimalsOf(looksNumeric ? values.map(Number) : numbers);
    const near = [...literals.numbers].flatMap((number) => [number, number - unit, number + unit]);
    const texts = [...literals.texts];
    const others = [...new Set(values)].filter((value) => !literals.texts.has(String(value)));
    const candidates: Cell[] = isText
      ? [
          ...(looksNumeric ? near.map(String) : []),
          ...(texts.length > 0 ? [...texts, ...(others.length > 0 ? r.sample(others, texts.length) : [OTHER])] : []),
        ]
      : near;
    if (candidates.length === 0) return;
    for (const i of r.sample(
      rows.map((_, i) => i),
      Math.max(2, Math.round(PLACED * rows.length)),
    ))
      rows[i]![c] = r.pick(candidates);
  });
}

/** Filler text for columns in which only values from conditions occur. */
const OTHER = "Other";

/** Whether most values have a parent; otherwise the declared reference is not real. */
function isRealReference(values: readonly Cell[], parents: ReadonlySet<Cell>): boolean {
  return 2 * values.filter((value) => value === null || parents.has(value)).length >= values.length;
}

/**
 * Returns a function that perturbs a number: integers stay integers, it adds no decimals, and a column without negative
 * numbers gets none.
 */
function jitterOf(values: readonly (number | null)[], r: Random): (value: number) => number {
  const known = values.filter((value) => value !== null && Number.isFinite(value)) as number[];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const decimals = decimalsOf(known);
  const unit = 10 ** -decimals;
  return (value) => {
    const reach = Math.max(unit, JITTER * Math.min(Math.abs(value) || high - low, (high - low) / 2 || 1));
    const next = value + (2 * r.next() - 1) * reach;
    const rounded = Number((Math.round(next / unit) * unit).toFixed(decimals));
    const other = rounded === value ? Number((value + unit).toFixed(decimals)) : rounded;
    return low >= 0 ? Math.max(0, other) : other;
  };
}

/** Decimals of a column's numbers, at most six. */
function decimalsOf(values: readonly number[]): number {
  const lengths = values.slice(0, 200).map((value) => (String(value).split(".")[1] ?? "").length);
  return Math.min(6, Math.max(0, ...lengths));
}

/** Duplicates some rows. An integer key that references nothing gets a new value; other keys rule out duplicates. */
function copyRows(table: Table, rows: readonly Cell[][], isKey: readonly boolean[], r: Random): Cell[][] {
  if (rows.length < MIN_ROWS) return [...rows];
  const primary = table.columns.flatMap(({ primary_key }, c) => (primary_key ? [c] : []));
  const unique = table.columns.flatMap((_, c) =>
    isKey[c] && new Set(rows.map((row) => row[c])).size === rows.length ? [c] : [],
  );
  const own = [...new Set([...primary, ...unique])];
  const refers = own.some((c) => table.foreign_keys.some(({ column }) => column === table.columns[c]!.name));
  const isWhole = (c: number) => rows.every((row) => Number.isSafeInteger(row[c]));
  if (own.length > 1 || refers || !own.every(isWhole)) return [...rows];
  let next = own.length === 1 ? rows.reduce((most, row) => Math.max(most, row[own[0]!] as number), 0) : 0;
  const copies = rows.flatMap((row) => {
    if (!r.chance(COPIED)) return [];
    const copy = [...row];
    if (own.length === 1) copy[own[0]!] = ++next;
    return [copy];
  });
  return [...rows, ...copies];
}

/** Removes rows with a duplicate primary key. */
function withUniqueKeys(table: Table, rows: readonly Cell[][]): Cell[][] {
  const primary = table.columns.flatMap(({ primary_key }, c) => (primary_key ? [c] : []));
  if (primary.length === 0) return [...rows];
  const seen = new Set<string>();
  return rows.filter((row) => {
    const key = JSON.stringify(primary.map((c) => (typeof row[c] === "bigint" ? `${row[c]}n` : row[c])));
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/**
 * The table's DDL without constraints and expressions from the original, none of which may run: names are quoted, types
 * are plain words.
 */
function ddlOf({ name, columns }: Table): string {
  const keys = columns.filter(({ primary_key }) => primary_key).map((column) => quoted(column.name));
  const lines = columns.map((column) => {
    const type = column.type.replace(/\bgenerated always\b/i, "").trim();
    return `${quoted(column.name)} ${/^[A-Za-z][A-Za-z0-9_ ]*(?:\([0-9, ]+\))?$/.test(type) ? type : ""}`;
  });
  return `CREATE TABLE ${quoted(name)} (${[...lines, ...(keys.length > 0 ? [`PRIMARY KEY (${keys.join(", ")})`] : [])].join(", ")})`;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
