// Writes the GGUF format: a header with typed metadata, a list of tensors, and their values. Hand-written, because the
// format is one page and a library would bring a runtime.
import { UsageError } from "../../../errors.ts";
import { GGML_TYPES, type GgufTensor, ggufBytes } from "./gguf-types.ts";

/**
 * How matrices are stored: as floats, or in blocks of 32 integers with a common factor. Vectors are always 32-bit
 * floats.
 */
export type GgufType = "f32" | "f16" | "q8_0";

export const GGUF_ALIGNMENT = 32;
const VERSION = 3;
/** Numbers per q8_0 block. */
const BLOCK = GGML_TYPES.q8_0.block;

/** A metadata value. Integers are stored as unsigned 32 bits, other numbers as 32-bit floats. */
export type GgufValue =
  | { readonly u32: number }
  | { readonly f32: number }
  | { readonly bool: boolean }
  | { readonly text: string }
  | { readonly texts: readonly string[] }
  | { readonly ints: readonly number[] };

/** The type a tensor is stored in; blocks are used only if every row consists of whole blocks. */
export function ggufTypeOf(shape: readonly number[], wanted: GgufType): GgufType {
  if (shape.length === 1) return "f32";
  return wanted === "q8_0" && shape[1]! % BLOCK !== 0 ? "f16" : wanted;
}

/** Encodes everything before the tensor data, padded so that the data is aligned. */
export function ggufHeader(facts: ReadonlyMap<string, GgufValue>, tensors: readonly GgufTensor[]): Uint8Array {
  const out = new Bytes();
  out.ascii("GGUF").u32(VERSION).u64(tensors.length).u64(facts.size);
  for (const [key, value] of facts) writeFact(out, key, value);
  let offset = 0;
  for (const tensor of tensors) {
    out.text(tensor.name).u32(tensor.shape.length);
    for (const size of [...tensor.shape].reverse()) out.u64(size);
    out.u32(GGML_TYPES[tensor.type].number).u64(offset);
    offset += padded(ggufBytes(tensor));
  }
  return out.take(GGUF_ALIGNMENT);
}

export function padded(bytes: number): number {
  return Math.ceil(bytes / GGUF_ALIGNMENT) * GGUF_ALIGNMENT;
}

function writeFact(out: Bytes, key: string, value: GgufValue): void {
  out.text(key);
  if ("u32" in value) out.u32(4).u32(value.u32);
  else if ("f32" in value) out.u32(6).f32(value.f32);
  else if ("bool" in value) out.u32(7).u8(value.bool ? 1 : 0);
  else if ("text" in value) out.u32(8).text(value.text);
  else if ("texts" in value) {
    out.u32(9).u32(8).u64(value.texts.length);
    for (const text of value.texts) out.text(text);
  } else {
    out.u32(9).u32(5).u64(value.ints.length);
    for (const int of value.ints) out.u32(int >>> 0);
  }
}

/** Encodes a tensor's numbers. */
export function ggufData(data: Float32Array, type: GgufType): Uint8Array {
  if (type === "f32") return new Uint8Array(data.slice().buffer);
  if (type === "f16") {
    const out = new Uint16Array(data.length);
    for (let i = 0; i < data.length; i++) out[i] = toHalf(data[i]!);
    return new Uint8Array(out.buffer);
  }
  if (data.length % BLOCK !== 0)
    throw new UsageError({ what: "q8_0 needs whole blocks of 32 numbers", value: data.length });
  const out = new Uint8Array((data.length / BLOCK) * (2 + BLOCK));
  for (let from = 0, at = 0; from < data.length; from += BLOCK, at += 2 + BLOCK) {
    let most = 0;
    for (let i = 0; i < BLOCK; i++) most = Math.max(most, Math.abs(data[from + i]!));
    const factor = most / 127;
    const half = toHalf(factor);
    out[at] = half & 0xff;
    out[at + 1] = half >>> 8;
    for (let i = 0; i < BLOCK; i++) {
      const level = factor === 0 ? 0 : data[from + i]! / factor;
      out[at + 2 + i] = (Math.sign(level) * Math.round(Math.abs(level))) & 0xff;
    }
  }
  return out;
}

const scratch = new DataView(new ArrayBuffer(4));

/** Rounds to the bits of a 16-bit float, to nearest, ties to even; values that are too large become infinite. */
export function toHalf(value: number): number {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  const exponent = ((bits >>> 23) & 0xff) - 112; // exponent of the half
  const fraction = bits & 0x7fffff;
  if (exponent >= 31) return sign | 0x7c00 | ((bits & 0x7fffffff) > 0x7f800000 ? 0x200 : 0);
  if (exponent <= 0) {
    if (exponent < -10) return sign;
    const whole = fraction | 0x800000;
    const shift = 14 - exponent;
    const rest = whole & ((1 << shift) - 1);
    const half = 1 << (shift - 1);
    const kept = whole >>> shift;
    return sign | (kept + (rest > half || (rest === half && kept & 1) ? 1 : 0));
  }
  const kept = (exponent << 10) | (fraction >>> 13);
  const rest = fraction & 0x1fff;
  return sign | (kept + (rest > 0x1000 || (rest === 0x1000 && kept & 1) ? 1 : 0));
}

export function fromHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >>> 10) & 31;
  const fraction = half & 0x3ff;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

/** A growing byte buffer. */
class Bytes {
  #bytes = new Uint8Array(1 << 16);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  ascii(text: string): this {
    return this.#put(new TextEncoder().encode(text));
  }
  text(text: string): this {
    const bytes = new TextEncoder().encode(text);
    return this.u64(bytes.length).#put(bytes);
  }
  u8(value: number): this {
    this.#room(1).setUint8(this.#length - 1, value);
    return this;
  }
  u32(value: number): this {
    this.#room(4).setUint32(this.#length - 4, value, true);
    return this;
  }
  f32(value: number): this {
    this.#room(4).setFloat32(this.#length - 4, value, true);
    return this;
  }
  u64(value: number): this {
    this.#room(8).setBigUint64(this.#length - 8, BigInt(value), true);
    return this;
  }
  /** Returns all bytes, zero-padded to a multiple. */
  take(multiple: number): Uint8Array {
    return this.#bytes.slice(0, Math.ceil(this.#length / multiple) * multiple);
  }

  #put(bytes: Uint8Array): this {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#length - bytes.length);
    return this;
  }

  #room(count: number): DataView {
    this.#length += count;
    if (this.#length + GGUF_ALIGNMENT > this.#bytes.length) {
      const larger = new Uint8Array(2 * (this.#length + GGUF_ALIGNMENT));
      larger.set(this.#bytes);
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
    return this.#view;
  }
}
