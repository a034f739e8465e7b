// Tests hostile GGUF headers: each is rejected with its fault, and no damage makes the reader hang or crash.
import { expect, test } from "vitest";
import { ModelLoadError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { type GgufValue, ggufHeader } from "./gguf.ts";
import { MAX_GGUF_LIST_LENGTH, parseGgufHeader } from "./gguf-header.ts";

const FACTS = new Map<string, GgufValue>([
  ["general.architecture", { text: "qwen3" }],
  ["a.list", { texts: ["x", "ÿ"] }],
  ["an.int", { ints: [1, -2] }],
  ["a.flag", { bool: true }],
  ["a.float", { f32: 0.5 }],
]);
const TENSORS = [
  { name: "a.weight", shape: [3, 32], type: "q8_0" },
  { name: "b.weight", shape: [5], type: "f32" },
] as const;
const DATA = 128 + 20; // 3 blocks of 34 bytes, padded, and 5 floats

function parse(bytes: Uint8Array, size = bytes.length + DATA) {
  return parseGgufHeader(bytes, "x.gguf", size);
}

/** Writes a header piece by piece: numbers are [value, bytes], and texts are preceded by their length. */
function bytesOf(...parts: (string | readonly [number | bigint, 1 | 4 | 8] | Uint8Array)[]): Uint8Array {
  const buffers = parts.map((part) => {
    if (part instanceof Uint8Array) return Buffer.from(part);
    if (typeof part === "string") return Buffer.concat([bytesOf([part.length, 8]), Buffer.from(part, "latin1")]);
    const [value, bytes] = part;
    const buffer = Buffer.alloc(bytes);
    if (bytes === 8) buffer.writeBigUInt64LE(BigInt(value));
    else buffer.writeUIntLE(Number(value), 0, bytes);
    return buffer;
  });
  return Buffer.concat(buffers);
}
const START = Buffer.from("GGUF\x03\0\0\0", "latin1");
const u32 = (value: number) => [value, 4] as const;
const u64 = (value: number | bigint) => [value, 8] as const;
const fact = (...parts: Parameters<typeof bytesOf>) => bytesOf(START, u64(0), u64(1), ...parts);
const tensors = (count: number, ...parts: Parameters<typeof bytesOf>) =>
  bytesOf(START, u64(count), u64(0), ...parts, Buffer.alloc(64));

test("a written header is read back, with the offsets of the tensors", () => {
  const header = ggufHeader(FACTS, TENSORS);
  const { facts, tensors } = parse(header)!;
  expect(Object.fromEntries(facts)).toEqual({
    "general.architecture": "qwen3",
    "a.list": ["x", "ÿ"],
    "an.int": [1, -2],
    "a.flag": true,
    "a.float": 0.5,
  });
  expect(tensors.get("a.weight")).toEqual({ ...TENSORS[0], begin: header.length, bytes: 102 });
  expect(tensors.get("b.weight")).toEqual({ ...TENSORS[1], begin: header.length + 128, bytes: 20 });
});

test("bytes that end within the header ask for more; a file that ends there is refused", () => {
  const header = ggufHeader(FACTS, TENSORS);
  const last = header.length - 32; // the padding is optional
  for (let length = 0; length < last; length++) {
    expect(parse(header.subarray(0, length), header.length + DATA), `${length} bytes`).toBeUndefined();
    expect(() => parse(header.subarray(0, length), length), `${length} bytes`).toThrow(ModelLoadError);
  }
});

test.each<[string, Uint8Array, RegExp]>([
  ["another magic", Buffer.from("GGML\x03\0\0\0"), /not a GGUF file/],
  ["version 1", Buffer.from("GGUF\x01\0\0\0"), /version is not 2 or 3: 1/],
  ["big-endian order", Buffer.from("GGUF\0\0\0\x03"), /big-endian/],
  ["too many tensors", bytesOf(START, u64(2 ** 40)), /claims more than 100000 tensors/],
  ["too many facts", bytesOf(START, u64(0), u64(10_001)), /claims more than 10000 facts: 10001/],
  ["a count beyond all numbers", bytesOf(START, u64(2n ** 64n - 1n)), /number of tensors is too large/],
  ["a long key", fact(u64(65_536)), /a key has more than 65535 bytes/],
  ["a key that is not UTF-8", fact("\xff", u32(4), u32(1)), /a key is not UTF-8/],
  ["a text past the end", fact("k", u32(8), u64(1_000_000)), /the file ends within its header/],
  ["an endless text", fact("k", u32(8), u64(2 ** 52)), /k has more than/],
  ["an unknown type", fact("k", u32(13), u32(1)), /k has an unknown type: 13/],
  ["a boolean of 2", fact("k", u32(7), [2, 1]), /k is neither true nor false: 2/],
  ["a whole number beyond 2^53", fact("k", u32(10), u64(2n ** 60n)), /k is too large a number/],
  ["a list of lists", fact("k", u32(9), u32(9), u64(1), u32(9), u64(1)), /a list of lists is not read: k/],
  ["a list of an unknown type", fact("k", u32(9), u32(99), u64(1), u32(0)), /k has an unknown type: 99/],
  ["an endless list", fact("k", u32(9), u32(0), u64(MAX_GGUF_LIST_LENGTH + 1)), /k has more than 4000000 elements/],
  ["a list past the end", fact("k", u32(9), u32(8), u64(1_000)), /the file ends within its header/],
  ["a key twice", bytesOf(START, u64(0), u64(2), "k", u32(4), u32(1), "k", u32(4), u32(2)), /it has a key twice: k/],
  ["an alignment of 0", fact("general.alignment", u32(4), u32(0)), /alignment should be a power of two/],
  ["an alignment of 48", fact("general.alignment", u32(4), u32(48)), /alignment should be a power of two/],
  ["an alignment that is a text", fact("general.alignment", u32(8), "32"), /alignment should be a power of two/],
  ["a tensor without dimensions", tensors(1, "t", u32(0)), /t should have 1 to 4 dimensions: 0/],
  ["a tensor of many dimensions", tensors(1, "t", u32(2 ** 31)), /t should have 1 to 4 dimensions/],
  ["a long name", tensors(1, u64(257)), /tensor's name has more than 256 bytes/],
  [
    "a product beyond all numbers",
    tensors(1, "t", u32(2), u64(2 ** 40), u64(2 ** 40), u32(0), u64(0)),
    /t is too large/,
  ],
  [
    "a type by its name",
    tensors(1, "t", u32(1), u64(4), u32(11), u64(0)),
    /a type that is not read: Q3_K; use a file of F32, /,
  ],
  ["a type without one", tensors(1, "t", u32(1), u64(4), u32(99), u64(0)), /a type that is not read: number 99/],
  ["half a block", tensors(1, "t", u32(1), u64(48), u32(8), u64(0)), /not whole blocks of 32/],
  ["an offset into another tensor", tensors(1, "t", u32(1), u64(4), u32(0), u64(32)), /t should begin at 0: 32/],
  ["numbers past the end", tensors(1, "t", u32(1), u64(4_000), u32(0), u64(0)), /t ends after the end of the file/],
  [
    "a tensor twice",
    tensors(2, "t", u32(1), u64(1), u32(0), u64(0), "t", u32(1), u64(1), u32(0), u64(32)),
    /it has a tensor twice: t/,
  ],
])("%s is refused", (_, bytes, message) => {
  expect(() => parse(bytes)).toThrow(ModelLoadError);
  expect(() => parse(bytes)).toThrow(message);
  expect(() => parse(bytes)).toThrow("x.gguf");
});

test("the file's own alignment is used, and 64-bit numbers are read", () => {
  const header = bytesOf(
    ...[START, u64(1), u64(2), "general.alignment", u32(4), u32(64), "n", u32(10), u64(5_000_000_000)],
    ...["t", u32(1), u64(1), u32(0), u64(0)],
  );
  const { facts, tensors } = parse(header, 1_000)!;
  expect(facts.get("n")).toBe(5_000_000_000);
  expect(tensors.get("t")!.begin % 64).toBe(0);
});

test("a damaged header is read, needs more bytes or is refused; nothing else happens", () => {
  const good = ggufHeader(FACTS, TENSORS);
  const source = random("gguf");
  for (let i = 0; i < 500; i++) {
    const bad = good.slice();
    for (let n = source.int(1, 8); n > 0; n--) bad[source.int(0, bad.length - 1)] = source.int(0, 255);
    try {
      parse(bad);
    } catch (error) {
      expect(error).toBeInstanceOf(ModelLoadError);
    }
  }
});
