// The slots: every session there is, of sockets and of MCP over HTTP, each given back exactly once.
import { randomUUID } from "node:crypto";
import { SqlEnvError } from "../errors.ts";
import type { Pool } from "./pool.ts";

/** No slot is left. */
export class CapacityError extends SqlEnvError {
  readonly active_sessions: number;
  readonly max_sessions: number;

  constructor(active_sessions: number, max_sessions: number) {
    const what = `Server at capacity: ${active_sessions}/${max_sessions} sessions active. Cannot accept new connections.`;
    super("capacity", { what });
    this.active_sessions = active_sessions;
    this.max_sessions = max_sessions;
  }
}

export interface Slot {
  readonly id: string;
  readonly openedAt: number;
  /** When it last reset, stepped or called a tool. */
  touchedAt: number;
  /** Resolves when its environment stands; rejects with code `factory`. */
  readonly ready: Promise<void>;
  /** Called when the session has been idle for too long. */
  readonly onIdle: () => void;
}

/** Hands out slots. */
export class Hub {
  readonly max: number;
  readonly #pool: Pool;
  readonly #slots = new Map<string, Slot>();

  constructor(pool: Pool, max: number) {
    this.#pool = pool;
    this.max = max;
  }

  get active(): number {
    return this.#slots.size;
  }

  /** Takes a slot. Throws CapacityError. */
  take(client: string, onIdle: () => void = () => {}): Slot {
    if (this.#slots.size >= this.max) throw new CapacityError(this.#slots.size, this.max);
    const id = randomUUID();
    const now = Date.now();
    const slot: Slot = { id, openedAt: now, touchedAt: now, ready: this.#pool.open(id, client), onIdle };
    slot.ready.catch(() => {}); // whoever waits for it hears of it
    this.#slots.set(id, slot);
    return slot;
  }

  get(id: unknown): Slot | undefined {
    return typeof id === "string" ? this.#slots.get(id) : undefined;
  }

  /** Gives a slot back; true the first time. */
  release(id: string): boolean {
    if (!this.#slots.delete(id)) return false;
    this.#pool.drop(id);
    return true;
  }

  /** Ends sessions that did nothing since `before`. */
  reap(before: number): void {
    for (const { id, touchedAt, onIdle } of [...this.#slots.values()]) {
      if (touchedAt >= before) continue;
      onIdle();
      this.release(id);
    }
  }
}
