// A pool of sessions on an OpenEnv server, as many as the server allows; further episodes wait until one is free.
// Connections are kept for later episodes. Their number doubles until the server is full, which is tried again later.
import { ServerError, type SqlEnvError } from "../../errors.ts";
import { OpenEnvSession, SERVER_FULL, type SessionOptions } from "../../gym/client/index.ts";

export interface SessionPoolOptions extends SessionOptions {
  /** Seconds to try to reach a server that cannot be reached; null: no limit. */
  readonly patience: number | null;
  /** Called when something begins that holds the training up, once each time. */
  readonly onNote?: ((text: string) => void) | undefined;
}

/** After this time the server may have more sessions: other clients may have left. */
const FULL_MS = 10_000;

const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 2_000;

/** Errors of a server that may come back. */
const OUTAGES = ["connect_failed", "connection_lost", "timeout"];

/** Errors that leave a connection without an environment. */
const FATAL = ["FACTORY_ERROR", "SESSION_ERROR"];

/** Whether a request failed because the connection did. */
export function isOutage(error: unknown): boolean {
  return error instanceof ServerError && OUTAGES.includes(error.code);
}

export class SessionPool {
  readonly #url: string;
  readonly #options: SessionPoolOptions;
  #idle: OpenEnvSession[] = [];
  /** Sessions that are open, idle ones included. */
  readonly #open = new Set<OpenEnvSession>();
  /** Connections that are being opened. */
  #opening = 0;
  /** Sessions that the server has for us, as far as is known. */
  #limit = Number.POSITIVE_INFINITY;
  #outage: SqlEnvError | undefined;
  #pause = FIRST_PAUSE_MS;
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #isPausing = false;
  #isFull = false;
  #isClosed = false;
  #waiting: (() => void)[] = [];

  constructor(url: string, options: SessionPoolOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** Waits for a free session. Rejects if the server cannot be reached for `patience` seconds, or fails. */
  async acquire(): Promise<OpenEnvSession> {
    const { patience } = this.#options;
    let since: number | undefined; // when this call saw the outage
    for (;;) {
      if (this.#isClosed) throw closed();
      const idle = this.#takeIdle();
      if (idle) return idle;
      if (this.#outage) since ??= performance.now();
      else since = undefined;
      if (this.#outage && patience !== null && performance.now() - since! > 1000 * patience) throw this.#outage;
      const session = this.#mayOpen() ? await this.#tryToOpen() : await this.#change();
      if (session) return session;
    }
  }

  /** Gives a session back. One that is lost, or still busy with a request, is not used again. */
  release(session: OpenEnvSession): void {
    if (session.isOpen && !session.isBusy && !this.#isClosed) this.#idle.push(session);
    else this.#drop(session);
    this.#changed();
  }

  /** Ends all sessions; calls that wait for one are rejected. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const session of this.#open) this.#drop(session);
    this.#idle = [];
    this.#changed();
  }

  #drop(session: OpenEnvSession): void {
    session.close();
    this.#open.delete(session);
  }

  #takeIdle(): OpenEnvSession | undefined {
    for (let session = this.#idle.pop(); session; session = this.#idle.pop()) {
      if (session.isOpen) return session;
      this.#drop(session); // the server closed it meanwhile
    }
    return undefined;
  }

  #mayOpen(): boolean {
    const together = Math.max(1, this.#open.size);
    return !this.#isPausing && this.#opening < together && this.#open.size + this.#opening < this.#limit;
  }

  /** Opens a session; undefined if that has to be tried again. */
  async #tryToOpen(): Promise<OpenEnvSession | undefined> {
    this.#opening++;
    const session = new OpenEnvSession(this.#url, this.#options);
    try {
      await session.connect();
      await session.state().catch((error) => {
        // A server that refuses only this request has opened the session.
        const isServers = error instanceof ServerError && !isOutage(error);
        if (!isServers || error.code === SERVER_FULL || FATAL.includes(error.code)) throw error;
      });
      if (this.#isClosed) throw closed();
      this.#open.add(session);
      [this.#outage, this.#isFull, this.#pause] = [undefined, false, FIRST_PAUSE_MS];
      return session;
    } catch (error) {
      session.close();
      if (error instanceof ServerError && error.code === SERVER_FULL) this.#full();
      else if (isOutage(error)) this.#out(error as ServerError);
      else throw error;
      return undefined;
    } finally {
      this.#opening--;
      this.#changed();
    }
  }

  #full(): void {
    this.#outage = undefined;
    if (this.#open.size > 0) {
      this.#limit = this.#open.size;
      this.#later(FULL_MS, () => {
        this.#limit = Number.POSITIVE_INFINITY;
      });
      return;
    }
    if (!this.#isFull) this.#options.onNote?.(`${this.#url} has no free session: waiting for one`);
    this.#isFull = true;
    this.#rest();
  }

  #out(error: ServerError): void {
    if (!this.#outage) this.#options.onNote?.(`${this.#url} cannot be reached: trying again (${error.message})`);
    this.#outage = error;
    this.#rest();
  }

  /** Pauses before the next connection is opened; the pause doubles each time. */
  #rest(): void {
    if (this.#isPausing) return;
    this.#isPausing = true;
    this.#later(this.#pause, () => {
      this.#isPausing = false;
    });
    this.#pause = Math.min(2 * this.#pause, MAX_PAUSE_MS);
  }

  #later(milliseconds: number, change: () => void): void {
    if (this.#isClosed) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      change();
      this.#changed();
    }, milliseconds);
    this.#timers.add(timer);
  }

  /** Waits for a session to be released, or for the time to try again. */
  #change(): Promise<undefined> {
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve(undefined));
    });
  }

  #changed(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

function closed(): ServerError {
  return new ServerError("closed", { what: "the environment was closed" });
}
