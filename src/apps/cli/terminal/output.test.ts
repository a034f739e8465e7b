import { CommanderError } from "commander";
import { expect, test, vi } from "vitest";
import { QuestionLoadError, UsageError } from "../../../errors.ts";
import { explain } from "./error-line.ts";
import { invocation } from "./invocation.ts";
import {
  counted,
  cutText,
  drawTable,
  formatBytes,
  formatNumber,
  output,
  printable,
  styled,
  wholeNumber,
  width,
  wrapWords,
} from "./output.ts";

test("tables align words to the left and numbers to the right", () => {
  const table = drawTable(
    ["name", "rows"],
    [
      ["pets", 5],
      ["日本", 12345],
      ["x".repeat(70), ""],
    ],
    { indent: 1 },
  );
  expect(table.split("\n")).toEqual([
    ` name${" ".repeat(56)}    rows`,
    ` ${"─".repeat(60)}  ${"─".repeat(6)}`,
    ` pets${" ".repeat(56)}       5`,
    ` 日本${" ".repeat(56)}  12,345`,
    ` ${"x".repeat(59)}…`,
  ]);
});

test("text from a database cannot steer the terminal", () => {
  expect(printable("a\x1b[31mb\r\nc\td\x9b")).toBe("a\ufffd[31mb\ufffd↵c d\ufffd");
  expect(drawTable(["x"], [["\x1b]0;title\x07"]])).not.toContain("\x1b");
  expect(printable("one \u202eowt\u2066")).toBe("one \ufffdowt\ufffd"); // would be shown from right to left
  expect(styled("red", "x")).toBe("x"); // not a terminal
  const written = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  output({ json: true }).result({ cell: "\x1b[2J\x9b2J\x7f é" });
  const [[line]] = written.mock.calls as [[string]];
  written.mockRestore();
  expect(line).toBe('{"cell":"\\u001b[2J\\u009b2J\\u007f é"}\n');
  expect(JSON.parse(line)).toEqual({ cell: "\x1b[2J\x9b2J\x7f é" });
});

test("texts are measured and cut by the columns they take", () => {
  expect(["abc", "日本", "e\u0301", "🎉"].map(width)).toEqual([3, 4, 1, 2]);
  expect(["abcdef", "日本語", "🎉🎉🎉"].map((text) => cutText(text, 5))).toEqual(["abcd…", "日本…", "🎉🎉…"]);
  expect(cutText("abcde", 5)).toBe("abcde");
});

test("numbers and sizes read well", () => {
  expect([0, 999, 1000, 1234567, 0.5].map(formatNumber)).toEqual(["0", "999", "1,000", "1,234,567", "0.5"]);
  expect([0, 999, 1000, 1_500_000, 2e9].map(formatBytes)).toEqual([
    "0 bytes",
    "999 bytes",
    "1.0 KB",
    "1.5 MB",
    "2.0 GB",
  ]);
  expect(wholeNumber("--seed")("42")).toBe(42);
  for (const bad of ["", "-1", "1.5", "x", "1e3", "9".repeat(20)])
    expect(() => wholeNumber("--seed")(bad)).toThrow(UsageError);
});

test("errors become one line with their code, and an exit code", () => {
  expect(explain(new QuestionLoadError({ what: "file not\n found", value: "x\x1b", remedy: "look" }))).toEqual({
    line: "error: file not found: x\ufffd; look (question_load)",
    exitCode: 1,
  });
  expect(explain(new UsageError({ what: "no" }))).toEqual({ line: "error: no (usage)", exitCode: 2 });
  expect(
    explain(new CommanderError(1, "commander.unknownOption", "error: unknown option '--jsn'\n(Did you mean --json?)")),
  ).toEqual({
    line: "error: unknown option '--jsn'; did you mean --json? (usage)",
    exitCode: 2,
  });
  expect(explain(new CommanderError(0, "commander.helpDisplayed", ""))).toEqual({ line: "", exitCode: 0 });
  expect(explain(new TypeError("x is not a function"))).toEqual({
    line: "error: x is not a function (internal)",
    exitCode: 1,
  });
  expect(explain(Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" })).line).toMatch(
    /\(EACCES\)$/,
  );
  expect(explain(new DOMException("stop", "AbortError"))).toEqual({ line: "interrupted", exitCode: 130 });
});

test("tables are narrowed to a width by wrapping their text", () => {
  const rows = [
    ["unseen databases, greedy", 12],
    ["a/very/long/path/without/spaces", 3],
  ];
  const lines = drawTable(["right answers on", "n"], rows, { maxWidth: 22 }).split("\n");
  expect(lines.every((line) => line.length <= 22)).toBe(true);
  expect(lines.slice(2, 4)).toEqual(["unseen databases,   12", "greedy"]);
});

test("lines are wrapped at words, with their indent; colours have no width, and commands stay whole", () => {
  expect(wrapWords("  one two three four", 12)).toBe("  one two\n  three four");
  expect(wrapWords("\x1b[32mone two\x1b[39m three", 9)).toBe("\x1b[32mone two\x1b[39m\nthree");
  expect(wrapWords("see /a/very/long/path", 8)).toBe("see\n/a/very/long/path");
  const command = `    ${invocation()} train --resume runs/x`;
  expect(wrapWords(command, 20)).toBe(command);
});

test("counts have the right number", () => {
  expect([counted(1, "step"), counted(0, "step"), counted(1500, "step")]).toEqual(["1 step", "0 steps", "1,500 steps"]);
});
