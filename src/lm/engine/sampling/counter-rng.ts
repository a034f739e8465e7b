// Counter-based random numbers: the n-th number of a key does not depend on earlier ones, so batching, caching and
// resuming cannot change what is sampled.

/** Returns a number in [0, 1) for a position. */
export type Uniform = (position: number) => number;

/** The random numbers of a key such as [seed, "rollout", step, episode]. */
export function uniformOf(key: readonly (string | number)[]): Uniform {
  return uniformOfSeeds(seedsOf(key));
}

/** The random numbers of two 32-bit seeds. */
export function uniformOfSeeds([seedA, seedB]: readonly [number, number]): Uniform {
  return (position) => {
    const word = mix(mix((position + seedA) | 0) ^ seedB);
    return (word >>> 8) / 2 ** 24; // 24 bits, a float's precision, since kernels compare in single precision
  };
}

/** Hashes a key to two 32-bit seeds. */
export function seedsOf(key: readonly (string | number)[]): readonly [number, number] {
  let [a, b] = [0x811c9dc5, 0x2f0b4c47];
  const text = key.map((part) => `${typeof part === "number" ? "#" : "$"}${part}`).join("\u0000");
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b) ^ (b >>> 13);
  }
  return [mix(a), mix(b ^ a)];
}

/** A 32-bit mixer: every input bit affects every output bit (murmur3's finalizer with better constants). */
function mix(x: number): number {
  let h = x | 0;
  h = Math.imul(h ^ (h >>> 16), 0x21f0aaad);
  h = Math.imul(h ^ (h >>> 15), 0x735a2d97);
  return h ^ (h >>> 15);
}
