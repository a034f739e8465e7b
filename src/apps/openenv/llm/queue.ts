// Which completions run: as many as the engine's cache has room for, the client that used the least first.

import { LlmError } from "../../../lm/chat/openai/error.ts";
import { FairQueue, Usage } from "../fair-queue.ts";

export interface QueueLimits {
  /** Tokens of contexts that run at once. */
  readonly tokens: number;
  /** Completions that run at once. */
  readonly running: number;
  /** Completions that wait or run, of one client and in total. */
  readonly perClient: number;
  readonly total: number;
}

interface Job {
  readonly client: string;
  readonly tokens: number;
  readonly start: () => void;
}

/** Runs completions within limits. */
export class CompletionQueue {
  readonly #limits: QueueLimits;
  readonly #usage = new Usage();
  readonly #waiting = new FairQueue<Job>(this.#usage);
  /** A completion that was taken from the queue, but for which there is no room yet. */
  #next: Job | undefined;
  readonly #counts = new Map<string, number>();
  #count = 0;
  #running = 0;
  #tokens = 0;
  #closed = false;
  readonly #abort = new AbortController();
  #onIdle: (() => void) | undefined;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#count - this.#running;
  }

  /** Throws LlmError if the client may not add this many completions. */
  check(client: string, completions: number): void {
    if (this.#closed) throw shuttingDown();
    if (this.#count + completions > this.#limits.total)
      throw new LlmError(503, { message: "too many completions are waiting; try again later", code: "server_busy" });
    if ((this.#counts.get(client) ?? 0) + completions > this.#limits.perClient)
      throw new LlmError(429, {
        message: `a client may have ${this.#limits.perClient} completions waiting or running`,
        code: "rate_limit_exceeded",
      });
  }

  /**
   * Does `work` when there is room for a context of this many tokens. Its signal is aborted when the caller's is, and
   * when a shutdown does not wait any longer.
   */
  async run<T>(
    { client, tokens, signal }: { readonly client: string; readonly tokens: number; readonly signal: AbortSignal },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const either = AbortSignal.any([signal, this.#abort.signal]);
    this.#counts.set(client, (this.#counts.get(client) ?? 0) + 1);
    this.#count++;
    try {
      await this.#turn({ client, tokens }, either);
      try {
        return await work(either);
      } finally {
        this.#running--;
        this.#tokens -= tokens;
      }
    } finally {
      const left = this.#counts.get(client)! - 1;
      if (left > 0) this.#counts.set(client, left);
      else this.#counts.delete(client);
      this.#count--;
      this.#startMore();
      if (this.#count === 0) this.#onIdle?.();
    }
  }

  /** Refuses new completions; resolves when none is left, after `seconds` at most, and then aborts the others. */
  async drain(seconds: number): Promise<void> {
    this.#closed = true;
    if (this.#count === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    const timer = setTimeout(() => this.#abort.abort(shuttingDown()), seconds * 1000);
    await idle;
    clearTimeout(timer);
  }

  /** Waits for room; rejects with the signal's reason. */
  #turn({ client, tokens }: Omit<Job, "start">, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const job: Job = {
        client,
        tokens,
        start: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      const leave = () => {
        if (this.#next === job) this.#next = undefined;
        else this.#waiting.remove((other) => other === job);
        reject(signal.reason);
      };
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(client, job);
      this.#startMore();
    });
  }

  #startMore(): void {
    while (this.#running < this.#limits.running) {
      this.#next ??= this.#waiting.next();
      const job = this.#next;
      if (!job) return;
      if (this.#running > 0 && this.#tokens + job.tokens > this.#limits.tokens) return;
      this.#next = undefined;
      this.#running++;
      this.#tokens += job.tokens;
      this.#usage.charge(job.client, job.tokens);
      job.start();
    }
  }
}

export function shuttingDown(): LlmError {
  return new LlmError(503, { message: "the server is shutting down", code: "server_shutting_down" });
}
