// The seed of a sample on a server, which takes one number: a hash of our key.
import { seedsOf } from "../sampling/counter-rng.ts";

/** A whole number below 2³¹: no server has a smaller limit. */
export function seedOf(key: readonly (string | number)[]): number {
  const [a, b] = seedsOf(key);
  return (a ^ Math.imul(b, 0x9e3779b1)) & 0x7fffffff;
}
