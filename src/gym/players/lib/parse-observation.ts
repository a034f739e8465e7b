// Parses observations into records, so that scripted players see exactly what a model sees.
import { quoteName } from "../../sql/lexer.ts"; // not the index: a page that reads observations has no SQLite

/** A table of `schema_info`; `columns` is empty until it is described. */
export interface ParsedTable {
  readonly name: string;
  readonly columns: readonly string[];
}

export interface ParsedColumn {
  readonly name: string;
  /** The declared type in lower case. */
  readonly type: string;
  readonly primary_key: boolean;
  readonly references: { readonly table: string; readonly column: string } | null;
}

/** The parsed result of DESCRIBE. */
export interface ParsedDescription {
  readonly name: string;
  readonly rows: number | null;
  readonly columns: readonly ParsedColumn[];
}

/** The parsed result of SAMPLE or QUERY. */
export interface ParsedResult {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** "(20 of 57 rows shown)" or "(no rows)"; null if the result is complete. */
  readonly notice: string | null;
}

/** Parses `schema_info`: a list of names at first, then one line per table once one is described. */
export function parseTables(schema_info: string): ParsedTable[] {
  const described = /^(.+?)\((.*)\)$/;
  const lines = schema_info.split("\n");
  const items = lines.length === 1 && !described.test(schema_info) ? schema_info.split(", ") : lines;
  return items
    .filter((item) => item !== "")
    .map((item) => {
      const match = described.exec(item);
      return match
        ? { name: bareName(match[1]!), columns: match[2]!.split(", ").map(bareName) }
        : { name: bareName(item), columns: [] };
    });
}

/** Removes the quotes that SQL requires around a name. */
function bareName(shown: string): string {
  return /^".*"$/s.test(shown) ? shown.slice(1, -1).replaceAll('""', '"') : shown;
}

/** Parses the result of DESCRIBE; undefined if the text is something else. */
export function parseDescription(result: string, schema_info: string): ParsedDescription | undefined {
  const [head = "", ...lines] = result.split("\n");
  const match = /^(.+): (?:view, )?(?:(\d+) rows?|many rows)$/.exec(head);
  const table = match && parseTables(schema_info).find(({ name }) => name === bareName(match[1]!));
  if (!match || !table) return undefined;
  // A name may contain spaces, so the line is split at the end of the column's name, known from the schema.
  const columns = lines.map((line, i): ParsedColumn => {
    const known = table.columns[i];
    const shown = known !== undefined && line.startsWith(quoteName(known)) ? quoteName(known) : line;
    const reference = / -> (.+)\.([^.]+)$/.exec(line.slice(shown.length));
    const rest = line.slice(shown.length, reference ? shown.length + reference.index : undefined);
    return {
      name: bareName(shown),
      type: rest
        .replace(/ primary key$/, "")
        .trim()
        .toLowerCase(),
      primary_key: rest.endsWith(" primary key"),
      references: reference ? { table: bareName(reference[1]!), column: bareName(reference[2]!) } : null,
    };
  });
  return { name: table.name, rows: match[2] === undefined ? null : Number(match[2]), columns };
}

/** Parses header and rows of a result. */
export function parseResult(result: string): ParsedResult {
  const [head = "", ...lines] = result.split("\n");
  const notice = /^\((?:no rows|(?:cells cut at \d+ bytes; )?\d+ of (?:more than )?\d+ rows shown)\)$/.test(
    lines.at(-1) ?? "",
  )
    ? lines.pop()!
    : null;
  const columns = head.split(" | ");
  return { columns, rows: lines.map((line) => (columns.length === 1 ? [line] : line.split(" | "))), notice };
}

/** @deprecated use `parseDescription`, `parseResult` and `parseTables` */
export { parseDescription as readDescription, parseResult as readResult, parseTables as readTables };
/** @deprecated use `ParsedTable` */
export type NotedTable = ParsedTable;
/** @deprecated use `ParsedColumn` */
export type NotedColumn = ParsedColumn;
/** @deprecated use `ParsedDescription` */
export type NotedDescription = ParsedDescription;
/** @deprecated use `ParsedResult` */
export type NotedResult = ParsedResult;
