// Tests that patterns of published tokenizers are accepted and exponentially backtracking ones are rejected.
import { expect, test } from "vitest";
import { trainBpe } from "./bpe-trainer.ts";
import { patternFault } from "./pattern.ts";

const PUBLISHED: Readonly<Record<string, string>> = {
  "GPT-2": String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  Qwen2: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  "Llama 3": String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  "GPT-4o": String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  "DeepSeek 3": String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  "DeepSeek's Chinese": "[一-龥぀-ゟ゠-ヿ]+",
  BLOOM: " ?[^(\\s|[.,!?…。，、।۔،])]+",
  "numbers in threes": String.raw`\d{1,3}(?=(?:\d{3})*\b)`,
  spaces: String.raw`\s{2,}|\x{4E00}+|\u0020`,
  empty: "",
};

test.each(Object.entries(PUBLISHED))("%s is accepted", (_, pattern) => {
  expect(patternFault(pattern)).toBeUndefined();
});

test.each(["attached", "apart"] as const)("our own patterns are accepted: spaces %s", (spaces) => {
  const json = trainBpe(["SELECT"], { vocabSize: 260, spaces }) as {
    pre_tokenizer: { pretokenizers: { pattern?: { Regex: string } }[] };
  };
  expect(patternFault(json.pre_tokenizer.pretokenizers[0]!.pattern!.Regex)).toBeUndefined();
});

test.each([
  ["(a+)+b", /repeats a group/],
  ["(?:a*)*", /repeats a group/],
  ["(a|a)*b", /repeats alternatives/],
  ["(?:a|ab)+c", /repeats alternatives/],
  ["([a-z]+|\\d)*!", /repeats a group/],
  ["(x+x+)+y", /repeats a group/],
  ["((a+){2}){5}", /repeats a group/],
  ["a*a*a*b", /share the same characters/],
  ["\\s*\\s+x", /share the same characters/],
  ["\\w+\\d*\\w+!", /share the same characters/],
  [`${"a?".repeat(30)}${"a".repeat(30)}`, /share the same characters/],
  [`${"(a|a)".repeat(30)}b`, /share the same characters/],
  ["(?=a*a*a*b)c", /share the same characters/],
  ["(?<!a+a+a+)c", /share the same characters/],
  ["a{0,60}a{0,60}b", /share the same characters/],
  ["(a)\\1", /refers back/],
  ["(?<n>a)\\k<n>", /refers back/],
  ["a**", /repeats a repetition/],
  ["(a", /does not end/],
  ["a)", /too many/],
  ["[a", /does not end/],
  ["\\", /ends within an escape/],
  ["(".repeat(30) + ")".repeat(30), /deep/],
  ["a".repeat(4_001), /more than 4000 characters/],
])("%s is refused", (pattern, fault) => {
  expect(patternFault(pattern)).toMatch(fault);
});
