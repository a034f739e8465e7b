// The error boundary of an episode, shared by the loops that play episodes: what the environment throws and a player's
// PlayerError are recorded with the episode, everything else is rethrown.
import { messageOf, PlayerError } from "../errors.ts";

/** Marks an error as the environment's. The error's own type cannot: remote environments and threads lose it. */
class EnvironmentFailure extends Error {}

/** Waits within one episode, and decides which errors are the episode's. */
export class EpisodeBoundary {
  readonly #signal: AbortSignal | undefined;
  readonly #aborted: Promise<never>;
  #stop = () => {};

  /** Adds one listener per episode: one per turn took a tenth of the main thread's time. */
  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    this.#aborted = new Promise((_, reject) => {
      this.#stop = () => reject(signal?.reason);
    });
    this.#aborted.catch(() => {}); // whoever waits gets the rejection
    signal?.addEventListener("abort", this.#stop, { once: true });
  }

  /** Waits until the signal aborts, even if the player or environment ignores the signal. */
  async wait<T>(awaited: T | Promise<T>): Promise<T> {
    const signal = this.#signal;
    if (signal?.aborted && awaited instanceof Promise) awaited.catch(() => {}); // nothing will wait for it
    signal?.throwIfAborted();
    if (!signal || !(awaited instanceof Promise)) return awaited;
    return Promise.race([awaited, this.#aborted]);
  }

  /** Calls the environment: what it throws becomes the episode's error. */
  async call<T>(environment: () => T | Promise<T>): Promise<T> {
    try {
      return await environment();
    } catch (cause) {
      throw new EnvironmentFailure("the environment failed", { cause });
    }
  }

  /** The message to record for what was thrown in the episode. Rethrows it if it is no error of the episode, or aborted. */
  errorOf(thrown: unknown): string {
    if (this.#signal?.aborted) throw this.#signal.reason;
    if (thrown instanceof EnvironmentFailure) return messageOf(thrown.cause);
    if (thrown instanceof PlayerError) return thrown.message;
    throw thrown;
  }

  /** Removes the listener. */
  end(): void {
    this.#signal?.removeEventListener("abort", this.#stop);
  }
}
