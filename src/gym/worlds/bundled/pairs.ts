// Shuffles hand-written groups of rows into the mixed order of a table that grew over time.
import { random } from "../../../random.ts";

/** Turns `{fiction: [a, b], poetry: [c]}` into rows `[a, fiction]`, `[b, fiction]`, `[c, poetry]`, shuffled. */
export function pairsOf(groups: Readonly<Record<string, readonly string[]>>): (readonly [string, string])[] {
  const pairs = Object.entries(groups).flatMap(([group, names]) => names.map((name) => [name, group] as const));
  return random("pairs", ...Object.keys(groups)).shuffle(pairs);
}
