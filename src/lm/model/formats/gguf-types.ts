// Types of tensors in a GGUF file: numbers per block and bytes per block.

interface GgmlTypeInfo {
  /** The type's number in the file. */
  readonly number: number;
  /** Numbers per block; a row consists of whole blocks. */
  readonly block: number;
  /** Bytes per block. */
  readonly bytes: number;
}

/** The supported types. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
export const GGML_TYPES = {
  f32: { number: 0, block: 1, bytes: 4 },
  f16: { number: 1, block: 1, bytes: 2 },
  bf16: { number: 30, block: 1, bytes: 2 },
  q8_0: { number: 8, block: 32, bytes: 34 },
  q4_0: { number: 2, block: 32, bytes: 18 },
  q4_1: { number: 3, block: 32, bytes: 20 },
  q5_0: { number: 6, block: 32, bytes: 22 },
  q5_1: { number: 7, block: 32, bytes: 24 },
  q4_k: { number: 12, block: 256, bytes: 144 },
  q5_k: { number: 13, block: 256, bytes: 176 },
  q6_k: { number: 14, block: 256, bytes: 210 },
} as const satisfies Readonly<Record<string, GgmlTypeInfo>>;

export type GgmlType = keyof typeof GGML_TYPES;

export interface GgufTensor {
  readonly name: string;
  /** [rows, columns], or [length]. */
  readonly shape: readonly number[];
  readonly type: GgmlType;
}

/** Number of bytes that a tensor takes. */
export function ggufBytes({ shape, type }: Pick<GgufTensor, "shape" | "type">): number {
  const { block, bytes } = GGML_TYPES[type];
  return (shape.reduce((product, size) => product * size, 1) / block) * bytes;
}

/** Formats a type as llama.cpp prints it. */
export function typeName(type: string): string {
  return type.toUpperCase();
}
