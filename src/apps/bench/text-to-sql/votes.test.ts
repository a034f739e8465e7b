import { expect, test } from "vitest";
import { elect } from "./votes.ts";

test("the result that most attempts share wins, and its first attempt stands for it", () => {
  expect(elect(["a", "b", "b", "c"])).toEqual({ index: 1, votes: 2 });
  expect(elect([undefined, "a", undefined, undefined])).toEqual({ index: 1, votes: 1 });
});

test("a tie goes to the result that came first, and without results to the first attempt", () => {
  expect(elect(["b", "a", "a", "b"])).toEqual({ index: 0, votes: 2 });
  expect(elect([undefined, undefined])).toEqual({ index: 0, votes: 0 });
});
