import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { duration, percent, percentRange, shortNumber, twoDecimals } from "./format.ts";
import { reach, smooth, thin } from "./smooth.ts";
import { drawPanel, spread, svgDocument, ticks } from "./svg-chart.ts";

describe("ticks", () => {
  test("are round and within the range", () => {
    expect(ticks(0, 1, 4)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticks(0, 300, 6)).toEqual([0, 50, 100, 150, 200, 250, 300]);
    expect(ticks(-0.05, 0.04, 4)).toEqual([-0.04, -0.02, 0, 0.02, 0.04]);
  });

  test("are few for every range", () => {
    const low = fc.double({ min: -1e9, max: 1e9, noNaN: true });
    const share = fc.double({ min: 1e-6, max: 1e3, noNaN: true });
    fc.assert(
      fc.property(low, share, fc.integer({ min: 2, max: 10 }), (from, part, wanted) => {
        const size = part * Math.max(1, Math.abs(from));
        const marks = ticks(from, from + size, wanted);
        expect(marks.length).toBeLessThanOrEqual(2.5 * wanted + 1);
        expect(marks.every((mark) => mark >= from - 1e-4 * size && mark <= from + 1.0001 * size)).toBe(true);
      }),
    );
  });
});

test("labels do not overlap, keep their order and stay in the panel", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 200, noNaN: true }), { maxLength: 8 }), (heights) => {
      const placed = spread(heights, 0, 200, 15);
      const order = heights.map((_, i) => i).sort((a, b) => heights[a]! - heights[b]! || a - b);
      const gaps = order.slice(1).map((i, k) => placed[i]! - placed[order[k]!]!);
      expect(gaps.every((gap) => gap >= 15 - 1e-6)).toBe(true);
      for (const height of placed) expect(height >= -1e-6 && height <= 200 + 1e-6).toBe(true);
    }),
  );
  expect(spread([10, 100], 0, 200, 15)).toEqual([10, 100]);
});

describe("smoothing", () => {
  const line = (n: number, f: (i: number) => number) => Array.from({ length: n }, (_, i) => ({ x: i, y: f(i) }));

  test("leaves short and constant lines unchanged, and does not shift a slope", () => {
    expect(smooth(line(5, (i) => i % 2))).toEqual(line(5, (i) => i % 2));
    expect(smooth(line(100, () => 0.3)).every(({ y }) => Math.abs(y - 0.3) < 1e-12)).toBe(true);
    expect(smooth(line(100, (i) => i))[50]!.y).toBeCloseTo(50, 9);
    expect(reach(11)).toBe(0);
  });

  test("removes most of the noise", () => {
    const noisy = smooth(line(400, (i) => (i % 2 === 0 ? 1 : -1)));
    expect(Math.max(...noisy.slice(40, -40).map(({ y }) => Math.abs(y)))).toBeLessThan(0.01);
  });

  test("thinning keeps the mean", () => {
    const thinned = thin(
      line(6000, (i) => i),
      600,
    );
    expect(thinned).toHaveLength(600);
    expect(thinned.reduce((sum, { y }) => sum + y, 0) / 600).toBeCloseTo(2999.5, 6);
    expect(thinned[0]).toEqual({ x: 4.5, y: 4.5 });
  });
});

describe("drawPanel", () => {
  const box = { x: 0, y: 0, width: 400, height: 200 };

  test("draws only finite numbers, whatever it is given", () => {
    const odd = [Number.NaN, Number.POSITIVE_INFINITY, 0, -3, 1e12].map((y, x) => ({ x, y }));
    for (const points of [[], odd, [{ x: 3, y: 3 }], odd.slice(0, 2)]) {
      const svg = svgDocument(
        { width: 400, height: 200, title: "t" },
        drawPanel({ title: "t", series: [{ label: "a", colour: "blue", points }] }, box),
      );
      expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    }
  });

  test("labels a line with its last value, and shows a placeholder without data", () => {
    const points = [
      { x: 0, y: 0.25 },
      { x: 1, y: 0.75 },
    ];
    expect(drawPanel({ title: "t", series: [{ label: "greedy", colour: "blue", points }] }, box)).toContain(
      "greedy 0.75",
    );
    expect(drawPanel({ title: "t", series: [], empty: "no evaluation yet" }, box)).toContain("no evaluation yet");
  });
});

test("formats numbers for readers", () => {
  expect([0, 12345, -0.00213, 0.5, 1e-4, 2.5e7, 999.6].map(shortNumber)).toEqual([
    "0",
    "12,345",
    "−0.00213",
    "0.5",
    "1e−4",
    "25M",
    "1,000",
  ]);
  expect([0.891, -0.001, -1.5, 100].map(twoDecimals)).toEqual(["0.89", "0", "−1.5", "100"]);
  expect([percent(0.1234), percent(null), percentRange([0.031, 0.152]), percentRange(null)]).toEqual([
    "12.3 %",
    "–",
    "3.1 – 15.2 %",
    "–",
  ]);
  expect([4, 432, 3725].map(duration)).toEqual(["4 s", "7 min 12 s", "1 h 2 min"]);
});
