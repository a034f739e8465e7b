import { describe, expect, test } from "vitest";
import { INSTRUCT_STOP } from "./gym/players/prompts/instruct.ts";
import { cutReply, StopWatcher } from "./stop-rule.ts";

const cases: readonly (readonly [string, string, string])[] = [
  ["a second action", "DESCRIBE: student\nDESCRIBE: pets", "DESCRIBE: student"],
  ["a second action without colons", "DESCRIBE student\nQUERY SELECT 1", "DESCRIBE student"],
  ["a second action after a thought", "I look first.\nQUERY: SELECT 1\nANSWER: 1", "I look first.\nQUERY: SELECT 1"],
  ["an invented result", "QUERY: SELECT a\nFROM b\nResult:\na\n1", "QUERY: SELECT a\nFROM b"],
  ["an invented error", "QUERY: SELECT a\nError: no such column", "QUERY: SELECT a"],
  ["invented steps", "ANSWER: 5\nSteps left: 8", "ANSWER: 5"],
  ["a next question", "ANSWER: a | 1\nb | 2\n**Question:** How many", "ANSWER: a | 1\nb | 2"],
  ["words after a DESCRIBE", "DESCRIBE: student\nThis shows the columns.", "DESCRIBE: student"],
  ["words after a statement", "QUERY: SELECT a\nFROM b;\nThis counts.", "QUERY: SELECT a\nFROM b;"],
  ["words after an empty line", "QUERY: SELECT a FROM b\n\nThis counts.", "QUERY: SELECT a FROM b"],
  ["words after a fence", "QUERY:\n```sql\nSELECT a\n```\nIt counts.", "QUERY:\n```sql\nSELECT a\n```"],
  ["an answer, then words", "**ANSWER:**\nRome\nOslo\n\nThese are all.", "**ANSWER:**\nRome\nOslo"],
];

describe("a stop rule ends a reply before", () => {
  test.each(cases)("%s", (_, text, kept) => {
    expect(cutReply(text, INSTRUCT_STOP)).toBe(kept);
    // It ends at the same character however the text is split.
    for (const size of [1, 3, 7]) {
      const watcher = new StopWatcher(INSTRUCT_STOP);
      const pieces = text.match(new RegExp(`[^]{1,${size}}`, "g"))!;
      const ends = pieces.map((piece) => watcher.add(piece)).filter((end) => end >= 0);
      expect(text.slice(0, ends[0]).trimEnd()).toBe(kept);
    }
  });
});

test.each([
  "Question: they want a count.\nResult: unknown yet.\n\nSo I count.\nQUERY: SELECT count(*) FROM b",
  "QUERY:\n\n```sql\nSELECT a, 'Result' AS result\nFROM error\nWHERE x = 'QUERY: 1;'",
  "ANSWER: Result\nError | 2\nquestion",
  "I answer the question.\nQuery the table first:\nQUERY: SELECT 1",
  "no action at all\n\nResult: 5",
  "DESCRIBE:\nstudent",
  "",
])("a reply of one action is kept: %j", (text) => {
  expect(cutReply(text, INSTRUCT_STOP)).toBe(text);
  expect(cutReply("DESCRIBE: a\nDESCRIBE: b", null)).toBe("DESCRIBE: a\nDESCRIBE: b");
});

test("long lines take linear time", () => {
  const long = `QUERY: ${"SELECT ; `".repeat(100_000)}`;
  expect(cutReply(`${long}\nResult:`, INSTRUCT_STOP)).toBe(long.trimEnd());
});
