// Models people ask for by name, so that what they need is known before anything is downloaded.
import type { ModelConfig } from "./config.ts";

export interface KnownModel {
  readonly config: ModelConfig;
  /** Bytes of its files on the Hub. */
  readonly download: number;
}

const QWEN3: Omit<ModelConfig, "hidden_size" | "intermediate_size"> = {
  ...{ architecture: "Qwen3ForCausalLM", vocab_size: 151_936, num_hidden_layers: 28 },
  ...{
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 128,
    rms_norm_eps: 1e-6,
    rope_theta: 1e6,
    rope_scaling: null,
  },
  ...{ max_position_embeddings: 40_960, tie_word_embeddings: true, qk_norm: true, qkv_bias: false },
  ...{ bos_token_id: 151_643, eos_token_ids: [151_645], pad_token_id: null },
};

/** By their names on the Hub. */
export const KNOWN_MODELS: Readonly<Record<string, KnownModel>> = {
  "Qwen/Qwen3-0.6B": { config: { ...QWEN3, hidden_size: 1024, intermediate_size: 3072 }, download: 1.5e9 },
  "Qwen/Qwen3-1.7B": { config: { ...QWEN3, hidden_size: 2048, intermediate_size: 6144 }, download: 4.1e9 },
};
