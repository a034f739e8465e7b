// The tables as a tree: names at first, columns once described; everything after the episode or when peeking.
import { quoteName } from "../../../gym/sql/lexer.ts";
import { fill, h } from "../../web-shared/dom.ts";
import type { SchemaColumn, SchemaTable } from "./worker-protocol.ts";

export interface SchemaOptions {
  /** Whether a table's columns are shown. */
  readonly known: (table: string) => boolean;
  /** What a click on a name does; without it names are plain text. */
  readonly onTable?: (name: string) => void;
  readonly onColumn?: (name: string) => void;
}

/** Draws the tree; names are quoted where SQL requires it. */
export function drawSchema(
  into: HTMLElement,
  tables: readonly SchemaTable[],
  { known, onTable, onColumn }: SchemaOptions,
): void {
  const items = tables.map((table) => {
    const isKnown = known(table.name);
    const list = table.columns.map((column) =>
      h(
        "li",
        {},
        nameNode(column.name, onColumn && (() => onColumn(quoteName(column.name)))),
        h("span", { class: "note" }, ` ${column.type.toLowerCase()} ${columnNote(column)}`),
      ),
    );
    return h(
      "li",
      {},
      nameNode(table.name, onTable && (() => onTable(table.name))),
      h("span", { class: "note" }, ` ${isKnown ? tableNote(table) : "not described yet"}`),
      isKnown ? h("ul", {}, ...list) : null,
    );
  });
  fill(into, tables.length === 0 ? h("p", { class: "note" }, "none recorded") : h("ul", { class: "tree" }, ...items));
}

function nameNode(name: string, onClick: (() => void) | undefined): HTMLElement {
  if (!onClick) return h("code", {}, quoteName(name));
  return h("button", { type: "button", class: "name", on: { click: onClick } }, quoteName(name));
}

/** The note beside a table's name, such as "view, 48 rows". */
export function tableNote({ kind, rows }: SchemaTable): string {
  const count = rows === null ? "many rows" : rows === 1 ? "1 row" : `${rows} rows`;
  return kind === "view" ? `view, ${count}` : count;
}

/** The note beside a column's name, such as "key → estates.estate_id". */
export function columnNote({ primary_key, target }: SchemaColumn): string {
  return [primary_key ? "key" : "", target ? `→ ${target.table}.${target.column}` : ""].filter(Boolean).join(" ");
}

/** Completions for the editor: tables, and columns of known tables. */
export function namesIn(tables: readonly SchemaTable[], known: SchemaOptions["known"]): string[] {
  const columns = tables.filter(({ name }) => known(name)).flatMap((table) => table.columns.map(({ name }) => name));
  return [...new Set([...tables.map(({ name }) => name), ...columns].map(quoteName))];
}
