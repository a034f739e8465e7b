import { expect, test } from "vitest";
import { ModelLoadError } from "../../errors.ts";
import { configToJson, inverseFrequencies, parameterCount, parameterShapes, parseConfig } from "./config.ts";

const QWEN3 = {
  architectures: ["Qwen3ForCausalLM"],
  attention_bias: false,
  bos_token_id: 151643,
  eos_token_id: 151645,
  head_dim: 128,
  hidden_act: "silu",
  hidden_size: 1024,
  intermediate_size: 3072,
  max_position_embeddings: 40960,
  model_type: "qwen3",
  num_attention_heads: 16,
  num_hidden_layers: 28,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-6,
  rope_scaling: null,
  rope_theta: 1000000,
  sliding_window: null,
  tie_word_embeddings: true,
  use_sliding_window: false,
  vocab_size: 151936,
};
const LLAMA = {
  architectures: ["LlamaForCausalLM"],
  hidden_size: 512,
  intermediate_size: 1408,
  num_hidden_layers: 8,
  num_attention_heads: 8,
  vocab_size: 6400,
};
/** The published config.json of Qwen2.5-Coder-1.5B-Instruct: no head_dim, and unused sliding-window keys. */
const QWEN2 = {
  ...{ architectures: ["Qwen2ForCausalLM"], attention_dropout: 0, bos_token_id: 151643, eos_token_id: 151645 },
  ...{ hidden_act: "silu", hidden_size: 1536, initializer_range: 0.02, intermediate_size: 8960 },
  ...{ max_position_embeddings: 32768, max_window_layers: 28, model_type: "qwen2", num_attention_heads: 12 },
  ...{ num_hidden_layers: 28, num_key_value_heads: 2, rms_norm_eps: 1e-6, rope_theta: 1000000, sliding_window: 32768 },
  ...{ tie_word_embeddings: true, use_sliding_window: false, vocab_size: 151936 },
};
/** The published config.json of Llama-3.2-1B. */
const LLAMA3 = {
  ...{ factor: 32, low_freq_factor: 1, high_freq_factor: 4 },
  ...{ original_max_position_embeddings: 8192, rope_type: "llama3" },
} as const;

test("reads Qwen3-0.6B's configuration and counts its parameters", () => {
  const config = parseConfig(QWEN3);
  expect(config).toMatchObject({ qk_norm: true, head_dim: 128, rope_theta: 1e6, eos_token_ids: [151645] });
  expect(parameterCount(config)).toBe(596_049_920); // the published 0.6B: 0.44B without the embedding
  expect(parameterShapes(config).has("lm_head.weight")).toBe(false);
  expect(parameterShapes(config).get("model.layers.27.self_attn.o_proj.weight")).toEqual([1024, 2048]);
});

test("a Qwen2 has biases on q, k and v, and heads of hidden_size / num_attention_heads", () => {
  const config = parseConfig({ ...QWEN2, layer_types: Array(28).fill("full_attention") });
  expect(config).toMatchObject({ qk_norm: false, qkv_bias: true, head_dim: 128, rope_scaling: null });
  expect(parameterCount(config)).toBe(1_543_714_304); // the published 1.54B
  const shapes = parameterShapes(config);
  expect(shapes.get("model.layers.27.self_attn.q_proj.bias")).toEqual([1536]);
  expect(shapes.get("model.layers.0.self_attn.v_proj.bias")).toEqual([256]);
  expect([...shapes.keys()].filter((name) => name.endsWith(".bias"))).toHaveLength(84);
  expect(configToJson(config)).not.toHaveProperty("attention_bias");
});

/** Rotary frequencies of Llama-3.2-1B computed by transformers, per pair of dimensions. */
const FROM_TRANSFORMERS: Readonly<Record<number, number>> = {
  ...{ 0: 1, 1: 0.663601279258728, 14: 0.0032114461064338684, 15: 0.0012905480107292533 },
  ...{ 16: 0.000429556705057621, 17: 9.708286233944818e-5, 18: 1.9461638657958247e-5, 31: 9.418306490260875e-8 },
};

test("llama3 rotary scaling: high frequencies stay, low ones are divided, those between interpolated", () => {
  const scaled = { ...LLAMA, head_dim: 64, rope_theta: 500_000, rope_scaling: LLAMA3 };
  const config = parseConfig(scaled);
  expect(config.rope_scaling).toEqual(LLAMA3);
  const { rope_theta: _, rope_scaling, ...newer } = { ...scaled, rope_parameters: { ...LLAMA3, rope_theta: 500_000 } };
  expect(parseConfig(newer)).toEqual(config);
  expect(rope_scaling).toEqual(configToJson(config).rope_scaling);
  const frequencies = inverseFrequencies(config);
  expect(frequencies).toHaveLength(32);
  for (const [i, want] of Object.entries(FROM_TRANSFORMERS)) {
    expect(Math.abs(frequencies[Number(i)]! / want - 1), i).toBeLessThan(1e-6);
  }
});

test("missing keys of a Llama configuration have the family's defaults", () => {
  const config = parseConfig(LLAMA);
  expect(config).toMatchObject({ qk_norm: false, head_dim: 64, num_key_value_heads: 8, rope_theta: 10000 });
  const names = [...parameterShapes(config).keys()];
  expect(names).toContain("lm_head.weight");
  expect(names.filter((name) => name.includes("q_norm"))).toEqual([]);
});

test("rotary positions are read from the newer key too", () => {
  const { rope_theta: _, ...older } = QWEN3;
  expect(parseConfig({ ...older, rope_parameters: { rope_type: "default", rope_theta: 5000 } }).rope_theta).toBe(5000);
  expect(parseConfig({ ...QWEN3, rope_scaling: { rope_type: "default" } }).rope_theta).toBe(1e6);
});

test("a configuration survives saving and loading", () => {
  for (const file of [
    QWEN3,
    QWEN2,
    LLAMA,
    { ...LLAMA, rope_scaling: LLAMA3 },
    { ...QWEN3, eos_token_id: [1, 2], pad_token_id: 0 },
  ]) {
    const config = parseConfig(file);
    expect(parseConfig(JSON.parse(JSON.stringify(configToJson(config))))).toEqual(config);
  }
  expect(configToJson(parseConfig(QWEN3), "bfloat16")).toMatchObject({ model_type: "qwen3", dtype: "bfloat16" });
});

test.each([
  [{ architectures: ["GPT2LMHeadModel"] }, /architectures is not supported: "GPT2LMHeadModel"; use a model of Qwen3/],
  [{ architectures: ["constructor"] }, /architectures is not supported/],
  [{ architectures: undefined }, /has no: architectures/],
  [{ rope_scaling: { rope_type: "yarn", factor: 4 } }, /rope_scaling\.rope_type is not supported: "yarn"/],
  [{ rope_scaling: { type: "linear", factor: 2 } }, /rope_scaling\.rope_type is not supported: "linear"/],
  [{ rope_parameters: { rope_type: "llama3" } }, /rope_parameters\.factor is not usable .*: undefined/],
  [{ rope_scaling: { ...LLAMA3, high_freq_factor: 1 } }, /rope_scaling\.low_freq_factor is not usable .*: 1/],
  [{ architectures: ["Qwen2ForCausalLM"], use_sliding_window: true }, /use_sliding_window is not supported/],
  [{ attention_bias: true }, /attention_bias is not supported: true/],
  [{ mlp_bias: true }, /mlp_bias is not supported/],
  [{ hidden_act: "gelu" }, /hidden_act is not supported: "gelu"/],
  [{ use_sliding_window: true }, /use_sliding_window is not supported/],
  [{ layer_types: ["full_attention", "sliding_attention"] }, /layer_types is not supported: "sliding_attention"/],
  [{ quantization_config: { bits: 4 } }, /quantization_config is not supported/],
  [{ num_key_value_heads: 3 }, /num_key_value_heads is not supported: 3; it must divide/],
  [{ head_dim: null, hidden_size: 1000 }, /head_dim is not supported: 62\.5/],
  [{ hidden_size: -1 }, /hidden_size is not usable .*: -1/],
  [{ vocab_size: "many" }, /vocab_size is not usable .*: "many"/],
  [{ num_hidden_layers: 1e9 }, /num_hidden_layers is not usable/],
])("refuses %j, naming file and field", (change, message) => {
  const read = () => parseConfig({ ...QWEN3, ...change }, "some/config.json");
  expect(read).toThrow(ModelLoadError);
  expect(read).toThrow(message);
  expect(read).toThrow(/^some\/config\.json\b/);
});

test("rejects what is not an object", () => {
  for (const json of [null, 3, [], "x"]) expect(() => parseConfig(json)).toThrow(ModelLoadError);
});
