// Tests GGUF files as models: written models load bit for bit, and unusable files are rejected with a one-line error.
import { expect, test } from "vitest";
import { type GgufParts, ggufOf, ggufParts, openBytes, tokenizerOf } from "../../../../test/helpers/gguf-bytes.ts";
import { ModelLoadError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import type { RopeScaling } from "../config.ts";
import { createTurnEncoder } from "../text/chat-template.ts";
import { type GgufValue, ggufData } from "./gguf.ts";

const LLAMA3: RopeScaling = {
  ...{ rope_type: "llama3", factor: 32, low_freq_factor: 1, high_freq_factor: 4 },
  original_max_position_embeddings: 8192,
};

test.each([
  ["a Llama", { architecture: "LlamaForCausalLM" }],
  ["a Llama with an output of its own", { architecture: "LlamaForCausalLM", tie_word_embeddings: false }],
  ["a Llama 3", { architecture: "LlamaForCausalLM", rope_theta: 500_000, rope_scaling: LLAMA3 }],
  ["a Llama 3.1", { architecture: "LlamaForCausalLM", rope_theta: 500_000, rope_scaling: { ...LLAMA3, factor: 8 } }],
  ["a Qwen2", { architecture: "Qwen2ForCausalLM" }],
  ["a Qwen3", { architecture: "Qwen3ForCausalLM", eos_token_ids: [2, 0] }],
] as const)("%s comes back with the same configuration and bits", async (_, config) => {
  const parts = ggufParts({ config });
  const { config: back, weights, tokenizer } = openBytes(ggufOf(parts));
  expect(back).toEqual(parts.config);
  expect(new Set(weights.names)).toEqual(new Set(parts.numbers.keys()));
  for (const [name, data] of parts.numbers) {
    expect(Buffer.from((await weights.read(name)).buffer).equals(Buffer.from(data.buffer)), name).toBe(true);
    expect(weights.info(name).dtype).toBe("F32");
  }
  expect(tokenizer.vocabSize).toBe(parts.tokenizer.vocabSize);
});

test.each(["gpt-2", "smollm", "qwen2", "llama-bpe"])(
  "the tokenizer %s gives the same ids, and is written again",
  (pre) => {
    const { tokenizer } = openBytes(ggufOf(ggufParts({ pre })));
    const before = tokenizerOf(pre);
    for (const text of [
      "SELECT name FROM customers",
      "  a\n\nb 123 ½ é 😀",
      "<|im_start|>user\n<|im_end|>",
      "names' names",
    ]) {
      expect(tokenizer.encode(text), text).toEqual(before.encode(text));
      expect(tokenizer.encodePlain(text), text).toEqual(before.encodePlain(text));
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text.normalize());
    }
    const again = ggufParts({ pre });
    expect(again.facts.get("tokenizer.ggml.pre")).toEqual({ text: pre });
  },
);

test.each([
  ["gpt-2", 2],
  ["smollm", 4],
  ["qwen2", 4],
  ["llama-bpe", 3],
] as const)("%s takes 1234 apart into %d tokens where 12 and 34 are tokens", (pre, count) => {
  const parts = ggufParts({ pre });
  const types = [...(parts.facts.get("tokenizer.ggml.token_type") as { ints: number[] }).ints];
  const first = types.indexOf(5);
  types.fill(1, first, first + 2);
  parts.facts.set("tokenizer.ggml.token_type", { ints: types });
  changed(TOKENS, (list) => list.splice(first, 2, "12", "34"))(parts);
  changed(MERGES, (list) => list.push("1 2", "3 4"))(parts);
  expect(openBytes(ggufOf(parts)).tokenizer.encode("1234")).toHaveLength(count);
});

test("sampling stops at the ends of turns and texts, whatever the metadata says", () => {
  const parts = ggufParts({ pre: "qwen2" });
  const { tokenizer, chatTemplate, generationConfig, config } = openBytes(ggufOf(parts));
  expect(config.eos_token_ids).toEqual([2]);
  const turns = createTurnEncoder(tokenizer, chatTemplate, { eosIds: generationConfig.eos_token_ids });
  expect(turns.stopIds).toEqual([2, 0]);
});

test("rows that only pad the embedding are not tokens", () => {
  const parts = ggufParts();
  const before = parts.facts.get("tokenizer.ggml.tokens") as { texts: string[] };
  const types = (parts.facts.get("tokenizer.ggml.token_type") as { ints: number[] }).ints;
  expect(types.at(-1)).toBe(5);
  expect(openBytes(ggufOf(parts)).tokenizer.vocabSize).toBeLessThan(before.texts.length);
  parts.facts.set("tokenizer.ggml.token_type", { ints: types.map((type) => (type === 5 ? 4 : type)) }); // as in older files
  expect(openBytes(ggufOf(parts)).tokenizer.vocabSize).toBe(parts.tokenizer.vocabSize);
});

/** A file with a separate output matrix. */
function withOutput(type: "f32" | "f16" | "q8_0", output: "f32" | "f16" | "q8_0", noise: number): GgufParts {
  const parts = ggufParts({ type });
  const embedding = parts.numbers.get("model.embed_tokens.weight")!;
  const r = random("output");
  const data = embedding.map((value) => value + noise * r.normal(0, 0.3));
  const bytes = ggufData(data, output);
  parts.tensors.set("output.weight", { name: "output.weight", shape: [320, 64], type: output, bytes });
  return parts;
}

test("an output equal to the embedding up to rounding makes a tied model, with the finer of the two", async () => {
  const parts = withOutput("q8_0", "f16", 0);
  const { config, weights } = openBytes(ggufOf(parts));
  expect(config.tie_word_embeddings).toBe(true);
  expect(weights.names).not.toContain("lm_head.weight");
  const [got, want] = [
    await weights.read("model.embed_tokens.weight"),
    parts.numbers.get("model.embed_tokens.weight")!,
  ];
  expect(Math.max(...got.map((value, i) => Math.abs(value - want[i]!)))).toBeLessThan(1e-3);
  const coarser = openBytes(ggufOf(withOutput("f32", "q8_0", 0)));
  expect(await coarser.weights.read("model.embed_tokens.weight")).toEqual(want);
});

test.each([
  ["f32", "f32", 1e-3],
  ["q8_0", "f16", 0.05],
  ["q8_0", "q8_0", 1],
] as const)("a %s embedding and a %s output that differ by more stay two", (type, output, noise) => {
  const { config, weights } = openBytes(ggufOf(withOutput(type, output, noise)));
  expect(config.tie_word_embeddings).toBe(false);
  expect(weights.names).toContain("lm_head.weight");
});

test("a file's description is kept when it is exported again", () => {
  const parts = ggufParts();
  parts.facts.set("general.license", { text: "apache-2.0" });
  const { weights } = openBytes(ggufOf(parts));
  expect(weights.metadata).toMatchObject({ "general.license": "apache-2.0", "general.name": "tiny" });
});

type Change = (parts: GgufParts) => void;
const set =
  (key: string, value: GgufValue | null): Change =>
  ({ facts }) => {
    if (value === null) facts.delete(key);
    else facts.set(key, value);
  };
const texts = ({ facts }: GgufParts, key: string) => [...(facts.get(key) as { texts: string[] }).texts];
const changed = (key: string, change: (list: string[]) => void): Change => {
  return (parts) => {
    const list = texts(parts, key);
    change(list);
    parts.facts.set(key, { texts: list });
  };
};
const TOKENS = "tokenizer.ggml.tokens";
const MERGES = "tokenizer.ggml.merges";
const nan = new Uint8Array(Float32Array.of(...new Array(64).fill(Number.NaN)).buffer);

test.each<[string, Change, RegExp]>([
  [
    "an unknown architecture",
    set("general.architecture", { text: "gemma3" }),
    /general.architecture is not supported: gemma3; use a model of llama, qwen2, qwen3/,
  ],
  ["no architecture", set("general.architecture", null), /a fact is missing: general.architecture/],
  ["one of several files", set("split.count", { u32: 3 }), /split into several files: 3; merge them/],
  ["a mixture of experts", set("llama.expert_count", { u32: 8 }), /llama.expert_count is not supported: 8/],
  [
    "scores that are scaled otherwise",
    set("llama.attention.scale", { f32: 1 }),
    /llama.attention.scale is not supported: 1/,
  ],
  [
    "scaled positions",
    ({ facts }) =>
      void facts.set("llama.rope.scaling.type", { text: "yarn" }).set("llama.rope.scaling.factor", { f32: 4 }),
    /rope.scaling.type is not supported: yarn/,
  ],
  [
    "half of a head turned",
    set("llama.rope.dimension_count", { u32: 16 }),
    /rope.dimension_count other than the length of a head, 32, is not supported: 16/,
  ],
  ["no layers", set("llama.block_count", { u32: 0 }), /num_hidden_layers is not usable/],
  ["too many layers", set("llama.block_count", { u32: 4_000_000_000 }), /num_hidden_layers is not usable/],
  ["more layers than tensors", set("llama.block_count", { u32: 3 }), /a tensor is missing: blk.2.attn_norm.weight/],
  [
    "fewer layers than tensors",
    set("llama.block_count", { u32: 1 }),
    /a tensor that this architecture does not have: blk.1./,
  ],
  ["no width", set("llama.embedding_length", null), /a fact is missing: llama.embedding_length/],
  ["heads as text", set("llama.attention.head_count", { text: "2" }), /head_count should be a whole number: "2"/],
  [
    "another width",
    set("llama.feed_forward_length", { u32: 128 }),
    /tensor blk.0.ffn_gate.weight should have the shape \[128,64\] by its facts: \[96,64\]/,
  ],
  [
    "another vocabulary",
    set("llama.vocab_size", { u32: 321 }),
    /vocab_size is not the number of rows of token_embd.weight, 320: 321/,
  ],
  [
    "no embedding",
    ({ tensors }) => void tensors.delete("token_embd.weight"),
    /no embedding of rows and columns: token_embd.weight/,
  ],
  [
    "other rope factors",
    ({ tensors }) =>
      void tensors.set("rope_freqs.weight", {
        name: "rope_freqs.weight",
        shape: [16],
        type: "f32",
        bytes: new Uint8Array(Float32Array.from({ length: 16 }, (_, i) => 1 + i).buffer),
      }),
    /rope_freqs.weight is not Llama 3's way/,
  ],
  [
    "SentencePiece",
    set("tokenizer.ggml.model", { text: "llama" }),
    /its tokenizer is not supported: llama \(SentencePiece\)/,
  ],
  ["WordPiece", set("tokenizer.ggml.model", { text: "bert" }), /its tokenizer is not supported: bert/],
  [
    "another splitting",
    set("tokenizer.ggml.pre", { text: "tekken" }),
    /tokenizer.ggml.pre is not supported: tekken; use a model with one of gpt-2, smollm, qwen2, llama-bpe/,
  ],
  ["no splitting", set("tokenizer.ggml.pre", null), /a fact is missing: tokenizer.ggml.pre/],
  ["no tokens", set(TOKENS, null), /a fact is missing: tokenizer.ggml.tokens/],
  [
    "fewer tokens than rows",
    changed(TOKENS, (list) => list.pop()),
    /has 319 entries, but the embedding has another number of rows: 320/,
  ],
  ["fewer types than tokens", set("tokenizer.ggml.token_type", { ints: [1] }), /token_type should have 320 entries: 1/],
  ["a token twice", changed(TOKENS, (list) => list.splice(5, 1, list[6]!)), /has a token twice/],
  [
    "an end beyond the tokens",
    set("tokenizer.ggml.eos_token_id", { u32: 319 }),
    /eos_token_id is not one of the \d+ tokens: 319/,
  ],
  ["a pair of unknown tokens", changed(MERGES, (list) => list.push("q zz")), /the pair "q zz" names no token: "zz"/],
  ["a pair that makes no token", changed(MERGES, (list) => list.push("q q")), /the pair "q q" names no token: "qq"/],
  ["a pair of one", changed(MERGES, (list) => list.push("a ")), /not a pair: "a "/],
  ["a pair of three", changed(MERGES, (list) => list.push("a b c")), /not a pair/],
  ["a pair twice", changed(MERGES, (list) => list.push(list[0]!)), /has a pair twice/],
  [
    "a special token that merges make",
    ({ facts }) => {
      const parts = facts.get(TOKENS) as { texts: string[] };
      const pair = (facts.get(MERGES) as { texts: string[] }).texts[0]!;
      const id = parts.texts.indexOf(pair.replace(" ", ""));
      const types = [...(facts.get("tokenizer.ggml.token_type") as { ints: number[] }).ints];
      types[id] = 3;
      facts.set("tokenizer.ggml.token_type", { ints: types });
    },
    /x.gguf: tokenizer.json: a special token can be made by merges/,
  ],
  [
    "an endless template",
    set("tokenizer.chat_template", { text: "x".repeat(100_001) }),
    /chat_template has more than 100000 characters: 100001/,
  ],
  ["a template that is a number", set("tokenizer.chat_template", { u32: 1 }), /chat_template should be a text: 1/],
])("%s is refused", (_, change, message) => {
  const parts = ggufParts();
  change(parts);
  const open = () => openBytes(ggufOf(parts));
  expect(open).toThrow(ModelLoadError);
  expect(open).toThrow(message);
  expect(open).toThrow(/^x\.gguf/);
});

test("NaN is refused when it is read", async () => {
  const parts = ggufParts();
  parts.tensors.set("output_norm.weight", { ...parts.tensors.get("output_norm.weight")!, bytes: nan });
  const { weights } = openBytes(ggufOf(parts));
  await expect(weights.read("model.norm.weight")).rejects.toThrow(
    /output_norm.weight holds a number that is not finite, at 0/,
  );
});

test("a changed file loads or is refused with a clear error", async () => {
  const good = ggufOf(ggufParts({ type: "q8_0" }));
  const source = random("gguf-folder");
  let refused = 0;
  for (let i = 0; i < 400; i++) {
    const bad = i % 8 === 0 ? good.slice(0, source.int(0, good.length)) : good.slice();
    // Most of the file is numbers, so half of the changes are made in the header.
    const reach = i % 2 === 0 ? 20_000 : bad.length;
    for (let n = source.int(1, 6); n > 0 && bad.length > 0; n--) {
      bad[source.int(0, Math.min(reach, bad.length) - 1)] = source.int(0, 255);
    }
    try {
      const { weights } = openBytes(bad);
      for (const name of weights.names) await weights.read(name);
    } catch (error) {
      refused++;
      if (!(error instanceof Error && error.message === "the header ends behind the bytes"))
        expect(error).toBeInstanceOf(ModelLoadError);
    }
  }
  expect(refused).toBeGreaterThan(50);
});
