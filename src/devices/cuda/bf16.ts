// bf16 numbers on the host: the upper half of a float, to nearest, ties to even.

/** Floats rounded to bf16, as bits. */
export function floatsToBf16(floats: Float32Array): Uint16Array {
  const bits = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  return Uint16Array.from(bits, (word) =>
    (word & 0x7fffffff) > 0x7f800000 ? 0x7fff : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16,
  );
}

/** bf16 bits as floats. */
export function bf16ToFloats(halves: Uint16Array): Float32Array<ArrayBuffer> {
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}
