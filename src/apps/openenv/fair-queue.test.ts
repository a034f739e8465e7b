// Turns between clients: by the time they used, not by how much they ask.
import { expect, test } from "vitest";
import { FairQueue, Usage } from "./fair-queue.ts";

test("FIFO within a client; clients with equal usage alternate", () => {
  const queue = new FairQueue<string>(new Usage());
  for (const item of ["a1", "a2", "a3"]) queue.add("a", item);
  for (const item of ["b1", "b2"]) queue.add("b", item);
  expect([queue.size, queue.clients]).toEqual([5, 2]);
  const order = Array.from({ length: 5 }, () => queue.next());
  expect(order).toEqual(["a1", "b1", "a2", "b2", "a3"]);
  expect([queue.next(), queue.clients]).toEqual([undefined, 0]);
});

test("a light client always goes before heavy ones", () => {
  const usage = new Usage();
  const queue = new FairQueue<string>(usage);
  for (const heavy of ["a", "b", "c", "d"]) {
    usage.charge(heavy, 250, 0);
    queue.add(heavy, heavy);
  }
  for (let i = 0; i < 10; i++) {
    queue.add("light", "light");
    expect(queue.next()).toBe("light");
    usage.charge("light", 0.1, i);
  }
  expect(queue.next()).toBe("a");
});

test("old usage decays, and a long time does not overflow", () => {
  const usage = new Usage();
  usage.charge("once", 1_000, 0);
  usage.charge("now", 1, 0);
  expect(usage.of("now")).toBeLessThan(usage.of("once"));
  usage.charge("now", 1, 200_000); // twenty half-lives later
  expect(usage.of("now")).toBeGreaterThan(usage.of("once"));
  usage.charge("now", 1, 1e12);
  usage.charge("other", 2, 1e12);
  expect(Number.isFinite(usage.of("now"))).toBe(true);
  expect(usage.of("other")).toBeGreaterThan(usage.of("now"));
});

test("an item put back keeps its position in its client's queue", () => {
  const queue = new FairQueue<number>(new Usage());
  for (const item of [1, 2, 3, 4]) queue.add("a", item);
  const taken = [queue.next()!, queue.next()!, queue.next()!];
  queue.add("b", 0);
  for (const item of taken.slice(1)) queue.putBack("a", item, (other) => other > item);
  expect(Array.from({ length: 4 }, () => queue.next())).toEqual([2, 0, 3, 4]);
});

test("removed items are not dequeued", () => {
  const queue = new FairQueue<number>(new Usage());
  for (let i = 0; i < 6; i++) queue.add(i % 2 ? "odd" : "even", i);
  expect(queue.remove((item) => item % 2 === 1 || item === 2)).toEqual([2, 1, 3, 5]);
  expect([queue.next(), queue.next(), queue.next()]).toEqual([0, 4, undefined]);
});
