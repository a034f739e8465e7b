// How many threads environments get.
import { expect, test } from "vitest";
import { environmentThreadCount } from "./environments.node.ts";

test.each([
  [null, "cpu", 16, 0], // the arithmetic has all cores
  [null, "cuda", 16, 8],
  [null, "cuda", 8, 6], // the main thread and the engine's have one each
  [null, "cuda", 4, 2],
  [null, "cuda", 2, 0],
  [null, "cuda", 1, 0],
  [3, "cpu", 2, 3],
  [0, "cuda", 16, 0],
])("%j beside %s on %i cores: %i", (asked, device, cpus, threads) => {
  expect(environmentThreadCount(asked, device, cpus)).toBe(threads);
});
