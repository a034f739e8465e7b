// Compares dequantized GGUF blocks with Python's gguf package, bit for bit (test/reference/gguf_blocks.py).
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { dequantized } from "./gguf-dequantize.ts";
import { GGML_TYPES, type GgmlType, ggufBytes } from "./gguf-types.ts";

const file = new URL("../../../../test/reference/gguf-blocks.json", import.meta.url);
const REFERENCE = JSON.parse(readFileSync(file, "utf8")) as Record<string, { blocks: string; sha256: string }>;

test.each(Object.keys(GGML_TYPES) as GgmlType[])("%s: the same bits", (type) => {
  const { blocks, sha256 } = REFERENCE[type]!;
  const numbers = dequantized(new Uint8Array(Buffer.from(blocks, "base64")), type);
  expect(ggufBytes({ shape: [numbers.length], type })).toBe(Buffer.from(blocks, "base64").length);
  const bytes = new Uint8Array(numbers.buffer);
  expect(createHash("sha256").update(bytes).digest("hex")).toBe(sha256);
});
