import fc from "fast-check";
import { expect, test } from "vitest";
import { StopStrings } from "./stop-strings.ts";

/** The text that remains of pieces, and whether a stop string ended it. */
function read(stops: readonly string[], pieces: readonly string[]): [text: string, isOver: boolean] {
  const reader = new StopStrings(stops);
  const text = pieces.map((piece) => reader.add(piece)).join("") + reader.end();
  return [text, reader.isOver];
}

test("the first stop string ends the reply, wherever the pieces are cut", () => {
  expect(read(["\n\n", "END"], ["one\n", "\ntwo"])).toEqual(["one", true]);
  expect(read(["END"], ["one E", "N", "D two"])).toEqual(["one ", true]);
  expect(read(["b", "ab"], ["xab"])).toEqual(["x", true]);
  expect(read(["END"], ["one EN"])).toEqual(["one EN", false]);
});

test("text that cannot become a stop string is returned at once", () => {
  const reader = new StopStrings(["END"]);
  expect(reader.add("one E")).toBe("one ");
  expect(reader.add("x")).toBe("Ex");
});

test("pieces give the same text as the whole", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 12 });
  const stops = fc.array(fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 4 }), { maxLength: 3 });
  fc.assert(
    fc.property(letters, stops, (text, given) => {
      expect(read(given, [...text])).toEqual(read(given, [text]));
    }),
  );
});
