// The tables as a tree: names at first, columns of those that were described, everything once one peeks or it is over.
import { quoteName } from "../../../gym/sql/lexer.ts";
import { fill, h } from "./dom.ts";
import type { SchemaTable } from "./protocol.ts";

export interface SchemaOptions {
  /** Tables whose columns may be seen. */
  readonly known: (table: string) => boolean;
  readonly onTable: (name: string) => void;
  readonly onColumn: (name: string) => void;
}

/** Draws the tree; names are written as SQL must write them. */
export function drawSchema(
  into: HTMLElement,
  tables: readonly SchemaTable[],
  { known, onTable, onColumn }: SchemaOptions,
) {
  const rows = (count: number | null) => (count === null ? "many rows" : count === 1 ? "1 row" : `${count} rows`);
  const items = tables.map(({ name, kind, rows: count, columns }) => {
    const isKnown = known(name);
    const title = h("button", { type: "button", class: "name", onclick: () => onTable(name) }, quoteName(name));
    const about = isKnown ? `${kind === "view" ? "view, " : ""}${rows(count)}` : "not described yet";
    const list = columns.map((column) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", class: "name", onclick: () => onColumn(quoteName(column.name)) },
          quoteName(column.name),
        ),
        h("span", { class: "note" }, ` ${column.type.toLowerCase()} ${column.note}`),
      ),
    );
    return h("li", {}, title, h("span", { class: "note" }, ` ${about}`), isKnown ? h("ul", {}, ...list) : null);
  });
  fill(into, h("ul", { class: "tree" }, ...items));
}

/** Names to offer in the editor: tables, and columns one may know. */
export function namesIn(tables: readonly SchemaTable[], known: SchemaOptions["known"]): string[] {
  const columns = tables.filter(({ name }) => known(name)).flatMap((table) => table.columns.map(({ name }) => name));
  return [...new Set([...tables.map(({ name }) => name), ...columns].map(quoteName))];
}
