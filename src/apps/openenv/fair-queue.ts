// Fair scheduling: one queue per client, ordered by the thread time each client used recently.

/** Half-life of used time in milliseconds: long enough to detect heavy clients, short enough to forgive. */
const HALF_LIFE_MS = 10_000;

const MAX_CLIENTS = 10_000; // least recently charged ones are evicted first
const MAX_HALF_LIVES = 500; // then all sums are rescaled, long before a double overflows

/** Thread time per client with exponential decay. */
export class Usage {
  // Instead of decaying every sum, later charges weigh more; the sums stay comparable.
  readonly #used = new Map<string, number>();
  #epoch = 0;

  /** Adds time that a client has used. */
  charge(client: string, milliseconds: number, now = performance.now()): void {
    if (now - this.#epoch > MAX_HALF_LIVES * HALF_LIFE_MS) this.#rebase(now);
    const used = this.of(client) + milliseconds * 2 ** ((now - this.#epoch) / HALF_LIFE_MS);
    this.#used.delete(client);
    this.#used.set(client, used);
    if (this.#used.size > MAX_CLIENTS) this.#used.delete(this.#used.keys().next().value!);
  }

  /** A client's usage, in a unit that is only comparable between clients. */
  of(client: string): number {
    return this.#used.get(client) ?? 0;
  }

  #rebase(now: number): void {
    const scale = 2 ** ((this.#epoch - now) / HALF_LIFE_MS);
    for (const [client, used] of this.#used) {
      if (used * scale < 1e-9) this.#used.delete(client);
      else this.#used.set(client, used * scale);
    }
    this.#epoch = now;
  }
}

/** Queued work of several clients: FIFO within a client; between clients, least usage first. */
export class FairQueue<T> {
  readonly #usage: Usage;
  readonly #queues = new Map<string, T[]>();

  constructor(usage: Usage) {
    this.#usage = usage;
  }

  /** Number of waiting clients. */
  get clients(): number {
    return this.#queues.size;
  }

  get size(): number {
    let size = 0;
    for (const queue of this.#queues.values()) size += queue.length;
    return size;
  }

  has(client: string): boolean {
    return this.#queues.has(client);
  }

  add(client: string, item: T): void {
    const queue = this.#queues.get(client);
    if (queue) queue.push(item);
    else this.#queues.set(client, [item]);
  }

  /** Puts a dequeued item back in front of its client's later items. */
  putBack(client: string, item: T, comesAfter: (other: T) => boolean): void {
    const queue = this.#queues.get(client) ?? [];
    const at = queue.findIndex(comesAfter);
    queue.splice(at < 0 ? queue.length : at, 0, item);
    this.#queues.set(client, queue);
  }

  /** Dequeues the next item; clients with equal usage alternate. */
  next(): T | undefined {
    let chosen: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    if (this.#queues.size === 1) chosen = this.#queues.keys().next().value;
    else
      for (const client of this.#queues.keys()) {
        const used = this.#usage.of(client);
        if (used < least) [chosen, least] = [client, used];
      }
    if (chosen === undefined) return undefined;
    const queue = this.#queues.get(chosen)!;
    const item = queue.shift()!;
    this.#queues.delete(chosen); // reinserted at the end, so that equals alternate
    if (queue.length > 0) this.#queues.set(chosen, queue);
    return item;
  }

  /** Removes all matching items. */
  remove(matches: (item: T) => boolean): T[] {
    const removed: T[] = [];
    for (const [client, queue] of this.#queues) {
      const rest = queue.filter((item) => !matches(item));
      if (rest.length === queue.length) continue;
      removed.push(...queue.filter(matches));
      if (rest.length > 0) this.#queues.set(client, rest);
      else this.#queues.delete(client);
    }
    return removed;
  }
}
