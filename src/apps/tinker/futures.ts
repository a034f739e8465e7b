// Results that clients poll for. A request that is sent twice has the same key, and runs once; a result is kept after it
// was read, since the reply may not have arrived.
import { messageOf, SqlEnvError } from "../../errors.ts";
import { Problem } from "./problem.ts";

/** A result: JSON, and for some requests a protobuf message. */
export interface Result {
  readonly json: object;
  readonly proto?: () => Uint8Array;
}

interface Failed {
  readonly error: string;
  readonly category: "user" | "server";
}

interface Future {
  readonly id: string;
  readonly settled: Promise<void>;
  readonly cancel: AbortController;
  outcome?: Result | Failed;
}

/** Results kept for one session; the oldest that are done are dropped first. */
export const KEPT_RESULTS = 8_192;

export class Futures {
  readonly #prefix: string;
  readonly #byId = new Map<string, Future>();
  readonly #byKey = new Map<string, string>();
  #next = 1;

  /** @param prefix random text that makes the ids unguessable */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Starts `work` and returns the id of its result; the same key gives the id it has already. */
  start(key: string | null, work: (signal: AbortSignal) => Promise<Result>): string {
    const known = key === null ? undefined : this.#byKey.get(key);
    if (known !== undefined && this.#byId.has(known)) return known;
    if (this.#byId.size >= KEPT_RESULTS) this.#drop();
    const id = `${this.#prefix}:${this.#next++}`;
    const cancel = new AbortController();
    const settled = work(cancel.signal).then(
      (result) => {
        future.outcome = result;
      },
      (error: unknown) => {
        const isUsers = error instanceof Problem || (error instanceof SqlEnvError && error.code === "usage");
        future.outcome = { error: messageOf(error), category: isUsers ? "user" : "server" };
      },
    );
    const future: Future = { id, settled, cancel };
    this.#byId.set(id, future);
    if (key !== null) this.#byKey.set(key, id);
    return id;
  }

  /** Waits at most `ms` for the outcome; undefined if there is none yet. Throws Problem 410 if it is no longer kept. */
  async wait(id: string, ms: number, gone: AbortSignal): Promise<Result | Failed | undefined> {
    const future = this.#byId.get(id);
    if (!future) throw new Problem(410, "this result is no longer kept: send the request again");
    if (future.outcome) return future.outcome;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      const end = () => {
        clearTimeout(timer);
        resolve();
      };
      gone.addEventListener("abort", end, { once: true });
      void future.settled.then(end);
    });
    return future.outcome;
  }

  cancel(id: string): void {
    this.#byId.get(id)?.cancel.abort(new Problem(400, "the client has cancelled the request"));
  }

  /** Cancels all that run. */
  close(): void {
    for (const { cancel } of this.#byId.values()) cancel.abort(new Problem(410, "the session has ended"));
  }

  #drop(): void {
    const done = [...this.#byId.values()].find(({ outcome }) => outcome);
    if (!done) throw new Problem(429, "too many requests are waiting");
    this.#byId.delete(done.id);
  }
}
