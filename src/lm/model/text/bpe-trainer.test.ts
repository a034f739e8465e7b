import fc from "fast-check";
import { expect, test } from "vitest";
import { UsageError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { trainBpe } from "./bpe-trainer.ts";
import { Tokenizer } from "./tokenizer.ts";

const SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const WORDS = [
  "SELECT",
  "name",
  "FROM",
  "orders",
  "order_id",
  "customer",
  "WHERE",
  "count",
  "(*)",
  "=",
  "city",
  "2024",
  "NULL",
];

function corpus(size: number): string[] {
  const draw = random("bpe corpus", 1);
  return Array.from({ length: size }, () => draw.sample([...WORDS, ...WORDS], 9).join(" "));
}

const json = trainBpe(corpus(200), { vocabSize: 400, specialTokens: SPECIAL });
const tokenizer = new Tokenizer({ tokenizer: json, config: { eos_token: "<|im_end|>" } });
const { vocab, merges } = json.model as { vocab: Record<string, number>; merges: [string, string][] };
const pieces = (text: string) => tokenizer.encodePlain(text).map((id) => tokenizer.decode([id]));

test("special tokens come first, then the bytes, then merges", () => {
  expect(SPECIAL.map((token) => tokenizer.idOf(token))).toEqual([0, 1, 2]);
  expect([vocab["!"], vocab[String.fromCharCode(0x143)]]).toEqual([3, 258]);
  expect(vocab[merges[0]!.join("")]).toBe(259);
  expect(Object.keys(vocab)).toHaveLength(259 + merges.length);
  expect(tokenizer.vocabSize).toBeLessThanOrEqual(400);
});

test("common words are one token; digits, underscores and marks are separate", () => {
  expect(pieces("SELECT name FROM orders")).toEqual(["SELECT", " name", " FROM", " orders"]);
  expect(pieces("order_id = 2024")).toEqual(["order", "_", "id", " =", " ", "2", "0", "2", "4"]);
  expect(pieces(" count(*)")).toEqual([" count", "(", "*", ")"]);
  expect(pieces("name\n\n  name")).toEqual(["name", "\n", "\n", " ", " name"]);
});

test("any text survives encoding and decoding", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" })), (text) => {
      expect(tokenizer.decode(tokenizer.encodePlain(text))).toBe(text);
      expect(tokenizer.encodePlain(text).every((id) => id > 2)).toBe(true);
    }),
  );
});

test("the order of the texts does not matter, and ties go to the smallest ids", () => {
  const texts = corpus(200);
  const options = { vocabSize: 400, specialTokens: SPECIAL };
  expect(trainBpe(random("shuffle").shuffle(texts), options)).toEqual(json);
  // All pairs occur twice: (a, b) is merged before (c, d), although the text has them in the other order.
  const tied = trainBpe(["cd ab", "cd ab"], { vocabSize: 258 }).model as { merges: unknown };
  expect(tied.merges).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
});

/** The simplest trainer: recounts everything for each merge. */
function slowMerges(texts: readonly string[], size: number): string[][] {
  const counts = new Map<string, number>();
  const split = / ?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]|[\r\n]+|[^\S\r\n]+(?!\S)|[^\S\r\n]+/gu;
  for (const word of texts.flatMap((text) => text.match(split) ?? [])) counts.set(word, (counts.get(word) ?? 0) + 1);
  let words = [...counts].map(([word, count]) => ({ parts: [...word.replaceAll(" ", "Ġ")], count }));
  const ids = new Map(Object.entries(vocab).filter(([, id]) => id < 259));
  const found: string[][] = [];
  while (found.length < size) {
    const pairs = new Map<string, { pair: string[]; count: number }>();
    for (const { parts, count } of words) {
      for (let i = 1; i < parts.length; i++) {
        const pair = [parts[i - 1]!, parts[i]!];
        const entry = pairs.get(pair.join(" ")) ?? { pair, count: 0 };
        entry.count += count;
        pairs.set(pair.join(" "), entry);
      }
    }
    const order = (pair: string[]) => ids.get(pair[0]!)! * 10_000 + ids.get(pair[1]!)!;
    const [best] = [...pairs.values()].sort((a, b) => b.count - a.count || order(a.pair) - order(b.pair));
    if (!best || best.count < 2) break;
    const [left, right] = best.pair as [string, string];
    found.push(best.pair);
    ids.set(left + right, ids.size);
    words = words.map(({ parts, count }) => {
      const merged: string[] = [];
      for (const part of parts) {
        if (part === right && merged.at(-1) === left) merged[merged.length - 1] = `${left}${right}\0`;
        else merged.push(part);
      }
      return { parts: merged.map((part) => part.replace("\0", "")), count };
    });
  }
  return found;
}

test("updating counts gives the same as recounting", () => {
  const draw = random("bpe letters");
  const texts = Array.from({ length: 60 }, () =>
    Array.from({ length: 12 }, () => draw.pick(["a", "aa", "b", "ab", "ba", "c", " "])).join(""),
  );
  const options = { vocabSize: 340, specialTokens: SPECIAL, maxTokenBytes: 1000 };
  const learned = trainBpe(texts, options).model as { merges: string[][] };
  expect(learned.merges.length).toBeGreaterThan(30);
  expect(learned.merges).toEqual(slowMerges(texts, learned.merges.length));
});

test("limits are respected", () => {
  const options = { vocabSize: 500, specialTokens: SPECIAL, maxTokenBytes: 4 };
  const { vocab: short } = trainBpe(corpus(50), options).model as { vocab: Record<string, number> };
  expect(Object.keys(short).filter((token) => token.length > 4 && !SPECIAL.includes(token))).toEqual([]);
  expect((trainBpe([], { vocabSize: 300 }).model as { merges: unknown[] }).merges).toEqual([]);
  expect(() => trainBpe([], { vocabSize: 258, specialTokens: SPECIAL })).toThrow(UsageError);
});

test("with separate spaces a name has the same tokens everywhere, and any text still survives", () => {
  const apart = new Tokenizer({
    tokenizer: trainBpe(corpus(200), { vocabSize: 400, specialTokens: SPECIAL, spaces: "apart" }),
    config: { eos_token: "<|im_end|>" },
  });
  const ids = (text: string) => apart.encodePlain(text);
  const name = ids("habitat_id");
  for (const [before, after] of [
    ["", " INTEGER"],
    ["SELECT ", " FROM"],
    ["COUNT(habitats.", ")"],
    ["\n", "\n"],
    ["'", "'"],
  ])
    expect(ids(`${before}habitat_id${after}`)).toEqual([...ids(before!), ...name, ...ids(after!)]);
  expect(ids("x FROM y").map((id) => apart.decode([id]))).toContain(" FROM");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(apart.decode(ids(text))).toBe(text);
    }),
  );
});
