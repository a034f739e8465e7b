// Wrong keys, counted by address: after some, wrong keys from there get 429 for a while, each time twice as long.

/** Wrong keys an address may show before it is told to wait: a person who mistypes, a trainer with an old key. */
export const WRONG_KEYS = 10;

const MAX_WAIT_MS = 60_000; // also how long a series is remembered after its end
const MAX_ADDRESSES = 10_000; // remembered; the longest unheard are forgotten first

interface Series {
  count: number;
  /** Until when further wrong keys are refused with 429. */
  until: number;
}

/** Remembers who showed wrong keys. */
export class WrongKeys {
  readonly #series = new Map<string, Series>();

  /** Milliseconds an address has to wait; 0 when it may try. */
  waitOf(address: string, now: number): number {
    return Math.max(0, (this.#series.get(address)?.until ?? 0) - now);
  }

  /** Books a wrong key. */
  miss(address: string, now: number): void {
    const known = this.#series.get(address);
    const count = known && now < known.until + MAX_WAIT_MS ? known.count + 1 : 1;
    const wait = count < WRONG_KEYS ? 0 : Math.min(1_000 * 2 ** (count - WRONG_KEYS), MAX_WAIT_MS);
    this.#series.delete(address);
    this.#series.set(address, { count, until: now + wait });
    if (this.#series.size > MAX_ADDRESSES) this.#series.delete(this.#series.keys().next().value!);
  }
}
