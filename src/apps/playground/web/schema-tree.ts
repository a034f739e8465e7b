// The tables as a tree: names at first, columns once described; everything after the episode or when peeking.
import { quoteName } from "../../../gym/sql/lexer.ts";
import { fill, h } from "../../web-shared/dom.ts";
import type { SchemaTable } from "./worker-protocol.ts";

export interface SchemaOptions {
  /** Whether a table's columns are shown. */
  readonly known: (table: string) => boolean;
  readonly onTable: (name: string) => void;
  readonly onColumn: (name: string) => void;
}

/** Draws the tree; names are quoted where SQL requires it. */
export function drawSchema(
  into: HTMLElement,
  tables: readonly SchemaTable[],
  { known, onTable, onColumn }: SchemaOptions,
) {
  const rows = (count: number | null) => (count === null ? "many rows" : count === 1 ? "1 row" : `${count} rows`);
  const items = tables.map(({ name, kind, rows: count, columns }) => {
    const isKnown = known(name);
    const title = h("button", { type: "button", class: "name", on: { click: () => onTable(name) } }, quoteName(name));
    const about = isKnown ? `${kind === "view" ? "view, " : ""}${rows(count)}` : "not described yet";
    const list = columns.map((column) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", class: "name", on: { click: () => onColumn(quoteName(column.name)) } },
          quoteName(column.name),
        ),
        h("span", { class: "note" }, ` ${column.type.toLowerCase()} ${column.note}`),
      ),
    );
    return h("li", {}, title, h("span", { class: "note" }, ` ${about}`), isKnown ? h("ul", {}, ...list) : null);
  });
  fill(into, h("ul", { class: "tree" }, ...items));
}

/** Completions for the editor: tables, and columns of known tables. */
export function namesIn(tables: readonly SchemaTable[], known: SchemaOptions["known"]): string[] {
  const columns = tables.filter(({ name }) => known(name)).flatMap((table) => table.columns.map(({ name }) => name));
  return [...new Set([...tables.map(({ name }) => name), ...columns].map(quoteName))];
}
