// Whose turn it is: a queue for each client, and a record of the thread time each client used lately.

/** Milliseconds after which used time counts half: long enough to see who is heavy, short enough to forgive. */
const HALF_LIFE_MS = 10_000;

const MAX_CLIENTS = 10_000; // remembered; the ones charged longest ago are forgotten first
const MAX_HALF_LIVES = 500; // after which all weights are scaled down, long before a double overflows

/** Thread time used by clients, the recent weighing most. */
export class Usage {
  // Instead of letting every sum decay, later charges weigh more: sums can then be compared as they are.
  readonly #used = new Map<string, number>();
  #epoch = 0;

  /** Books time that a client has used. */
  charge(client: string, milliseconds: number, now = performance.now()): void {
    if (now - this.#epoch > MAX_HALF_LIVES * HALF_LIFE_MS) this.#rebase(now);
    const used = this.of(client) + milliseconds * 2 ** ((now - this.#epoch) / HALF_LIFE_MS);
    this.#used.delete(client);
    this.#used.set(client, used);
    if (this.#used.size > MAX_CLIENTS) this.#used.delete(this.#used.keys().next().value!);
  }

  /** What a client has used, in a unit that only compares with other clients now. */
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

/** Waiting work of several clients. First in, first out within a client; between clients the one that used least goes first. */
export class FairQueue<T> {
  readonly #usage: Usage;
  readonly #queues = new Map<string, T[]>();

  constructor(usage: Usage) {
    this.#usage = usage;
  }

  /** Clients that wait. */
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

  /** Puts an item back that was taken, before those of its client that come after it. */
  putBack(client: string, item: T, comesAfter: (other: T) => boolean): void {
    const queue = this.#queues.get(client) ?? [];
    const at = queue.findIndex(comesAfter);
    queue.splice(at < 0 ? queue.length : at, 0, item);
    this.#queues.set(client, queue);
  }

  /** Takes the next item. Clients that used the same take turns. */
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
    this.#queues.delete(chosen); // and to the end, so that equals take turns
    if (queue.length > 0) this.#queues.set(chosen, queue);
    return item;
  }

  /** Takes out everything that fits. */
  remove(fits: (item: T) => boolean): T[] {
    const removed: T[] = [];
    for (const [client, queue] of this.#queues) {
      const kept = queue.filter((item) => !fits(item));
      if (kept.length === queue.length) continue;
      removed.push(...queue.filter(fits));
      if (kept.length > 0) this.#queues.set(client, kept);
      else this.#queues.delete(client);
    }
    return removed;
  }
}
