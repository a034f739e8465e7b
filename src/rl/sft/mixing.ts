// Mixes two sources of training data: items that are repeated epoch by epoch, and a stream of others.
import type { Datum } from "../../lm/engine/index.ts";
import { random } from "../../random.ts";

export interface MixOptions {
  /** Share of the data that are items. */
  readonly share: number;
  readonly seed: number | string;
}

/**
 * Draws at random from two sources: `share` of the data are items, in a new random order each epoch and encoded on first
 * use (null leaves an item out); the rest is from `others`. Ends with `others`, or, without it, if no item can be encoded.
 */
export async function* mixed<T>(
  others: AsyncGenerator<Datum> | undefined,
  items: readonly T[],
  encode: (item: T) => Datum | null | Promise<Datum | null>,
  { share, seed }: MixOptions,
): AsyncGenerator<Datum, void> {
  const draw = random("warm-up", seed); // the name is part of the seed: another would change all results
  const known = new Map<T, Datum>();
  let usable = items;
  let left: T[] = [];
  try {
    for (;;) {
      if (others && (usable.length === 0 || !draw.chance(share))) {
        const { value, done } = await others.next();
        if (done) return;
        yield value;
        continue;
      }
      if (usable.length === 0) return;
      if (left.length === 0) left = draw.shuffle(usable);
      const item = left.pop()!;
      const datum = known.get(item) ?? (await encode(item));
      if (datum) yield datum;
      if (datum) known.set(item, datum);
      else usable = usable.filter((other) => other !== item);
    }
  } finally {
    await others?.return(undefined);
  }
}
