// Dequantizes GGUF blocks, bit for bit like Python's `gguf` package: every product below is exact in a double, so that
// storing the result as a 32-bit float is the only rounding.
import { GGML_TYPES, type GgmlType } from "./gguf-types.ts";
import { widen } from "./safetensors.ts";

/** The value of every 16-bit float; built on first use (256 KiB). */
let halves: Float32Array | undefined;

function halfValues(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(65_536);
  widen(
    Uint16Array.from(halves, (_, bits) => bits),
    "F16",
    halves,
  );
  return halves;
}

/** Dequantizes whole blocks into `out`, which must have as many elements. */
export function dequantize(bytes: Uint8Array, type: GgmlType, out: Float32Array): void {
  switch (type) {
    case "f32":
      new Uint8Array(out.buffer, out.byteOffset, out.byteLength).set(bytes);
      return;
    case "f16":
    case "bf16":
      widen(words(bytes), type === "f16" ? "F16" : "BF16", out);
      return;
    default:
      BLOCKS[type](bytes, out, halfValues());
  }
}

/** Dequantizes whole blocks into a new array. */
export function dequantized(bytes: Uint8Array, type: GgmlType): Float32Array<ArrayBuffer> {
  const { block, bytes: size } = GGML_TYPES[type];
  const out = new Float32Array((bytes.length / size) * block);
  dequantize(bytes, type, out);
  return out;
}

function words(bytes: Uint8Array): Uint16Array {
  const aligned = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  return new Uint16Array(aligned.buffer, aligned.byteOffset, aligned.length / 2);
}

type Blocks = (bytes: Uint8Array, out: Float32Array, half: Float32Array) => void;

/**
 * In a block, the first 16-bit float is the scale and the second, if any, the offset. The low half of a byte comes
 * first.
 */
const BLOCKS: Readonly<Record<Exclude<GgmlType, "f32" | "f16" | "bf16">, Blocks>> = {
  q8_0(bytes, out, half) {
    for (let from = 0, at = 0; at < out.length; from += 34, at += 32) {
      const scale = half[bytes[from]! | (bytes[from + 1]! << 8)]!;
      for (let i = 0; i < 32; i++) out[at + i] = ((bytes[from + 2 + i]! << 24) >> 24) * scale;
    }
  },
  q4_0(bytes, out, half) {
    for (let from = 0, at = 0; at < out.length; from += 18, at += 32) {
      const scale = half[bytes[from]! | (bytes[from + 1]! << 8)]!;
      for (let i = 0; i < 16; i++) {
        const pair = bytes[from + 2 + i]!;
        out[at + i] = scale * ((pair & 15) - 8);
        out[at + 16 + i] = scale * ((pair >> 4) - 8);
      }
    }
  },
  q4_1(bytes, out, half) {
    for (let from = 0, at = 0; at < out.length; from += 20, at += 32) {
      const scale = half[bytes[from]! | (bytes[from + 1]! << 8)]!;
      const offset = half[bytes[from + 2]! | (bytes[from + 3]! << 8)]!;
      for (let i = 0; i < 16; i++) {
        const pair = bytes[from + 4 + i]!;
        out[at + i] = scale * (pair & 15) + offset;
        out[at + 16 + i] = scale * (pair >> 4) + offset;
      }
    }
  },
  q5_0(bytes, out, half) {
    for (let from = 0, at = 0; at < out.length; from += 22, at += 32) {
      const scale = half[bytes[from]! | (bytes[from + 1]! << 8)]!;
      const high = fifthBits(bytes, from + 2);
      for (let i = 0; i < 16; i++) {
        const pair = bytes[from + 6 + i]!;
        out[at + i] = scale * (((pair & 15) | (((high >>> i) & 1) << 4)) - 16);
        out[at + 16 + i] = scale * (((pair >> 4) | (((high >>> (16 + i)) & 1) << 4)) - 16);
      }
    }
  },
  q5_1(bytes, out, half) {
    for (let from = 0, at = 0; at < out.length; from += 24, at += 32) {
      const scale = half[bytes[from]! | (bytes[from + 1]! << 8)]!;
      const offset = half[bytes[from + 2]! | (bytes[from + 3]! << 8)]!;
      const high = fifthBits(bytes, from + 4);
      for (let i = 0; i < 16; i++) {
        const pair = bytes[from + 8 + i]!;
        out[at + i] = scale * ((pair & 15) | (((high >>> i) & 1) << 4)) + offset;
        out[at + 16 + i] = scale * ((pair >> 4) | (((high >>> (16 + i)) & 1) << 4)) + offset;
      }
    }
  },
  // 8 groups of 32 numbers, each with a 6-bit scale and a 6-bit offset; two groups share 32 bytes.
  q4_k(bytes, out, half) {
    for (let from = 0, at = 0; at < out.length; from += 144, at += 256) {
      const d = half[bytes[from]! | (bytes[from + 1]! << 8)]!;
      const dmin = half[bytes[from + 2]! | (bytes[from + 3]! << 8)]!;
      for (let group = 0; group < 8; group += 2) {
        const low = d * groupScale(bytes, from + 4, group);
        const lowOffset = dmin * groupOffset(bytes, from + 4, group);
        const high = d * groupScale(bytes, from + 4, group + 1);
        const highOffset = dmin * groupOffset(bytes, from + 4, group + 1);
        const [quants, to] = [from + 16 + 16 * group, at + 32 * group];
        for (let i = 0; i < 32; i++) {
          const pair = bytes[quants + i]!;
          out[to + i] = low * (pair & 15) - lowOffset;
          out[to + 32 + i] = high * (pair >> 4) - highOffset;
        }
      }
    }
  },
  // Like q4_k, with 32 more bytes: their bit g is the fifth bit of group g.
  q5_k(bytes, out, half) {
    for (let from = 0, at = 0; at < out.length; from += 176, at += 256) {
      const d = half[bytes[from]! | (bytes[from + 1]! << 8)]!;
      const dmin = half[bytes[from + 2]! | (bytes[from + 3]! << 8)]!;
      for (let group = 0; group < 8; group += 2) {
        const low = d * groupScale(bytes, from + 4, group);
        const lowOffset = dmin * groupOffset(bytes, from + 4, group);
        const high = d * groupScale(bytes, from + 4, group + 1);
        const highOffset = dmin * groupOffset(bytes, from + 4, group + 1);
        const [quants, to] = [from + 48 + 16 * group, at + 32 * group];
        for (let i = 0; i < 32; i++) {
          const pair = bytes[quants + i]!;
          const fifth = bytes[from + 16 + i]! >> group;
          out[to + i] = low * ((pair & 15) | ((fifth & 1) << 4)) - lowOffset;
          out[to + 32 + i] = high * ((pair >> 4) | ((fifth & 2) << 3)) - highOffset;
        }
      }
    }
  },
  // Two halves of 128 numbers; the four low bits and the two high bits are stored separately, and every 16 numbers have
  // a signed scale.
  q6_k(bytes, out, half) {
    for (let from = 0, at = 0; at < out.length; from += 210, at += 256) {
      const d = half[bytes[from + 208]! | (bytes[from + 209]! << 8)]!;
      for (let part = 0; part < 2; part++) {
        const [low, high, scales] = [from + 64 * part, from + 128 + 32 * part, from + 192 + 8 * part];
        const to = at + 128 * part;
        for (let i = 0; i < 32; i++) {
          const scale = scales + (i >> 4);
          const [first, second, two] = [bytes[low + i]!, bytes[low + 32 + i]!, bytes[high + i]!];
          out[to + i] = d * signed(bytes, scale) * (((first & 15) | ((two & 3) << 4)) - 32);
          out[to + 32 + i] = d * signed(bytes, scale + 2) * (((second & 15) | ((two & 12) << 2)) - 32);
          out[to + 64 + i] = d * signed(bytes, scale + 4) * (((first >> 4) | (two & 48)) - 32);
          out[to + 96 + i] = d * signed(bytes, scale + 6) * (((second >> 4) | ((two & 192) >> 2)) - 32);
        }
      }
    }
  },
};

function fifthBits(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

function signed(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) >> 24;
}

// 12 bytes hold eight scales and eight offsets of 6 bits; the high bits of the last four groups are in the first eight
// bytes.
function groupScale(bytes: Uint8Array, at: number, group: number): number {
  if (group < 4) return bytes[at + group]! & 63;
  return (bytes[at + group + 4]! & 15) | ((bytes[at + group - 4]! >> 6) << 4);
}

function groupOffset(bytes: Uint8Array, at: number, group: number): number {
  if (group < 4) return bytes[at + group + 4]! & 63;
  return (bytes[at + group + 4]! >> 4) | ((bytes[at + group]! >> 6) << 4);
}
