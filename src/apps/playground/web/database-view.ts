// The database view, shown once the episode is over: tables, columns, keys and rows.
import { quoteName } from "../../../gym/sql/lexer.ts";
import { $, button, fill, h } from "../../web-shared/dom.ts";
import { columnNote, tableNote } from "./schema-tree.ts";
import type { Client } from "./worker-client.ts";
import { BROWSED_ROWS, type SchemaTable, type Started, type TableRows } from "./worker-protocol.ts";

export interface DatabaseView {
  /** Shows the database of an episode that is over; null hides the view. */
  draw(started: Started | null): void;
}

/** Wires the view; `run` executes an action and shows its error. */
export function createDatabaseView(client: Client, run: (work: () => Promise<void>) => void): DatabaseView {
  const card = $("database-view", HTMLElement);
  let shown: Started | null = null;
  let tableName = "";
  let offset = 0;

  const open = (wanted: string, from = 0) =>
    run(async () => {
      const of = shown;
      // A key may write the table it refers to in another letter case, or refer to none.
      const name = of?.schema.find((table) => table.name.toLowerCase() === wanted.toLowerCase())?.name;
      if (name === undefined) return;
      const found = await client.call("browse", { table: name, offset: from });
      if (of !== shown) return; // another episode started in the meantime
      [tableName, offset] = [name, from];
      drawTable(found);
    });
  const drawTable = ({ rows, error }: TableRows) => {
    const { schema, question } = shown!;
    const table = schema.find(({ name }) => name === tableName)!;
    const tabs = schema.map(({ name }) =>
      button(quoteName(name), () => open(name), { "aria-pressed": String(name === tableName) }),
    );
    const total = table.rows ?? Number.POSITIVE_INFINITY;
    const last = offset + rows.length;
    fill(
      card,
      h("h2", {}, `The database: ${question.database_name}`),
      keysNode(schema, open),
      h("div", { class: "row tabs" }, ...tabs),
      error === null ? rowsNode(table, rows) : h("p", { class: "error" }, error),
      h(
        "div",
        { class: "row" },
        button("‹ Back", () => open(tableName, Math.max(0, offset - BROWSED_ROWS)), { disabled: offset === 0 }),
        button("More ›", () => open(tableName, last), { disabled: last >= total || rows.length < BROWSED_ROWS }),
        h(
          "span",
          { class: "note" },
          rows.length === 0 ? "no rows" : `rows ${offset + 1} to ${last}, ${tableNote(table)}`,
        ),
      ),
    );
  };
  return {
    draw(started) {
      card.hidden = started === null;
      if (started === shown) return;
      shown = started;
      fill(card);
      const first = started?.schema[0]?.name;
      if (first === undefined) card.hidden = true;
      else open(first);
    },
  };
}

/** The relations between the tables: every foreign key as a button that opens the table it refers to. */
function keysNode(schema: readonly SchemaTable[], open: (table: string) => void): HTMLElement | null {
  const keys = schema.flatMap(({ name, columns }) =>
    columns.flatMap(({ name: column, target }) => (target ? [{ from: `${name}.${column}`, target }] : [])),
  );
  if (keys.length === 0) return null;
  const items = keys.map(({ from, target }) =>
    button(`${from} → ${target.table}.${target.column}`, () => open(target.table), { class: "name" }),
  );
  return h("p", { class: "keys" }, h("span", { class: "note" }, "Keys between tables: "), ...items);
}

function rowsNode({ columns }: SchemaTable, rows: TableRows["rows"]): HTMLElement {
  const head = columns.map((column) =>
    h("th", {}, column.name, h("span", { class: "note" }, ` ${column.type.toLowerCase()} ${columnNote(column)}`)),
  );
  const body = rows.map((row) =>
    h("tr", {}, ...row.map((cell) => h("td", { class: cell === "NULL" ? "null" : "" }, cell))),
  );
  return h(
    "div",
    { class: "scroll", tabindex: 0 },
    h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)),
  );
}
