// Checks that the tables in layout.ts's example are those of a real tree of sequences.
import { afterAll, expect, test } from "vitest";
import { forestLayout } from "../model/layout.ts";
import { createCpuDevice } from "./cpu/device.ts";

const device = createCpuDevice();
afterAll(() => device.close());

test("a prompt with two completions gives the documented tables", () => {
  const [kvHeads, headDim] = [2, 8];
  const u = 2 * kvHeads * headDim;
  const tree = [
    { tokens: [10, 11, 12], parent: null },
    { tokens: [20, 21], parent: 0 },
    { tokens: [30], parent: 0 },
  ];
  const { layout } = forestLayout(device, tree, { kvHeads, headDim });
  const tables = Object.entries(layout).map(([name, value]) => [
    name,
    typeof value === "number" ? value : [...device.read(value)],
  ]);
  expect(Object.fromEntries(tables)).toEqual({
    tokens: 6,
    positions: [0, 1, 2, 3, 4, 3],
    blockAddresses: [0, 0, 0, 8 * u, 8 * u, 16 * u],
    capacities: [8, 8, 8, 8, 8, 8],
    indices: [0, 1, 2, 0, 1, 0],
    spans: [0, 3, 0, 0, 3, 2, 3, 1, 5, 1, 3, 3, 6, 0, 0, 5],
    spanCount: 3,
    ranges: [0, 8, 3, 0, 8, 3, 8 * u, 8, 2, 0, 8, 3, 16 * u, 8, 1],
    rangeRows: [0, 0, 3, 0, 5],
    kvBlocks: [0, 8, 3, 8 * u, 8, 2, 16 * u, 8, 1],
    kvBlockCount: 3,
    trees: [0, 3],
    treeCount: 1,
    maxContext: 5,
  });
});
