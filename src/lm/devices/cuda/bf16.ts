// bf16 on the host: the upper half of a float, rounded to nearest, ties to even. Uses plain loops, because a typed
// array's `from` first collects an iterable into a JavaScript array: gigabytes of heap for a large embedding.

/** Rounds floats to bf16; returns the bits. */
export function floatsToBf16(floats: Float32Array): Uint16Array {
  const bits = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  const halves = new Uint16Array(bits.length);
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i]!;
    halves[i] = (word & 0x7fffffff) > 0x7f800000 ? 0x7fff : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return halves;
}

/** Converts bf16 bits to floats. */
export function bf16ToFloats(halves: Uint16Array): Float32Array<ArrayBuffer> {
  const bits = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) bits[i] = halves[i]! << 16;
  return new Float32Array(bits.buffer);
}
