import { describe, expect, test } from "vitest";
import { sideBySide, wrapLine } from "./wrap.ts";

describe("columns", () => {
  test("wrap at spaces, keep their indent, and cut words that are too long", () => {
    expect(wrapLine("1. QUERY: SELECT name FROM lamp", 18)).toEqual(["1. QUERY: SELECT", "   name FROM lamp"]);
    expect(wrapLine("   abc def ghi", 9)).toEqual(["   abc", "   def", "   ghi"]);
    expect(wrapLine("abcdefghij", 4)).toEqual(["abcd", "efgh", "ij"]);
    expect(wrapLine("", 4)).toEqual([""]);
    expect(wrapLine("東京都庁", 5)).toEqual(["東京", "都庁"]);
  });

  test("are side by side, without control characters", () => {
    expect(sideBySide([["a", "b"], ["\u001b[31mc"]], 6)).toEqual(["a      │ \ufffd[31mc", "b      │"]);
  });
});
