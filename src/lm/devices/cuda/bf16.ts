// bf16 on the host: the upper half of a float, rounded to nearest, ties to even. Plain loops, because `from` of a typed array
// first collects an iterable into a JavaScript array: gigabytes of heap for the embedding of a large vocabulary.

/** Floats rounded to bf16, as bits. */
export function floatsToBf16(floats: Float32Array): Uint16Array {
  const bits = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  const halves = new Uint16Array(bits.length);
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i]!;
    halves[i] = (word & 0x7fffffff) > 0x7f800000 ? 0x7fff : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return halves;
}

/** bf16 bits as floats. */
export function bf16ToFloats(halves: Uint16Array): Float32Array<ArrayBuffer> {
  const bits = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) bits[i] = halves[i]! << 16;
  return new Float32Array(bits.buffer);
}
