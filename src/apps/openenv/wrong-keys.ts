// Wrong API keys per address: after a few, further wrong keys get 429, with exponential backoff.

/** Wrong keys an address may send before it has to wait: a typing error, a trainer with an old key. */
export const WRONG_KEYS = 10;

const MAX_WAIT_MS = 60_000; // also how long a series is remembered
const MAX_ADDRESSES = 10_000; // least recently used ones are evicted first

interface Series {
  count: number;
  /** Until when further wrong keys are refused with 429. */
  until: number;
}

/** Counts wrong keys per address. */
export class WrongKeys {
  readonly #series = new Map<string, Series>();

  /** Milliseconds an address has to wait; 0 if it may try. */
  waitOf(address: string, now: number): number {
    return Math.max(0, (this.#series.get(address)?.until ?? 0) - now);
  }

  /** Records a wrong key. */
  miss(address: string, now: number): void {
    const known = this.#series.get(address);
    const count = known && now < known.until + MAX_WAIT_MS ? known.count + 1 : 1;
    const wait = count < WRONG_KEYS ? 0 : Math.min(1_000 * 2 ** (count - WRONG_KEYS), MAX_WAIT_MS);
    this.#series.delete(address);
    this.#series.set(address, { count, until: now + wait });
    if (this.#series.size > MAX_ADDRESSES) this.#series.delete(this.#series.keys().next().value!);
  }
}
