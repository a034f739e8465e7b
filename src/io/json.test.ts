// Nesting is counted outside strings only, and by levels, not by brackets.
import { expect, test } from "vitest";
import { MAX_NESTING, nestsDeeperThan, parseJson } from "./json.ts";

const nested = (levels: number, open = "[", close = "]") => open.repeat(levels) + close.repeat(levels);

test("64 levels are parsed, 65 are not, of arrays and objects alike", () => {
  expect(parseJson(nested(MAX_NESTING))).toBeInstanceOf(Array);
  expect(() => parseJson(nested(MAX_NESTING + 1))).toThrow(/nested deeper than 64 levels/);
  expect(() => parseJson(nested(MAX_NESTING + 1, '{"a":[', "]}"))).toThrow(SyntaxError);
  expect(() => parseJson("[".repeat(100_000))).toThrow(/nested deeper/);
});

test("brackets in strings, siblings and escaped quotes do not count", () => {
  const brackets = "[{".repeat(1_000);
  expect(parseJson(JSON.stringify({ sql: brackets }))).toEqual({ sql: brackets });
  expect(parseJson(JSON.stringify({ sql: `"\\${brackets}\\"` }))).toEqual({ sql: `"\\${brackets}\\"` });
  expect(nestsDeeperThan(`[${Array(1_000).fill("[]").join(",")}]`, 2)).toBe(false);
  expect(nestsDeeperThan(`["\\"",${nested(80)}]`, MAX_NESTING)).toBe(true);
});
