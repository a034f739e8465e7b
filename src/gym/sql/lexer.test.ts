import fc from "fast-check";
import { expect, test } from "vitest";
import { normalizeSql, quoteName, quoteText, sqlSkeleton, tokenizeSql } from "./lexer.ts";

test("finds the same tokens as SQLite", () => {
  const sql = `SELECT "a b", 'it''s', [x y], 1.5e3 -- note\n FROM t /* more */ WHERE x<>2`;
  expect(tokenizeSql(sql).map((token) => token.text)).toEqual([
    "SELECT",
    '"a b"',
    ",",
    "'it''s'",
    ",",
    "[x y]",
    ",",
    "1.5e3",
    "FROM",
    "t",
    "WHERE",
    "x",
    "<>",
    "2",
  ]);
});

test("knows the depth of a token", () => {
  const depths = tokenizeSql("a (b (c) d) e").map((token) => [token.text, token.depth]);
  expect(depths).toEqual([
    ["a", 0],
    ["(", 0],
    ["b", 1],
    ["(", 1],
    ["c", 2],
    [")", 1],
    ["d", 1],
    [")", 0],
    ["e", 0],
  ]);
});

test("statements that differ only in spelling are normalized to one", () => {
  const spellings = [
    "SELECT a FROM t WHERE b = 'X'",
    "select  A\nfrom T where b == 'X';",
    "SELECT a/**/FROM t WHERE b='X' -- end",
  ];
  expect(new Set(spellings.map(normalizeSql)).size).toBe(1);
  expect(normalizeSql("SELECT 'x'")).not.toBe(normalizeSql("SELECT 'X'"));
  expect(normalizeSql('SELECT "x"')).not.toBe(normalizeSql("SELECT 'x'"));
});

test("skeletons replace names and values", () => {
  const [a, b] = ["SELECT count(*) FROM t AS x WHERE x.a > 5", "select COUNT(*) from other AS o where o.b > 77"];
  expect(sqlSkeleton(a!)).toBe(sqlSkeleton(b!));
  expect(sqlSkeleton(a!)).not.toBe(sqlSkeleton("SELECT count(*) FROM t AS x WHERE x.a < 5"));
});

test("quotes names where needed", () => {
  expect(quoteName("age")).toBe("age");
  expect(quoteName("order")).toBe('"order"');
  expect(quoteName('a "b" c')).toBe('"a ""b"" c"');
  expect(quoteText("it's")).toBe("'it''s'");
});

test("the tokens of any text cover it, and normalizing twice changes nothing", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const tokens = tokenizeSql(text);
      for (const [i, token] of tokens.entries()) {
        expect(text.slice(token.start, token.end)).toBe(token.text);
        expect(token.start).toBeGreaterThanOrEqual(tokens[i - 1]?.end ?? 0);
      }
      expect(normalizeSql(normalizeSql(text))).toBe(normalizeSql(text));
    }),
    { numRuns: 2000, seed: 1 },
  );
});
