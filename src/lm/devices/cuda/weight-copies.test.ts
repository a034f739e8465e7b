import { expect, test } from "vitest";
import { WeightCopies } from "./weight-copies.ts";

const buffer = (address: number) => ({ dtype: "f32", length: 4, address }) as const;

test("a copy covers its whole allocation and is converted only after a change", () => {
  const converted: number[][] = [];
  const pool = { alloc: () => 5000, around: () => ({ address: 1024, bytes: 512 }) };
  const copies = new WeightCopies(pool, (...args) => converted.push(args));
  expect(copies.addressOf(buffer(1024 + 64))).toBe(5000 + 32);
  expect(copies.addressOf(buffer(1024))).toBe(5000);
  expect(converted).toEqual([[1024, 5000, 128]]);
  copies.markStale(buffer(1024 + 128));
  copies.refreshAll();
  copies.refreshAll();
  expect(converted).toHaveLength(2);
  expect(copies.drop(1024 + 64)).toEqual([]);
  expect(copies.drop(1024)).toEqual([5000]);
  expect(copies.drop(1024)).toEqual([]);
});

test("a failed conversion leaves the copy stale", () => {
  let fails = true;
  const pool = { alloc: () => 5000, around: () => ({ address: 1024, bytes: 512 }) };
  const copies = new WeightCopies(pool, () => {
    if (fails) throw new Error("capturing");
  });
  expect(() => copies.addressOf(buffer(1024))).toThrow("capturing");
  fails = false;
  expect(copies.addressOf(buffer(1024))).toBe(5000);
});
