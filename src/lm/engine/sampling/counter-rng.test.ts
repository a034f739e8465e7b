import { expect, test } from "vitest";
import { uniformOf } from "./counter-rng.ts";

test("a number depends on its key and position alone, not on earlier calls", () => {
  const forward = Array.from({ length: 100 }, (_, position) => uniformOf([7, "rollout", 3, 1])(position));
  const uniform = uniformOf([7, "rollout", 3, 1]);
  for (let position = 99; position >= 0; position--) expect(uniform(position)).toBe(forward[position]);
  expect(forward.slice(0, 3)).toEqual([0.5245888829231262, 0.8611950278282166, 0.9624156951904297]);
});

test("keys that differ in any part, its type, or the boundaries of parts give other numbers", () => {
  const keys = [
    [1],
    [2],
    ["1"],
    [1, 1],
    [11],
    ["1", 1],
    ["a", "b"],
    ["ab"],
    ["a", "b", ""],
    ["b", "a"],
    [-1],
    [1.5],
    [],
  ];
  const first = keys.map((key) => [0, 1, 2].map(uniformOf(key)).join(" "));
  expect(new Set(first).size).toBe(keys.length);
});

test("numbers are in [0, 1), exact as floats, and uniform along positions and along keys", () => {
  const along: Record<string, (i: number) => number> = {
    positions: uniformOf([0, "rollout", 0, 0]),
    "late positions": (i) => uniformOf([0, "rollout", 0, 0])(i + 2 ** 31),
    episodes: (i) => uniformOf([0, "rollout", 0, i])(180),
    seeds: (i) => uniformOf([i, "rollout", 0, 0])(180),
    "every eighth position": (i) => uniformOf(["x"])(8 * i),
  };
  const n = 20_000;
  for (const [name, draw] of Object.entries(along)) {
    const numbers = Array.from({ length: n }, (_, i) => draw(i));
    expect(numbers.every((u) => u >= 0 && u < 1 && Math.fround(u) === u)).toBe(true);
    const boxes = new Array<number>(20).fill(0);
    for (const u of numbers) boxes[Math.floor(20 * u)]!++;
    for (const count of boxes) expect(Math.abs(count - n / 20), name).toBeLessThan(5 * Math.sqrt(n / 20));
    // Neighbours are uncorrelated.
    const products = numbers.slice(1).map((u, i) => (u - 0.5) * (numbers[i]! - 0.5) * 12);
    expect(Math.abs(products.reduce((a, b) => a + b, 0) / n), name).toBeLessThan(5 / Math.sqrt(n));
  }
});
