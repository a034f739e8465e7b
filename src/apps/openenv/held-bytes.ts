// Memory held by clients, in bytes per client and in total: queued messages and unread replies.

export interface ByteLimits {
  readonly perClient: number;
  readonly total: number;
}

/** Counts held bytes. */
export class HeldBytes {
  readonly #limits: ByteLimits;
  readonly #byClient = new Map<string, number>();
  #total = 0;

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  get total(): number {
    return this.#total;
  }

  /** Which limit is reached, if any. */
  over(client: string): "client" | "server" | undefined {
    if (this.#total >= this.#limits.total) return "server";
    return (this.#byClient.get(client) ?? 0) >= this.#limits.perClient ? "client" : undefined;
  }

  add(client: string, bytes: number): void {
    this.#total += bytes;
    this.#byClient.set(client, (this.#byClient.get(client) ?? 0) + bytes);
  }

  giveBack(client: string, bytes: number): void {
    this.#total -= bytes;
    const left = (this.#byClient.get(client) ?? 0) - bytes;
    if (left > 0) this.#byClient.set(client, left);
    else this.#byClient.delete(client);
  }
}
