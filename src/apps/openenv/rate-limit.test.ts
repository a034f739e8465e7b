// The bucket: a burst of one second's messages, then the steady rate; clients do not share.
import { expect, test } from "vitest";
import { RateLimit } from "./rate-limit.ts";

test("a burst passes, the rest waits", () => {
  const rate = new RateLimit(10);
  for (let i = 0; i < 10; i++) expect(rate.take("a", 0)).toBe(0);
  expect(rate.take("a", 0)).toBeCloseTo(100);
  expect(rate.take("a", 0)).toBeCloseTo(200);
  expect(rate.take("b", 0)).toBe(0);
  expect(rate.take("a", 1_000)).toBe(0);
});

test("a returned token can be taken again", () => {
  const rate = new RateLimit(1);
  expect(rate.take("a", 0)).toBe(0);
  expect(rate.take("a", 0)).toBeGreaterThan(0);
  rate.giveBack("a");
  expect(rate.take("a", 1_000)).toBe(0);
});

test("0 means no limit, and the number of tracked clients is bounded", () => {
  const free = new RateLimit(0);
  for (let i = 0; i < 1_000; i++) expect(free.take("a", 0)).toBe(0);
  const rate = new RateLimit(1);
  rate.take("first", 0);
  for (let i = 0; i < 10_000; i++) rate.take(`client ${i}`, 0);
  expect(rate.take("first", 0)).toBe(0); // forgotten, so its bucket is full again
});
