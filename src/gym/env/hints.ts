// Hints in errors about names (rule `error_hints`): they list columns of tables that the player has described, never
// others, since a hint must not replace a DESCRIBE. Table names are known from the first observation.
import { nearest } from "../../errors.ts";
import { type Database, quoteName, type SqlError, type Table, tokenizeSql } from "../sql/index.ts";

/**
 * Maximum columns listed in a hint; if there are more, those with the most similar names. BIRD's widest table has 115.
 */
const MAX_HINTED_COLUMNS = 60;

/** Maximum characters of a hint; a model sees the whole error, so it is bounded like a result (MAX_SHOWN_RESULT). */
export const MAX_HINT_LENGTH = 1_500;

/** Maximum characters of a wrong name that are compared with other names. */
const MAX_COMPARED = 100;

/**
 * Returns a hint for an error about a table or column, such as "; did you mean t.name? columns: t(id, name)", or "".
 */
export function hintFor(
  { error_class, message }: SqlError,
  sql: string,
  database: Database,
  described: ReadonlySet<string>,
): string {
  if (error_class === "unknown_table") return joined([tablesHint(message, database)]);
  const mistaken = mistakenColumn(message);
  if (mistaken === undefined) return "";
  const named = namedTables(sql, database);
  const known = named.filter(({ table }) => described.has(table.name));
  const others = database.tables
    .filter((table) => described.has(table.name) && named.every((name) => name.table !== table))
    .map((table): NamedTable => ({ table, shownAs: quoteName(table.name), isJoined: false }));
  const unknown = named.filter(({ table }) => !described.has(table.name));
  // The column may belong to a table the player has not described: a guess from other tables would mislead.
  const mayBeUnknown = unknown.some(
    ({ shownAs }) => mistaken.qualifier === undefined || plain(shownAs) === plain(mistaken.qualifier),
  );
  return joined([
    describeFirst(unknown),
    mayBeUnknown ? "" : suggestion(mistaken, [...known, ...others]),
    columnsHint(
      mistaken.column,
      (known.length > 0 || unknown.length > 0 ? known : others).map(({ table }) => table),
    ),
  ]);
}

/** Returns "DESCRIBE a first" if the query uses tables whose columns the player has not seen. */
function describeFirst(unknown: readonly NamedTable[]): string {
  const names = [...new Set(unknown.map(({ table }) => quoteName(table.name)))];
  return names.length === 0 ? "" : `DESCRIBE ${names.join(", ")} first`;
}

/** Hint for an argument that names several tables although DESCRIBE and SAMPLE take one. */
export function severalTablesHint(argument: string, database: Database): string {
  const parts = argument.slice(0, 1_000).split(/[|,;&\n]|\s+and\s+/i);
  const tables = parts.flatMap((part) => database.table(part.trim()) ?? []);
  return tables.length < 2 ? "" : `; one table at a time, such as ${quoteName(tables[0]!.name)}`;
}

function joined(parts: readonly string[]): string {
  const text = parts
    .filter((part) => part !== "")
    .reduce((before, part) => `${before}${before.endsWith("?") ? " " : "; "}${part}`, "");
  return text.length <= MAX_HINT_LENGTH ? text : `${text.slice(0, MAX_HINT_LENGTH).replace(/[\ud800-\udbff]$/, "")}…`;
}

interface Mistaken {
  readonly column: string;
  /** The qualifier before the column: an alias or a table. */
  readonly qualifier: string | undefined;
  readonly isAmbiguous: boolean;
}

/** Extracts the column that SQLite's message complains about. */
function mistakenColumn(message: string): Mistaken | undefined {
  const match =
    /^(no such column|ambiguous column name): (.+?)(?: - should this be a string literal in single-quotes\?)?$/s.exec(
      message,
    ) ?? /^(cannot join using column) (.+?) - column not present in both tables$/s.exec(message);
  if (!match) return undefined;
  const name = match[2]!.replace(/^"(.*)"$/s, "$1");
  const dot = name.lastIndexOf(".");
  return {
    column: name.slice(dot + 1),
    qualifier: dot < 0 ? undefined : name.slice(0, dot),
    isAmbiguous: match[1] === "ambiguous column name",
  };
}

/** A table as the query refers to it. */
interface NamedTable {
  readonly table: Table;
  /** Its alias, or its name quoted as SQL requires. */
  readonly shownAs: string;
  /** Whether it appears in a FROM clause, not only as a qualifier. */
  readonly isJoined: boolean;
}

/** Finds the tables a query names, in order. Works on tokens, since SQLite rejected the query and it may not parse. */
function namedTables(sql: string, database: Database): NamedTable[] {
  const tokens = tokenizeSql(sql);
  const tables = new Map(database.tables.map((table) => [table.name.toLowerCase(), table]));
  const names = tokens.map(({ kind, text }) => (kind === "word" || kind === "quoted" ? bareName(text) : undefined));
  const isName = (i: number) =>
    names[i] !== undefined && (tokens[i]!.kind === "quoted" || quoteName(names[i]!) === names[i]);
  const found: NamedTable[] = [];
  let isFrom = false;
  for (const [i, { key }] of tokens.entries()) {
    if (key === "FROM" || key === "JOIN") isFrom = true;
    else if (key === "SELECT" || key === "WHERE" || key === "ON" || key === "GROUP" || key === "ORDER") isFrom = false;
    if (names[i] === undefined || tokens[i - 1]?.text === "." || tokens[i + 1]?.text === "(") continue;
    const table = tables.get(names[i]!.toLowerCase());
    if (!table) continue;
    const isJoined = isFrom && tokens[i + 1]?.text !== ".";
    const at = tokens[i + 1]?.key === "AS" ? i + 2 : i + 1;
    const shownAs = isJoined && isName(at) ? quoteName(names[at]!) : quoteName(table.name);
    const index = found.findIndex((other) => other.table === table && (!isJoined || other.shownAs === shownAs));
    if (index < 0) found.push({ table, shownAs, isJoined });
  }
  // Drop a qualifier whose table is already listed as joined.
  return found.filter((name) => name.isJoined || !found.some((other) => other.isJoined && other.table === name.table));
}

/** The name in a token, without quotes. */
function bareName(text: string): string {
  const quote = text[0]!;
  if (quote === "[") return text.slice(1, -1);
  return quote === '"' || quote === "`" ? text.slice(1, -1).replaceAll(quote + quote, quote) : text;
}

/**
 * Suggests "did you mean t.name?": the same name in another table, else the most similar one. Prefers the qualifier's
 * table, then tables in FROM.
 */
function suggestion({ column, qualifier, isAmbiguous }: Mistaken, tables: readonly NamedTable[]): string {
  const has = ({ table }: NamedTable) => table.columns.find(({ name }) => plain(name) === plain(column));
  const isMeant = ({ shownAs, table }: NamedTable) =>
    qualifier !== undefined && [shownAs, table.name].some((name) => plain(name) === plain(qualifier));
  const meant = tables.filter(isMeant);
  const inFrom = tables.filter(({ isJoined }) => isJoined);
  if (isAmbiguous) {
    const owners = inFrom.filter(has).map((owner) => `${owner.shownAs}.${quoteName(has(owner)!.name)}`);
    return owners.length === 0 ? "" : `did you mean ${[...new Set(owners)].join(" or ")}?`;
  }
  const owner = meant.find(has) ?? inFrom.find(has) ?? tables.find(has);
  const near = owner
    ? { owner, name: has(owner)!.name }
    : (nearestColumn(column, meant) ?? nearestColumn(column, inFrom) ?? nearestColumn(column, tables));
  if (!near) return "";
  const { shownAs, table, isJoined } = near.owner;
  const text = `${shownAs}.${quoteName(near.name)}`;
  const missing = `${quoteName(table.name)} is not in FROM`;
  if (isJoined) return `did you mean ${text}?`;
  const isSame = qualifier !== undefined && `${qualifier}.${column}`.toLowerCase() === text.toLowerCase();
  return isSame ? missing : `did you mean ${text}? ${missing}`;
}

/**
 * Finds a column that has the wrong name as one of its words, contains it or is contained in it; else the one spelt
 * most similarly.
 */
function nearestColumn(column: string, tables: readonly NamedTable[]): { owner: NamedTable; name: string } | undefined {
  if (column.length > MAX_COMPARED) return undefined;
  const all = tables.flatMap((owner) =>
    owner.table.columns.map(({ name, primary_key }) => ({ owner, name, isKey: primary_key })),
  );
  const wanted = plain(column);
  const holds = (name: string) => {
    if (wordsOf(name).includes(wanted)) return true;
    const letters = plain(name);
    return letters.length > 2 && wanted.length > 2 && (letters.includes(wanted) || wanted.includes(letters));
  };
  const holding = all
    .filter(({ name }) => holds(name))
    .sort(
      (a, b) =>
        (wanted === "id" ? Number(b.isKey) - Number(a.isKey) : 0) || // t.id probably means the table's key
        Math.abs(a.name.length - column.length) - Math.abs(b.name.length - column.length),
    );
  const spelled = nearest(
    column,
    all.map(({ name }) => name),
  );
  return holding[0] ?? all.find(({ name }) => name === spelled);
}

/** Formats "columns: a(id, name), b(id)". */
function columnsHint(column: string, tables: readonly Table[]): string {
  const distinct = [...new Set(tables)];
  if (distinct.length === 0) return "";
  const room = Math.max(1, Math.floor(MAX_HINTED_COLUMNS / distinct.length));
  const shown = distinct.map(({ name, columns }) => {
    const kept = columns.length <= room ? columns : nearestFirst(columns, column).slice(0, room);
    const names = kept.map((kept) => quoteName(kept.name));
    return `${quoteName(name)}(${[...names, ...(kept.length < columns.length ? ["…"] : [])].join(", ")})`;
  });
  return `columns: ${shown.join(", ")}`;
}

/** Sorts columns by the length of the prefix they share with the name, longest first. */
function nearestFirst(columns: Table["columns"], column: string): Table["columns"] {
  const wanted = plain(column.slice(0, MAX_COMPARED));
  const common = (name: string) => {
    const letters = plain(name);
    let i = 0;
    while (i < wanted.length && wanted[i] === letters[i]) i++;
    return letters.includes(wanted) ? wanted.length : i;
  };
  return [...columns].sort((a, b) => common(b.name) - common(a.name));
}

function tablesHint(message: string, { tables }: Database): string {
  const name = /^no such table: (?:main\.)?(.*)$/s.exec(message)?.[1]?.slice(0, MAX_COMPARED) ?? "";
  const names = tables.map((table) => table.name);
  const near = nearest(name, names);
  return `${near === undefined ? "" : `did you mean ${quoteName(near)}? `}tables: ${names.map(quoteName).join(", ")}`;
}

/** Splits a name into words: `stuId`, `stu_id` and `Stu ID` have two. */
function wordsOf(name: string): string[] {
  return name
    .replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u);
}

/** Keeps letters and digits, in lower case: `Full_Name` and `full name` become equal. */
function plain(name: string): string {
  const lower = name.toLowerCase();
  return lower.replace(/[^\p{L}\p{N}]/gu, "") || lower;
}
