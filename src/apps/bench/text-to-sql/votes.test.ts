import { expect, test } from "vitest";
import { elect } from "./votes.ts";

test("the most common result wins; its first attempt is chosen", () => {
  expect(elect(["a", "b", "b", "c"])).toEqual({ index: 1, votes: 2 });
  expect(elect([undefined, "a", undefined, undefined])).toEqual({ index: 1, votes: 1 });
});

test("the earlier result wins a tie; without results, the first attempt", () => {
  expect(elect(["b", "a", "a", "b"])).toEqual({ index: 0, votes: 2 });
  expect(elect([undefined, undefined])).toEqual({ index: 0, votes: 0 });
});
