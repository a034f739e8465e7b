// Damaged model files: each is either read or rejected.
import { test } from "vitest";
import { cases } from "../../../../test/helpers/cases.ts";
import { type Read, readDamaged } from "../../../../test/helpers/damaged-files.ts";
import { type GgufValue, ggufHeader } from "./gguf.ts";
import { parseGgufHeader } from "./gguf-header.ts";
import { encodeHeader, safetensorsOf } from "./safetensors.ts";

function safetensors(): Uint8Array {
  const shapes = new Map([
    ["model.norm.weight", [3]],
    ["lm_head.weight", [2, 3]],
  ]);
  const { bytes } = encodeHeader(shapes, "F32", { format: "pt" });
  return Buffer.concat([bytes, new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9).buffer)]);
}

function gguf(): Uint8Array {
  const facts = new Map<string, GgufValue>([
    ["general.architecture", { text: "llama" }],
    ["tokenizer.ggml.tokens", { texts: ["a", "b", "<|end|>"] }],
    ["llama.block_count", { u32: 2 }],
    ["tokenizer.ggml.token_type", { ints: [1, 1, 3] }],
  ]);
  const header = ggufHeader(facts, [
    { name: "token_embd.weight", shape: [2, 32], type: "q8_0" },
    { name: "output_norm.weight", shape: [4], type: "f32" },
  ]);
  return Buffer.concat([header, new Uint8Array(96 + 16)]);
}

test.each<readonly [string, Uint8Array, Read]>([
  [
    "safetensors",
    safetensors(),
    async (bytes) => {
      const source = safetensorsOf(bytes, "x.safetensors");
      for (const name of source.names) await source.read(name);
    },
  ],
  ["GGUF", gguf(), async (bytes) => parseGgufHeader(bytes, "x.gguf", bytes.length)],
])("%s: every damaged file is read or refused", (name, bytes, read) =>
  readDamaged(name, bytes, read, cases(60, 1_000)),
);
