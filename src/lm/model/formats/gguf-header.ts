// Parses a GGUF file's header from possibly hostile bytes: every count, length, type and offset is checked before it is
// used.
import { ModelLoadError } from "../../../errors.ts";
import { GGUF_ALIGNMENT } from "./gguf.ts";
import { GGML_TYPES, type GgmlType, type GgufTensor, ggufBytes, typeName } from "./gguf-types.ts";

/** Maximum bytes before the tensor data; a vocabulary of 256,000 tokens with its merges takes about 12 MB. */
export const MAX_GGUF_HEADER_BYTES = 100_000_000;
/** Maximum metadata key-value pairs; published files have 20 to 60. */
export const MAX_GGUF_FACTS = 10_000;
/** Maximum tensors; the largest published models have a few thousand. */
export const MAX_GGUF_TENSORS = 100_000;
/** Maximum bytes of a key, as in the format. */
export const MAX_GGUF_KEY_BYTES = 65_535;
/** Maximum bytes of a tensor's name. The format allows 64, but llama.cpp can be built with more. */
export const MAX_GGUF_NAME_BYTES = 256;
/** Maximum elements of a list; the largest vocabularies have about half a million merges. */
export const MAX_GGUF_LIST_LENGTH = 4_000_000;
/** Maximum dimensions of a tensor, as in ggml. */
export const MAX_GGUF_DIMENSIONS = 4;
/** Maximum `general.alignment`; published files have 32. */
export const MAX_GGUF_ALIGNMENT = 65_536;

/** Names of unsupported types by number, for error messages. */
const TYPE_NAMES: Readonly<Record<number, string>> = {
  9: "q8_1",
  10: "q2_k",
  11: "q3_k",
  15: "q8_k",
  16: "iq2_xxs",
  17: "iq2_xs",
  18: "iq3_xxs",
  19: "iq1_s",
  20: "iq4_nl",
  21: "iq3_s",
  22: "iq2_s",
  23: "iq4_xs",
  24: "i8",
  25: "i16",
  26: "i32",
  27: "i64",
  28: "f64",
  29: "iq1_m",
  34: "tq1_0",
  35: "tq2_0",
  39: "mxfp4",
};

const MAGIC = 0x46554747; // "GGUF" read as a little-endian number
const VERSIONS = [2, 3]; // version 1 has 32-bit lengths and is no longer written
const [BOOL, TEXT, LIST] = [7, 8, 9];

export interface GgufPlace extends GgufTensor {
  /** Offset of its bytes in the file; `bytes` is their number. */
  readonly begin: number;
  readonly bytes: number;
}

export interface GgufHeader {
  /** Metadata by key; lists are arrays. */
  readonly facts: ReadonlyMap<string, unknown>;
  readonly tensors: ReadonlyMap<string, GgufPlace>;
}

/**
 * Parses the header from a file's first bytes; undefined if it needs more bytes than these. `file` appears in errors.
 */
export function parseGgufHeader(bytes: Uint8Array, file: string, fileSize: number): GgufHeader | undefined {
  const input = new Input(bytes, file, fileSize);
  try {
    return header(input, fileSize);
  } catch (error) {
    if (error === MORE) return undefined;
    throw error;
  }
}

function header(input: Input, fileSize: number): GgufHeader {
  if (input.u32() !== MAGIC) throw input.bad("it is not a GGUF file: the first four bytes are not GGUF");
  const version = input.u32();
  if (!VERSIONS.includes(version)) {
    const swapped = VERSIONS.some((known) => known << 24 === version);
    throw input.bad(swapped ? "it is in big-endian order, which is not read" : "its version is not 2 or 3", version);
  }
  const tensorCount = input.count("tensors", MAX_GGUF_TENSORS);
  const factCount = input.count("facts", MAX_GGUF_FACTS);
  const facts = new Map<string, unknown>();
  for (let i = 0; i < factCount; i++) {
    const key = input.text("a key", MAX_GGUF_KEY_BYTES, true);
    if (facts.has(key)) throw input.bad("it has a key twice", key);
    facts.set(key, input.value(input.u32(), key));
  }
  const alignment = alignmentOf(facts, input);
  const places: { tensor: GgufTensor; offset: number }[] = [];
  for (let i = 0; i < tensorCount; i++) places.push(tensorInfo(input));
  const start = padTo(alignment, input.position);
  const tensors = new Map<string, GgufPlace>();
  let end = 0;
  for (const { tensor, offset } of places) {
    const { name } = tensor;
    if (tensors.has(name)) throw input.bad("it has a tensor twice", name);
    // As in llama.cpp, tensors follow each other, each padded: none overlap and no bytes are hidden between them.
    if (offset !== padTo(alignment, end)) {
      throw input.bad(`tensor ${name} should begin at ${padTo(alignment, end)}`, offset);
    }
    const bytes = ggufBytes(tensor);
    end = offset + bytes;
    if (!Number.isSafeInteger(start + end) || start + end > fileSize) {
      throw input.bad(`tensor ${name} ends after the end of the file`, `${start + end} of ${fileSize} bytes`);
    }
    tensors.set(name, { ...tensor, begin: start + offset, bytes });
  }
  return { facts, tensors };
}

function tensorInfo(input: Input): { tensor: GgufTensor; offset: number } {
  const name = input.text("a tensor's name", MAX_GGUF_NAME_BYTES, true);
  const dimensions = input.u32();
  if (dimensions < 1 || dimensions > MAX_GGUF_DIMENSIONS) {
    throw input.bad(`tensor ${name} should have 1 to ${MAX_GGUF_DIMENSIONS} dimensions`, dimensions);
  }
  const shape = Array.from({ length: dimensions }, () => input.u64(`a size of tensor ${name}`)).reverse();
  const length = shape.reduce((product, size) => product * size, 1);
  if (!Number.isSafeInteger(8 * length)) throw input.bad(`tensor ${name} is too large`, `[${shape}]`);
  const number = input.u32();
  const known = Object.keys(GGML_TYPES) as GgmlType[];
  const type = known.find((each) => GGML_TYPES[each].number === number);
  if (type === undefined) {
    const other = number in TYPE_NAMES ? typeName(TYPE_NAMES[number]!) : `number ${number}`;
    throw input.bad(
      `tensor ${name} has a type that is not read`,
      other,
      `use a file of ${known.map(typeName).join(", ")}`,
    );
  }
  const { block } = GGML_TYPES[type];
  if (shape.at(-1)! % block !== 0) {
    throw input.bad(
      `tensor ${name} of type ${typeName(type)} has rows that are not whole blocks of ${block}`,
      `[${shape}]`,
    );
  }
  return { tensor: { name, shape, type }, offset: input.u64(`the offset of tensor ${name}`) };
}

function alignmentOf(facts: ReadonlyMap<string, unknown>, input: Input): number {
  const alignment = facts.get("general.alignment") ?? GGUF_ALIGNMENT;
  const isPower = typeof alignment === "number" && Number.isInteger(Math.log2(alignment));
  if (isPower && alignment >= 8 && alignment <= MAX_GGUF_ALIGNMENT) return alignment;
  throw input.bad(`its general.alignment should be a power of two from 8 to ${MAX_GGUF_ALIGNMENT}`, String(alignment));
}

function padTo(alignment: number, bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

/** Thrown if the header is longer than the bytes read so far. */
const MORE = Symbol("more bytes are needed");

/** Scalar types by number: size in bytes, and a reader. 64-bit integers must be exact as JavaScript numbers. */
const SCALARS: Readonly<Record<number, readonly [number, (view: DataView, at: number) => number | bigint]>> = {
  0: [1, (view, at) => view.getUint8(at)],
  1: [1, (view, at) => view.getInt8(at)],
  2: [2, (view, at) => view.getUint16(at, true)],
  3: [2, (view, at) => view.getInt16(at, true)],
  4: [4, (view, at) => view.getUint32(at, true)],
  5: [4, (view, at) => view.getInt32(at, true)],
  6: [4, (view, at) => view.getFloat32(at, true)],
  [BOOL]: [1, (view, at) => view.getUint8(at)],
  10: [8, (view, at) => view.getBigUint64(at, true)],
  11: [8, (view, at) => view.getBigInt64(at, true)],
  12: [8, (view, at) => view.getFloat64(at, true)],
};

/** Maximum characters of a reason in an error. */
const MAX_SHOWN_REASON = 200;

/** A byte reader: asks for more at the end of the available bytes, and fails at the end of the file. */
class Input {
  position = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #file: string;
  readonly #fileSize: number;
  readonly #strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #loose = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(bytes: Uint8Array, file: string, fileSize: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#file = file;
    this.#fileSize = fileSize;
  }

  bad(what: string, value?: string | number, remedy = "check the file, or fetch it again"): ModelLoadError {
    // Keys and names come from the file and may be long.
    const shown = what.length <= MAX_SHOWN_REASON ? what : `${what.slice(0, MAX_SHOWN_REASON)}…`;
    return new ModelLoadError({ what: `${this.#file}: ${shown}`, value, remedy });
  }

  /** Skips bytes that must exist; returns their offset. */
  #take(bytes: number): number {
    const start = this.position;
    const end = start + bytes;
    if (end > this.#fileSize) throw this.bad("the file ends within its header", `${this.#fileSize} bytes`);
    if (end > MAX_GGUF_HEADER_BYTES) throw this.bad(`its header has more than ${MAX_GGUF_HEADER_BYTES} bytes`);
    if (end > this.#bytes.length) throw MORE;
    this.position = end;
    return start;
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  u64(what: string): number {
    const value = this.#view.getBigUint64(this.#take(8), true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.bad(`${what} is too large`, String(value));
    return Number(value);
  }

  count(what: string, most: number): number {
    const value = this.u64(`the number of ${what}`);
    if (value > most) throw this.bad(`it claims more than ${most} ${what}`, value);
    return value;
  }

  /** Reads a text. Names must be valid UTF-8, since two invalid ones could decode to the same text. */
  text(what: string, most = MAX_GGUF_HEADER_BYTES, strict = false): string {
    const length = this.u64(`the length of ${what}`);
    if (length > most) throw this.bad(`${what} has more than ${most} bytes`, length);
    const start = this.#take(length);
    const bytes = this.#bytes.subarray(start, start + length);
    try {
      return (strict ? this.#strict : this.#loose).decode(bytes);
    } catch {
      throw this.bad(`${what} is not UTF-8`, this.#loose.decode(bytes));
    }
  }

  value(type: number, key: string): unknown {
    if (type !== LIST) return this.#single(type, key);
    const inner = this.u32();
    if (inner === LIST) throw this.bad("a list of lists is not read", key);
    const least = inner === TEXT ? 8 : (SCALARS[inner]?.[0] ?? 1);
    const length = this.u64(`the length of ${key}`);
    if (length > MAX_GGUF_LIST_LENGTH) throw this.bad(`${key} has more than ${MAX_GGUF_LIST_LENGTH} elements`, length);
    if (this.position + least * length > this.#fileSize) {
      throw this.bad("the file ends within its header", `${this.#fileSize} bytes`);
    }
    const list: unknown[] = [];
    for (let i = 0; i < length; i++) list.push(this.#single(inner, key));
    return list;
  }

  #single(type: number, key: string): unknown {
    if (type === TEXT) return this.text(key);
    const scalar = SCALARS[type];
    if (!scalar) throw this.bad(`${key} has an unknown type`, type);
    const [bytes, read] = scalar;
    const value = read(this.#view, this.#take(bytes));
    if (type === BOOL) {
      if (value === 0 || value === 1) return value === 1;
      throw this.bad(`${key} is neither true nor false`, Number(value));
    }
    if (typeof value === "number") return value;
    if (Number.isSafeInteger(Number(value))) return Number(value);
    throw this.bad(`${key} is too large a number`, String(value));
  }
}
