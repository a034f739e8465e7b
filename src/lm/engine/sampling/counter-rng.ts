// Counter-based random numbers: the n-th number of a key does not depend on those before it, so that batching, caching and
// resuming cannot change what is sampled.

/** A number in [0, 1) for each position. */
export type Uniform = (position: number) => number;

/** The numbers of a key such as [seed, "rollout", step, episode]. */
export function uniformOf(key: readonly (string | number)[]): Uniform {
  return uniformOfSeeds(seedsOf(key));
}

/** The numbers of a key's two 32-bit seeds. */
export function uniformOfSeeds([seedA, seedB]: readonly [number, number]): Uniform {
  return (position) => {
    const word = mix(mix((position + seedA) | 0) ^ seedB);
    return (word >>> 8) / 2 ** 24; // 24 bits, the precision of a float: kernels compare in single precision
  };
}

/** A key hashed to two 32-bit seeds. */
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
