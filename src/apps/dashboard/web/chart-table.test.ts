// A chart's data as a table.
import { expect, test } from "vitest";
import { chartTable, tabSeparated } from "./chart-table.ts";

const OPTIONS = { title: "Reward", axis: "step", range: null };

test("rows are the steps of all lines, with bounds, and a gap where a line has no point", () => {
  const lines = [
    {
      label: "greedy",
      colour: "--blue",
      points: { x: [0, 10], y: [0, 0.875] },
      band: { low: { x: [0, 10], y: [0, 0.75] }, high: { x: [0, 10], y: [0.04, 0.96] } },
    },
    { label: "random", colour: "--dim", points: { x: [0, 5], y: [0.0123456789, 0.5] } },
  ];
  const table = chartTable(lines, OPTIONS);
  expect(table.head).toEqual(["step", "greedy", "greedy, low", "greedy, high", "random"]);
  expect(table.rows).toEqual([
    ["0", "0", "0", "0.04", "0.0123457"],
    ["5", "", "", "", "0.5"],
    ["10", "0.875", "0.75", "0.96", ""],
  ]);
  expect(chartTable(lines, { ...OPTIONS, range: [4, 10] }).rows.map(([x]) => x)).toEqual(["5", "10"]);
});

test("a line without a label has the chart's title; a tab in a name cannot add a column", () => {
  const lines = [{ label: "", colour: "--blue", points: { x: [1], y: [2] } }];
  expect(tabSeparated(chartTable(lines, { ...OPTIONS, title: "Re\tward" }))).toBe("step\tRe ward\n1\t2\n");
});
