import fc from "fast-check";
import { expect, test } from "vitest";
import { cases } from "../../../test/helpers/cases.ts";
import { trainBpe } from "../model/text/bpe-trainer.ts";
import { Tokenizer } from "../model/text/tokenizer.ts";
import { Detokenizer } from "./detokenizer.ts";

const tokenizer = new Tokenizer({
  tokenizer: trainBpe(["SELECT name FROM pets"], { vocabSize: 280, specialTokens: ["<|end|>"] }),
  config: {},
});

/** The pieces of text that tokens give, the last one with what was held back. */
function piecesOf(tokens: readonly number[]): string[] {
  const detokenizer = new Detokenizer(tokenizer);
  return [...tokens.map((token) => detokenizer.add(token)), detokenizer.end()];
}

test("a character of several tokens comes whole, with its last one", () => {
  const tokens = tokenizer.encodePlain("a😀b"); // one token per byte
  expect(tokens).toHaveLength(6);
  expect(piecesOf(tokens)).toEqual(["a", "", "", "", "😀", "b", ""]);
});

test("special tokens give no text, and a truncated character is returned at the end", () => {
  expect(piecesOf([tokenizer.idOf("<|end|>")!])).toEqual(["", ""]);
  expect(piecesOf(tokenizer.encodePlain("é").slice(0, 1))).toEqual(["", "\ufffd"]);
});

test("the pieces of any tokens add up to their text, and no piece of valid text is broken", () => {
  const id = fc.integer({ min: 0, max: tokenizer.vocabSize - 1 });
  fc.assert(
    fc.property(fc.array(id, { maxLength: 30 }), (tokens) => {
      expect(piecesOf(tokens).join("")).toBe(tokenizer.decode(tokens, { skipSpecial: true }));
    }),
    { numRuns: cases(50, 2_000) },
  );
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 20 }), (text) => {
      const pieces = piecesOf(tokenizer.encodePlain(text));
      expect(pieces.join("")).toBe(text);
      for (const piece of pieces) expect(Buffer.from(piece).toString()).toBe(piece);
    }),
    { numRuns: cases(50, 2_000) },
  );
});
