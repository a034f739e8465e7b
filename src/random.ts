// Seeded random numbers: the same key gives the same numbers on every machine, and streams of different keys are independent.

/** A stream of random numbers made from a key such as `random("practice", 7)`. */
export interface Random {
  /** Uniform in [0, 1), 32 bits of resolution. */
  next(): number;
  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number;
  /** One element, each equally likely. */
  pick<T>(items: readonly T[]): T;
  /** One element, chosen in proportion to its weight. */
  pickWeighted<T>(items: readonly (readonly [T, number])[]): T;
  /** `n` different elements, in random order. */
  sample<T>(items: readonly T[], n: number): T[];
  /** A shuffled copy. */
  shuffle<T>(items: readonly T[]): T[];
  chance(probability: number): boolean;
  /** Normally distributed (Box–Muller). */
  normal(mean: number, deviation: number): number;
  /** An independent stream under a sub-key, which does not advance this one. */
  fork(...key: readonly (string | number)[]): Random;
}

/**
 * Makes a stream from a key; numbers and strings may be mixed.
 *
 * @example
 * const rng = random(42, "questions");
 * rng.int(1, 6); // the same for the same key, on every machine
 */
export function random(...key: readonly (string | number)[]): Random {
  const state = seedState(key);

  // xoshiro128**: 128 bits of state, passes the usual test batteries, needs only 32-bit integer arithmetic.
  function word(): number {
    const result = Math.imul(rotate(Math.imul(state[1]!, 5), 7), 9) >>> 0;
    const t = state[1]! << 9;
    state[2]! ^= state[0]!;
    state[3]! ^= state[1]!;
    state[1]! ^= state[2]!;
    state[0]! ^= state[3]!;
    state[2]! ^= t;
    state[3] = rotate(state[3]!, 11);
    return result;
  }

  const self: Random = {
    next: () => word() / 2 ** 32,
    int: (low, high) => low + Math.floor(self.next() * (high - low + 1)),
    pick: (items) => {
      if (items.length === 0) throw new RangeError("random.pick: the list is empty");
      return items[Math.floor(self.next() * items.length)]!;
    },
    pickWeighted: (items) => {
      let left = self.next() * items.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [item, weight] of items) {
        left -= weight;
        if (left < 0) return item;
      }
      return items[items.length - 1]![0];
    },
    sample: (items, n) => self.shuffle(items).slice(0, n),
    shuffle: (items) => {
      const copy = [...items];
      for (let i = copy.length - 1; i > 0; i--) {
        const j = self.int(0, i);
        [copy[i], copy[j]] = [copy[j]!, copy[i]!];
      }
      return copy;
    },
    chance: (probability) => self.next() < probability,
    normal: (mean, deviation) => {
      const radius = Math.sqrt(-2 * Math.log(1 - self.next()));
      return mean + deviation * radius * Math.cos(2 * Math.PI * self.next());
    },
    fork: (...sub) => random(...key, "/", ...sub),
  };
  return self;
}

function rotate(x: number, k: number): number {
  return (x << k) | (x >>> (32 - k));
}

/** Four words from the key's text: 32-bit FNV-1a, then a splitmix-style finalizer for each word. */
function seedState(key: readonly (string | number)[]): Uint32Array {
  const text = key.map((part) => `${typeof part === "number" ? "#" : "$"}${part}`).join("\u0000");
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return Uint32Array.from({ length: 4 }, () => {
    hash = (hash + 0x9e3779b9) | 0;
    let z = hash ^ (hash >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return z ^ (z >>> 15);
  });
}
