// Waiting that an AbortSignal can end, whatever the awaited code does with the signal.

/** Awaits promises until the signal aborts: a player or a remote environment may ignore it. */
export class AbortableWait {
  readonly #signal: AbortSignal | undefined;
  readonly #aborted: Promise<never>;
  #stop = () => {};

  /** One listener per episode: one per turn took a tenth of the main thread's time. */
  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    this.#aborted = new Promise((_, reject) => {
      this.#stop = () => reject(signal?.reason);
    });
    this.#aborted.catch(() => {}); // those who wait get the rejection
    signal?.addEventListener("abort", this.#stop, { once: true });
  }

  async wait<T>(awaited: T | Promise<T>): Promise<T> {
    const signal = this.#signal;
    if (signal?.aborted && awaited instanceof Promise) awaited.catch(() => {}); // nothing will wait for it
    signal?.throwIfAborted();
    if (!signal || !(awaited instanceof Promise)) return awaited;
    return Promise.race([awaited, this.#aborted]);
  }

  end(): void {
    this.#signal?.removeEventListener("abort", this.#stop);
  }
}
