import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cases } from "../../../../test/helpers/cases.ts";
import { QuestionLoadError } from "../../../errors.ts";
import { readCsv } from "./csv.ts";

const read = (...pieces: string[]) => [...readCsv(pieces, { file: "t.csv" })];
const failure = (...pieces: string[]) => {
  try {
    read(...pieces);
  } catch (error) {
    expect(error).toBeInstanceOf(QuestionLoadError);
    return (error as Error).message;
  }
  return undefined;
};

test("quoted fields may hold separators, quotes and line breaks", () => {
  expect(read('a,b\r\n"x, ""y""","1\n2"\r\n')).toEqual([
    ["a", "b"],
    ['x, "y"', "1\n2"],
  ]);
});

test("line ends, a byte order mark, empty lines and a missing last line end do not matter", () => {
  const rows = [
    ["a", "b"],
    ["1", ""],
    ["", "2"],
  ];
  for (const text of ["a,b\n1,\n,2", "\ufeffa,b\r\n1,\r\n\r\n,2\r\n", "a,b\r1,\r,2\r", 'a,b\n"1",""\n"","2"'])
    expect(read(text)).toEqual(rows);
});

test("the separator is the one that the header has most often", () => {
  expect(read("a;b;c,d\n1;2;3")).toEqual([
    ["a", "b", "c,d"],
    ["1", "2", "3"],
  ]);
  expect(read('"a;b"\tc\n1\t2')[1]).toEqual(["1", "2"]);
});

test("anything else is refused with its line", () => {
  expect(failure("a,b\n1,2,3\n")).toContain("3 fields instead of 2 in line 2: t.csv");
  expect(failure('a,b\n"1"x,2\n')).toContain("text after a closing quote in line 2");
  expect(failure('a,b\n1"x,2\n')).toContain("a quote inside a field without quotes in line 2");
  expect(failure('a,b\n\n"1,2\n')).toContain("a quote that is not closed in line 4");
  expect(failure("a,b\n1,\0\n")).toContain("binary data in line 2");
  expect(failure('a,b\n1,"\0"\n')).toContain("binary data in line 2");
  expect(failure(`${"a,".repeat(1_000_000)}a\n`)).toContain("more than 500 columns: t.csv");
  expect(failure(`a\n"${"x".repeat(2_000_000)}`)).toContain("a field of more than 1000000 characters");
});

describe("with any content", () => {
  const quoted = (field: string) => `"${field.replaceAll('"', '""')}"`;
  const text = fc.string({ unit: fc.constantFrom("a", "é", "😀", ",", ";", '"', "\n", "\r", " ", "1"), maxLength: 8 });

  test("what was written is read, in pieces of any size", () => {
    const table = fc
      .integer({ min: 1, max: 4 })
      .chain((width) =>
        fc.array(fc.array(text, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 5 }),
      );
    fc.assert(
      fc.property(table, fc.array(fc.nat(40), { maxLength: 6 }), (rows, cuts) => {
        const written = rows.map((row) => row.map(quoted).join(",")).join("\r\n");
        const at = [0, ...cuts.map((cut) => Math.min(cut, written.length)).sort((a, b) => a - b), written.length];
        const pieces = at.slice(1).map((end, i) => written.slice(at[i], end));
        expect([...readCsv(pieces, { file: "t.csv", separator: "," })]).toEqual(rows);
      }),
      { numRuns: cases(200, 5000) },
    );
  });

  test("noise gives records of one width or one error", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", ",", '"', "\n", "\r", "\0", "b"), maxLength: 40 }),
        (noise) => {
          let rows: readonly (readonly string[])[] = [];
          try {
            rows = read(noise);
          } catch (error) {
            expect(error).toBeInstanceOf(QuestionLoadError);
          }
          expect(new Set(rows.map(({ length }) => length)).size).toBeLessThan(2);
        },
      ),
      { numRuns: cases(500, 20_000) },
    );
  });
});
