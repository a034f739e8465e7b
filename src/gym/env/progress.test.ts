import fc from "fast-check";
import { expect, test } from "vitest";
import { computeProgress } from "./progress.ts";

const phi = (rows: unknown[][], gold: unknown[][]) => computeProgress({ rows } as never, { rows: gold } as never);

test("the gold itself is 1, nothing is 0", () => {
  expect(phi([["Ada", 36]], [["Ada", 36]])).toBe(1);
  expect(phi([], [["Ada"], ["Bao"], ["Chi"]])).toBe(0);
});

test("a close number earns something, a distant one less", () => {
  expect(phi([[100]], [[98]])).toBe(0.25); // the right number of rows and almost the number, but not the value
  expect(phi([[100]], [[1]])).toBe(0.25);
  expect(phi([["Ada"]], [["Bao"]])).toBe(0.25);
});

test("half of the rows is about half of the progress", () => {
  expect(phi([["a"], ["b"]], [["a"], ["b"], ["c"], ["d"]])).toBe(0.5);
});

test("SELECT * contains the value among many others and earns little", () => {
  const flood = Array.from({ length: 20 }, (_, i) => [`x${i}`, i, "y", i * 7]);
  expect(phi([...flood, ["Ada", 1, 2, 3]], [["Ada"]])).toBe(0);
});

test("always one of five values; 1 only for the same multiset of values in the same number of rows", () => {
  const cell = fc.constantFrom(1, 2, 2.5, "a", "b", null);
  const rows = fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(rows, rows, (result, gold) => {
      const value = phi(result, gold);
      expect([0, 0.25, 0.5, 0.75, 1]).toContain(value);
      const key = (table: unknown[][]) => JSON.stringify(table.flat().map(String).sort());
      if (value === 1) expect(key(result)).toBe(key(gold));
      if (key(result) === key(gold)) expect(value).toBe(1);
    }),
    { numRuns: 2000, seed: 3 },
  );
});
