// A chart's data as a table: readable without seeing the lines, with exact values, and to copy into a spreadsheet.
import { button, type Child, h } from "../../web-shared/dom.ts";
import type { ChartLine, Range } from "./chart.ts";
import type { Points } from "./run-model.ts";

export interface ChartTable {
  readonly head: readonly string[];
  /** Empty if a line has no point there. */
  readonly rows: readonly (readonly string[])[];
}

/** Maximum number of rows shown; the copy has all of them. */
const SHOWN_ROWS = 500;

/** The lines' values by x, with the bounds of their intervals; of a zoomed chart only what it shows. */
export function chartTable(
  lines: readonly ChartLine[],
  { title, axis, range }: { readonly title: string; readonly axis: string; readonly range: Range | null },
): ChartTable {
  const columns = lines.flatMap(({ label, points, band }): (readonly [string, Points])[] => {
    const name = label || title;
    const bounds = band ? ([[`${name}, low`, band.low] as const, [`${name}, high`, band.high] as const] as const) : [];
    return [[name, points], ...bounds];
  });
  const values = columns.map(([, { x, y }]) => new Map(x.map((at, i) => [at, y[i]])));
  const xs = [...new Set(columns.flatMap(([, { x }]) => x))].sort((a, b) => a - b);
  const inside = range ? xs.filter((x) => x >= range[0] && x <= range[1]) : xs;
  return {
    head: [axis, ...columns.map(([name]) => name)],
    rows: inside.map((x) => [x, ...values.map((column) => column.get(x))].map(text)),
  };
}

/** Tab-separated, as spreadsheets take it. */
export function tabSeparated({ head, rows }: ChartTable): string {
  return [head, ...rows].map((row) => `${row.map((cell) => cell.replace(/\s/g, " ")).join("\t")}\n`).join("");
}

/** The table as elements, with a button to copy it. */
export function chartTableView(table: ChartTable): Child {
  const { head, rows } = table;
  const more = rows.length > SHOWN_ROWS ? ` the first ${SHOWN_ROWS} of ${rows.length} rows; the copy has all` : "";
  const copy = button("Copy", () => {
    navigator.clipboard.writeText(tabSeparated(table)).then(
      () => {
        copy.textContent = "Copied ✓";
      },
      () => {
        copy.textContent = "Not allowed: select the table";
      },
    );
  });
  return [
    h("p", { class: "dim" }, copy, more),
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.slice(0, SHOWN_ROWS).map(([x, ...cells]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, x),
            cells.map((cell) => h("td", { class: "number" }, cell)),
          ),
        ),
      ),
    ),
  ];
}

function text(value: number | undefined): string {
  return value === undefined || value === null ? "" : String(Number(value.toPrecision(6)));
}
