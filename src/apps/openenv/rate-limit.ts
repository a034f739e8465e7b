// Rate limiting: one token bucket per client.

interface Bucket {
  tokens: number;
  at: number;
}

const MAX_CLIENTS = 10_000; // least recently used ones are evicted first

/** Limits messages per client; a rate of 0 means no limit. */
export class RateLimit {
  readonly #perSecond: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Takes a token and returns the milliseconds to wait for it; 0 if one was available. */
  take(client: string, now = performance.now()): number {
    if (this.#perSecond === 0) return 0;
    const bucket = this.#buckets.get(client) ?? { tokens: this.#perSecond, at: now };
    this.#buckets.delete(client);
    this.#buckets.set(client, bucket);
    if (this.#buckets.size > MAX_CLIENTS) this.#buckets.delete(this.#buckets.keys().next().value!);
    bucket.tokens = Math.min(this.#perSecond, bucket.tokens + ((now - bucket.at) / 1000) * this.#perSecond) - 1;
    bucket.at = now;
    return bucket.tokens >= 0 ? 0 : (-bucket.tokens / this.#perSecond) * 1000;
  }

  /** Takes a token if one is available. */
  tryTake(client: string, now = performance.now()): boolean {
    if (this.take(client, now) === 0) return true;
    this.giveBack(client);
    return false;
  }

  /** Returns an unused token. */
  giveBack(client: string): void {
    const bucket = this.#buckets.get(client);
    if (bucket) bucket.tokens++;
  }
}
