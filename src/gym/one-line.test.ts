import fc from "fast-check";
import { expect, test } from "vitest";
import { oneLine } from "./one-line.ts";

const text = fc.array(fc.constantFrom(" ", "\t", "\n", "\r", "\u00a0", "a", "b"), { maxLength: 30 });

test("white space that contains a line break becomes the mark, everything else stays", () => {
  expect(oneLine("a \n\t b  c\r\nd", " ⏎ ")).toBe("a ⏎ b  c ⏎ d");
  fc.assert(
    fc.property(text, (parts) => {
      expect(oneLine(parts.join(""), "|")).toBe(parts.join("").replace(/\s*[\r\n]+\s*/g, "|"));
    }),
    { numRuns: 3000, seed: 1 },
  );
});

test("ten million spaces take linear time", () => {
  const spaces = " ".repeat(10_000_000); // quadratic time would take days
  expect(oneLine(spaces, "|")).toBe(spaces);
  expect(oneLine(`${spaces}\n${spaces}`, "|")).toBe("|");
});
