// Well-known models, so that their memory needs are known before anything is downloaded.
import type { ModelConfig } from "../config.ts";

export interface KnownModel {
  readonly config: ModelConfig;
  /** Bytes to download from the Hub. */
  readonly download: number;
}

type Sizes = "hidden_size" | "intermediate_size" | "num_hidden_layers" | "num_attention_heads" | "num_key_value_heads";

const QWEN3: Omit<ModelConfig, "hidden_size" | "intermediate_size"> = {
  architecture: "Qwen3ForCausalLM",
  vocab_size: 151_936,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 8,
  head_dim: 128,
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  rope_scaling: null,
  max_position_embeddings: 40_960,
  tie_word_embeddings: true,
  qk_norm: true,
  qkv_bias: false,
  bos_token_id: 151_643,
  eos_token_ids: [151_645],
  pad_token_id: null,
};

const QWEN2: Omit<ModelConfig, Sizes | "head_dim"> = {
  architecture: "Qwen2ForCausalLM",
  vocab_size: 151_936,
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  rope_scaling: null,
  max_position_embeddings: 32_768,
  tie_word_embeddings: true,
  qk_norm: false,
  qkv_bias: true,
  bos_token_id: 151_643,
  eos_token_ids: [151_645],
  pad_token_id: null,
};
const QWEN2_500M: KnownModel = {
  config: {
    ...QWEN2,
    hidden_size: 896,
    intermediate_size: 4864,
    num_hidden_layers: 24,
    num_attention_heads: 14,
    num_key_value_heads: 2,
    head_dim: 64,
  },
  download: 1e9,
};
const QWEN2_1500M: KnownModel = {
  config: {
    ...QWEN2,
    hidden_size: 1536,
    intermediate_size: 8960,
    num_hidden_layers: 28,
    num_attention_heads: 12,
    num_key_value_heads: 2,
    head_dim: 128,
  },
  download: 3.1e9,
};

const LLAMA: Omit<ModelConfig, Sizes | "vocab_size" | "rope_theta" | "max_position_embeddings"> = {
  architecture: "LlamaForCausalLM",
  head_dim: 64,
  rms_norm_eps: 1e-5,
  rope_scaling: null,
  tie_word_embeddings: true,
  qk_norm: false,
  qkv_bias: false,
  bos_token_id: 1,
  eos_token_ids: [2],
  pad_token_id: 2,
};
const SMOLLM2: Omit<ModelConfig, Sizes> = {
  ...LLAMA,
  vocab_size: 49_152,
  rope_theta: 100_000,
  max_position_embeddings: 8_192,
};

/** Models by their names on the Hub. */
export const KNOWN_MODELS: Readonly<Record<string, KnownModel>> = {
  "Qwen/Qwen3-0.6B": { config: { ...QWEN3, hidden_size: 1024, intermediate_size: 3072 }, download: 1.5e9 },
  "Qwen/Qwen3-1.7B": { config: { ...QWEN3, hidden_size: 2048, intermediate_size: 6144 }, download: 4.1e9 },
  "Qwen/Qwen2.5-0.5B-Instruct": QWEN2_500M,
  "Qwen/Qwen2.5-1.5B-Instruct": QWEN2_1500M,
  "Qwen/Qwen2.5-Coder-0.5B-Instruct": QWEN2_500M,
  "Qwen/Qwen2.5-Coder-1.5B-Instruct": QWEN2_1500M,
  "HuggingFaceTB/SmolLM2-135M-Instruct": {
    config: {
      ...SMOLLM2,
      hidden_size: 576,
      intermediate_size: 1536,
      num_hidden_layers: 30,
      num_attention_heads: 9,
      num_key_value_heads: 3,
    },
    download: 0.27e9,
  },
  "HuggingFaceTB/SmolLM2-360M-Instruct": {
    config: {
      ...SMOLLM2,
      hidden_size: 960,
      intermediate_size: 2560,
      num_hidden_layers: 32,
      num_attention_heads: 15,
      num_key_value_heads: 5,
    },
    download: 0.73e9,
  },
  "meta-llama/Llama-3.2-1B-Instruct": {
    config: {
      ...LLAMA,
      vocab_size: 128_256,
      hidden_size: 2048,
      intermediate_size: 8192,
      num_hidden_layers: 16,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      rope_theta: 500_000,
      max_position_embeddings: 131_072,
      rope_scaling: {
        rope_type: "llama3",
        factor: 32,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 8_192,
      },
      bos_token_id: 128_000,
      eos_token_ids: [128_001, 128_008, 128_009],
      pad_token_id: null,
    },
    download: 2.5e9,
  },
};
