// A small model as a GGUF file in memory, which tests of readers can modify.

import { type ModelConfig, parameterShapes } from "../../src/lm/model/config.ts";
import {
  type GgufType,
  type GgufValue,
  ggufData,
  ggufHeader,
  ggufTypeOf,
  padded,
} from "../../src/lm/model/formats/gguf.ts";
import { ROPE_FACTORS, ropeFactorsOf } from "../../src/lm/model/formats/gguf-config.ts";
import { dequantized } from "../../src/lm/model/formats/gguf-dequantize.ts";
import { type GgufFile, openGgufModel } from "../../src/lm/model/formats/gguf-folder.ts";
import { parseGgufHeader } from "../../src/lm/model/formats/gguf-header.ts";
import { forLlamaRotary, ggufFacts, ggufName } from "../../src/lm/model/formats/gguf-model.ts";
import { preTokenizerNamed } from "../../src/lm/model/formats/gguf-pretokenizer.ts";
import { GGML_TYPES, type GgmlType, ggufBytes } from "../../src/lm/model/formats/gguf-types.ts";
import { trainBpe } from "../../src/lm/model/text/bpe-trainer.ts";
import { Tokenizer } from "../../src/lm/model/text/tokenizer.ts";
import { random } from "../../src/random.ts";
import { TINY } from "./tiny-model.ts";

export const SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const SIZES = { vocab_size: 320, hidden_size: 64, intermediate_size: 96, num_attention_heads: 2, head_dim: 32 };

const tokenizers = new Map<string, Tokenizer>();

/** A tokenizer with the pre-tokenizer that llama.cpp calls `pre`. */
export function tokenizerOf(pre: string): Tokenizer {
  const known = tokenizers.get(pre);
  if (known) return known;
  const { normalizer, pre_tokenizer, ignore_merges } = preTokenizerNamed(pre)!;
  const json = trainBpe(["SELECT name FROM customers", "DESCRIBE: customers"], {
    ...{ vocabSize: 300, specialTokens: SPECIAL },
  }) as { model: object };
  const model = { ...json.model, ignore_merges };
  const config = { bos_token: SPECIAL[0], eos_token: SPECIAL[2] };
  const made = new Tokenizer({ tokenizer: { ...json, model, normalizer, pre_tokenizer }, config });
  tokenizers.set(pre, made);
  return made;
}

export interface Stored {
  readonly name: string;
  readonly shape: readonly number[];
  readonly type: GgmlType;
  readonly bytes: Uint8Array;
}

export interface GgufParts {
  readonly config: ModelConfig;
  readonly tokenizer: Tokenizer;
  readonly facts: Map<string, GgufValue>;
  readonly tensors: Map<string, Stored>;
  /** By their names in a folder. */
  readonly numbers: ReadonlyMap<string, Float32Array>;
}

export interface GgufPartsOptions {
  readonly config?: Partial<ModelConfig>;
  readonly type?: GgufType;
  readonly pre?: string;
}

/** The parts of a file; change facts and tensors, then `ggufOf` writes them. */
export function ggufParts({ config: given, type = "f32", pre = "gpt-2" }: GgufPartsOptions = {}): GgufParts {
  const architecture = given?.architecture ?? "LlamaForCausalLM";
  const config: ModelConfig = {
    ...{ ...TINY, ...SIZES, architecture },
    ...{ qk_norm: architecture === "Qwen3ForCausalLM", qkv_bias: architecture === "Qwen2ForCausalLM" },
    ...{ bos_token_id: 0, eos_token_ids: [2], pad_token_id: null },
    ...given,
  };
  const tokenizer = tokenizerOf(pre);
  const r = random("gguf", architecture);
  const numbers = new Map<string, Float32Array>();
  const tensors = new Map<string, Stored>();
  const store = (name: string, shape: readonly number[], data: Float32Array) => {
    const as = ggufTypeOf(shape, type);
    tensors.set(name, { name, shape, type: as, bytes: ggufData(data, as) });
  };
  for (const [name, shape] of parameterShapes(config)) {
    const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => r.normal(0, 0.3));
    numbers.set(name, data);
    store(ggufName(name), shape, forLlamaRotary(config, name, data));
  }
  const factors = ropeFactorsOf(config);
  if (factors) store(ROPE_FACTORS, [factors.length], factors);
  const facts = ggufFacts({ config, tokenizer, chatTemplate: undefined, name: "tiny", type });
  return { config, tokenizer, facts, tensors, numbers };
}

export function ggufOf({ facts, tensors }: Pick<GgufParts, "facts" | "tensors">): Uint8Array {
  const list = [...tensors.values()];
  const parts = [ggufHeader(facts, list)];
  for (const { bytes } of list) parts.push(bytes, new Uint8Array(padded(bytes.length) - bytes.length));
  return new Uint8Array(Buffer.concat(parts));
}

/** The file opened from memory. */
export function openBytes(bytes: Uint8Array, name = "x.gguf") {
  const header = parseGgufHeader(bytes, name, bytes.length);
  if (!header) throw new Error("the header ends behind the bytes");
  const file: GgufFile = {
    ...header,
    read: (tensor, rows) => {
      const { begin, type, shape } = header.tensors.get(tensor)!;
      const [first, count] = rows ? [rows.first, rows.count] : [0, shape[0]!];
      const { block, bytes: size } = GGML_TYPES[type];
      const row = shape.length === 1 ? [1] : shape.slice(1);
      const rowBytes = shape.length === 1 ? size / block : ggufBytes({ shape: row, type });
      return dequantized(bytes.slice(begin + first * rowBytes, begin + (first + count) * rowBytes), type);
    },
    close: () => {},
  };
  return openGgufModel(file, name);
}
