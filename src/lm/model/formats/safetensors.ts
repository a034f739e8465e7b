// The safetensors format: an 8-byte length, a JSON header with names, dtypes, shapes and offsets, then the numbers.
import { z } from "zod";
import { ModelLoadError } from "../../../errors.ts";
import { duplicateKey } from "./duplicate-key.ts";

// Maximum bytes of a header, as in the reference reader; the largest published one has a few hundred kilobytes.
export const MAX_HEADER_BYTES = 100_000_000;
const MAX_TENSORS = 200_000;
const MAX_DIMENSIONS = 8;
const MAX_NAME_LENGTH = 1_000; // maximum characters of a name

/** Bytes per element. Only floats can be read as weights, but files may contain other types. */
const DTYPE_BYTES = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
} as const;

export type Dtype = keyof typeof DTYPE_BYTES;
/** The dtypes a weight may have. */
export type FloatDtype = "F32" | "F16" | "BF16";

export interface TensorInfo {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

/** A tensor and its byte range, counted from the end of the header. */
export interface TensorRange extends TensorInfo {
  readonly begin: number;
  readonly end: number;
}

export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, TensorRange>;
  readonly metadata: Readonly<Record<string, string>>;
  /** Offset of the data in the file. */
  readonly dataStart: number;
}

/** Weights that can be read one tensor at a time. */
export interface WeightSource {
  readonly names: readonly string[];
  /** Metadata of the files. */
  readonly metadata: Readonly<Record<string, string>>;
  info(name: string): TensorInfo;
  /** Reads a tensor as fp32; rejects NaN and infinite weights. */
  read(name: string): Promise<Float32Array<ArrayBuffer>>;
  close(): Promise<void>;
}

const size = z.int().min(0);
const headerEntry = z.object({
  dtype: z.string(),
  shape: z.array(size).max(MAX_DIMENSIONS),
  data_offsets: z.tuple([size, size]),
});

/** The header's length, from the file's first eight bytes. */
export function headerLength(first8: Uint8Array, file: string, fileSize: number): number {
  if (first8.length < 8) throw bad(file, "the file ends within its first eight bytes", `${fileSize} bytes`);
  const length = Number(new DataView(first8.buffer, first8.byteOffset, 8).getBigUint64(0, true));
  if (length > MAX_HEADER_BYTES || length < 2) {
    throw bad(file, `its header would have a length outside 2 to ${MAX_HEADER_BYTES} bytes`, length);
  }
  if (8 + length > fileSize) throw bad(file, "the file ends within its header", `${fileSize} of ${8 + length} bytes`);
  return length;
}

/** Parses a header and checks that its tensors fill the rest of the file, without holes or overlaps. */
export function parseHeader(bytes: Uint8Array, file: string, fileSize: number): SafetensorsHeader {
  let text: string;
  let json: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    json = JSON.parse(text);
  } catch (error) {
    throw bad(file, "its header is not JSON", new TextDecoder().decode(bytes.subarray(0, 80)), error);
  }
  if (json === null || typeof json !== "object" || Array.isArray(json)) throw bad(file, "its header is not an object");
  const twice = duplicateKey(text);
  if (twice !== undefined) throw bad(file, "its header has a key twice", twice);
  const { __metadata__: metadata = {}, ...entries } = json as Record<string, unknown>;
  const meta = z.record(z.string(), z.string()).safeParse(metadata);
  if (!meta.success) throw bad(file, "its __metadata__ is not a map of strings", JSON.stringify(metadata));
  const names = Object.keys(entries);
  if (names.length > MAX_TENSORS) throw bad(file, `it names more than ${MAX_TENSORS} tensors`, names.length);
  const tensors = new Map(names.map((name) => [name, parseEntry(name, entries[name], file)]));
  checkRanges(tensors, file, fileSize - 8 - bytes.length);
  return { tensors, metadata: meta.data, dataStart: 8 + bytes.length };
}

function parseEntry(name: string, entry: unknown, file: string): TensorRange {
  if (name.length > MAX_NAME_LENGTH) throw bad(file, `a name has more than ${MAX_NAME_LENGTH} characters`, name);
  const read = headerEntry.safeParse(entry);
  if (!read.success) throw bad(file, `tensor ${name} is not described by dtype, shape, data_offsets`, shown(entry));
  const { dtype, shape, data_offsets } = read.data;
  if (!Object.hasOwn(DTYPE_BYTES, dtype)) throw bad(file, `tensor ${name} has an unknown dtype`, dtype);
  const [begin, end] = data_offsets;
  const bytes = elementCount(shape) * DTYPE_BYTES[dtype as Dtype];
  if (!Number.isSafeInteger(bytes) || end - begin !== bytes) {
    throw bad(
      file,
      `tensor ${name} of shape [${shape}] and dtype ${dtype} does not fill its offsets`,
      shown(data_offsets),
    );
  }
  return { dtype: dtype as Dtype, shape, begin, end };
}

function checkRanges(tensors: ReadonlyMap<string, TensorRange>, file: string, available: number): void {
  let at = 0;
  const ordered = [...tensors].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end);
  for (const [name, { begin, end }] of ordered) {
    if (begin < at) throw bad(file, `tensor ${name} overlaps the one before it`, `offsets [${begin}, ${end}]`);
    if (begin > at) throw bad(file, `bytes before tensor ${name} belong to none`, `offsets [${begin}, ${end}]`);
    at = end;
  }
  if (at > available) throw bad(file, "the file is cut off", `${available} of ${at} bytes of weights`);
  if (at < available) throw bad(file, "bytes after the last tensor belong to none", `${available - at} bytes`);
}

/** The weights in a file that is completely in memory. */
export function safetensorsOf(bytes: Uint8Array<ArrayBuffer>, file: string): WeightSource {
  const length = headerLength(bytes.subarray(0, 8), file, bytes.length);
  const { tensors, metadata, dataStart } = parseHeader(bytes.subarray(8, 8 + length), file, bytes.length);
  const find = (name: string) => {
    const range = tensors.get(name);
    if (!range) throw bad(file, "no such tensor", name);
    return range;
  };
  return {
    names: [...tensors.keys()],
    metadata,
    info: find,
    async read(name) {
      const { dtype, begin, end } = find(name);
      if (!isFloatDtype(dtype)) throw bad(file, `tensor ${name} has a dtype other than F32, F16, BF16`, dtype);
      // Copied, since a view would have to be aligned.
      const own = bytes.slice(dataStart + begin, dataStart + end).buffer;
      const values = dtype === "F32" ? new Float32Array(own) : new Float32Array(own.byteLength / 2);
      if (dtype !== "F32") widen(new Uint16Array(own), dtype, values);
      const wrong = firstNonFinite(values);
      if (wrong >= 0) throw bad(file, `tensor ${name} holds a number that is none, at ${wrong}`, values[wrong]!);
      return values;
    },
    close: async () => {},
  };
}

/** Encodes the file's start, up to the data, for tensors stored in the given order. */
export function encodeHeader(
  shapes: ReadonlyMap<string, readonly number[]>,
  dtype: FloatDtype,
  metadata: Readonly<Record<string, string>>,
): { readonly bytes: Uint8Array<ArrayBuffer>; readonly header: SafetensorsHeader } {
  const tensors = new Map<string, TensorRange>();
  let at = 0;
  for (const [name, shape] of shapes) {
    const end = at + elementCount(shape) * DTYPE_BYTES[dtype];
    tensors.set(name, { dtype, shape, begin: at, end });
    at = end;
  }
  const entries = [...tensors].map(([name, range]) => [
    name,
    { dtype, shape: range.shape, data_offsets: [range.begin, range.end] },
  ]);
  const json = new TextEncoder().encode(JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }));
  const length = Math.ceil(json.length / 8) * 8; // aligns the data for readers that map the file
  const bytes = new Uint8Array(8 + length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(json, 8);
  return { bytes, header: { tensors, metadata, dataStart: bytes.length } };
}

/** Number of elements in a shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, length) => product * length, 1);
}

/** Whether a tensor of this dtype can be read as weights. */
export function isFloatDtype(dtype: Dtype): dtype is FloatDtype {
  return dtype === "F32" || dtype === "F16" || dtype === "BF16";
}

/** Bits of every fp16 value as fp32, built on first use (256 KiB). */
let halves: Uint32Array | undefined;

function halfTable(): Uint32Array {
  if (halves) return halves;
  halves = new Uint32Array(65_536);
  const float = new Float32Array(1);
  const bits = new Uint32Array(float.buffer);
  for (let half = 0; half < 65_536; half++) {
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    if (exponent === 0) float[0] = fraction * 2 ** -24;
    else if (exponent === 31) float[0] = fraction === 0 ? Infinity : NaN;
    else float[0] = (1 + fraction / 1024) * 2 ** (exponent - 15);
    halves[half] = (bits[0]! | ((half & 0x8000) << 16)) >>> 0;
  }
  return halves;
}

/** Widens 16-bit floats into `out`, which must have as many elements. */
export function widen(from: Uint16Array, dtype: "F16" | "BF16", out: Float32Array): void {
  const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
  if (dtype === "BF16") {
    for (let i = 0; i < from.length; i++) bits[i] = from[i]! << 16;
  } else {
    const table = halfTable();
    for (let i = 0; i < from.length; i++) bits[i] = table[from[i]!]!;
  }
}

/** Rounds fp32 to bf16, to nearest, ties to even; numbers beyond bf16's range become infinite, NaN stays NaN. */
export function narrow(from: Float32Array, out: Uint16Array): void {
  const bits = new Uint32Array(from.buffer, from.byteOffset, from.length);
  for (let i = 0; i < from.length; i++) {
    const word = bits[i]!;
    const noNumber = (word & 0x7fffffff) > 0x7f800000;
    out[i] = noNumber ? (word >>> 16) | 0x40 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
}

/** Index of the first NaN or infinite element, or -1. */
export function firstNonFinite(values: Float32Array): number {
  for (let i = 0; i < values.length; i++) if (values[i]! - values[i]! !== 0) return i;
  return -1;
}

/**
 * Checks that the source has exactly the weights a model needs, with the right shapes; it may also have buffers that
 * are recomputed.
 */
export function checkWeights(
  source: Pick<WeightSource, "names" | "info">,
  shapes: ReadonlyMap<string, readonly number[]>,
  file: string,
): void {
  const present = new Set(source.names);
  for (const [name, shape] of shapes) {
    if (!present.has(name)) throw bad(file, "a weight that config.json asks for is missing", name);
    const info = source.info(name);
    if (!isFloatDtype(info.dtype)) {
      throw bad(file, `tensor ${name} has a dtype other than F32, F16, BF16`, info.dtype);
    }
    if (info.shape.length !== shape.length || info.shape.some((length, i) => length !== shape[i])) {
      throw bad(file, `tensor ${name} should have shape [${shape}] by config.json`, `[${info.shape}]`);
    }
  }
  // A tied head may be stored twice, and old files contain rotary frequencies; any other extra tensor would be silently
  // ignored.
  const extra = source.names.find(
    (name) => !shapes.has(name) && name !== "lm_head.weight" && !name.endsWith(".rotary_emb.inv_freq"),
  );
  if (extra !== undefined) throw bad(file, "it holds a weight that this architecture does not have", extra);
}

function bad(file: string, what: string, value?: string | number, cause?: unknown): ModelLoadError {
  const remedy = "check that config.json and the weights belong together, and fetch the file again";
  return new ModelLoadError({ what: `${file}: ${what}`, value, remedy, cause });
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}
