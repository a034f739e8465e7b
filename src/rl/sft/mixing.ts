// Two sources of training data as one: items that are gone through again and again, and others in between.
import type { Datum } from "../../lm/engine/index.ts";
import { random } from "../../random.ts";

export interface MixOptions {
  /** Of the data that come from the items. */
  readonly share: number;
  readonly seed: number | string;
}

/**
 * Items in a new random order each time round, encoded when first met, and in between what the other source gives. Items
 * whose encoding is null are left out. Ends with the other source, or when no item can be encoded and there is no other.
 */
export async function* mixed<T>(
  others: AsyncGenerator<Datum> | undefined,
  items: readonly T[],
  encode: (item: T) => Datum | null | Promise<Datum | null>,
  { share, seed }: MixOptions,
): AsyncGenerator<Datum, void> {
  const draw = random("warm-up", seed);
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
