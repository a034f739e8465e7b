// The sessions there are and whose they are: those of sockets and of MCP over HTTP hold a slot, each given back exactly
// once; the one that a client's plain HTTP requests share holds none, as the protocol has it.
import { randomUUID } from "node:crypto";
import { SqlEnvError } from "../../errors.ts";
import { EVICTABLE_SECONDS, GRACE_SECONDS, UNUSED_SECONDS } from "./limits.ts";
import type { Pool } from "./thread-pool.ts";

/** No slot is left, for anyone or for this client. */
export class CapacityError extends SqlEnvError {
  readonly active_sessions: number;
  readonly max_sessions: number;

  constructor(whose: "server" | "client", active_sessions: number, max_sessions: number) {
    const count = `${active_sessions}/${max_sessions} sessions active`;
    const what =
      whose === "server"
        ? `Server at capacity: ${count}. Cannot accept new connections.`
        : `Client at capacity: ${count}. Close one first, or start the server with a larger --sessions-per-client.`;
    super("capacity", { what });
    this.active_sessions = active_sessions;
    this.max_sessions = max_sessions;
  }
}

export interface Slot {
  readonly id: string;
  readonly client: string;
  /** Whether a socket holds it, or it is known by its id alone. */
  readonly kind: "socket" | "http";
  /** By `performance.now()`, as all times here. */
  readonly openedAt: number;
  /** When it was last asked something. */
  touchedAt: number;
  /** Whether it ever reset, stepped or called a tool. */
  isUsed: boolean;
  /** Resolves when its environment stands; rejects with code `factory`. */
  readonly ready: Promise<void>;
  /** Called when the session is ended from here. */
  readonly onEnd: (reason: "idle" | "evicted") => void;
}

export interface HubOptions {
  /** Slots. */
  readonly max: number;
  /** Slots of one client. */
  readonly perClient: number;
  readonly idleSeconds: number;
  /** @default UNUSED_SECONDS */
  readonly unusedSeconds?: number;
}

/** Hands out sessions. */
export class Hub {
  readonly max: number;
  readonly #options: HubOptions;
  readonly #pool: Pool;
  readonly #slots = new Map<string, Slot>();
  readonly #byClient = new Map<string, Set<Slot>>();
  /** The sessions of plain HTTP by client, the longest idle first. */
  readonly #plain = new Map<string, Slot>();

  constructor(pool: Pool, options: HubOptions) {
    this.#pool = pool;
    this.#options = options;
    this.max = options.max;
  }

  get active(): number {
    return this.#slots.size;
  }

  /** Takes a slot. When none is left, a client that has more loses a session it does not use. Throws CapacityError. */
  take(client: string, kind: Slot["kind"], onEnd: Slot["onEnd"] = () => {}, now = performance.now()): Slot {
    const own = this.#byClient.get(client) ?? new Set<Slot>();
    if (own.size >= this.#options.perClient) throw new CapacityError("client", own.size, this.#options.perClient);
    if (this.#slots.size >= this.max && !this.#makeRoom(own.size, now))
      throw new CapacityError("server", this.#slots.size, this.max);
    const slot = this.#open(client, kind, onEnd, now);
    this.#slots.set(slot.id, slot);
    this.#byClient.set(client, own.add(slot));
    return slot;
  }

  /** The session that plain HTTP requests of a client share; made when it is first asked for. */
  plain(client: string, now = performance.now()): Slot {
    const known = this.#plain.get(client);
    const slot = known ?? this.#open(client, "http", () => {}, now);
    slot.touchedAt = now;
    this.#plain.delete(client);
    this.#plain.set(client, slot);
    if (!known) slot.ready.catch(() => this.#endPlain(slot));
    if (this.#plain.size > this.max) this.#endPlain(this.#plain.values().next().value!);
    return slot;
  }

  get(id: unknown): Slot | undefined {
    return typeof id === "string" ? this.#slots.get(id) : undefined;
  }

  /** Gives a slot back; true the first time. */
  release(id: string): boolean {
    const slot = this.#slots.get(id);
    if (!slot) return false;
    this.#slots.delete(id);
    const own = this.#byClient.get(slot.client);
    own?.delete(slot);
    if (own?.size === 0) this.#byClient.delete(slot.client);
    this.#pool.drop(id);
    return true;
  }

  /** Ends sessions that did nothing for long, and those over HTTP that were opened and never used. */
  reap(now = performance.now()): void {
    const { idleSeconds, unusedSeconds = UNUSED_SECONDS } = this.#options;
    const isIdle = ({ touchedAt, openedAt, kind, isUsed }: Slot) =>
      now - touchedAt > idleSeconds * 1000 || (kind === "http" && !isUsed && now - openedAt > unusedSeconds * 1000);
    for (const slot of [...this.#slots.values()].filter(isIdle)) this.#end(slot, "idle");
    for (const slot of [...this.#plain.values()].filter(isIdle)) this.#endPlain(slot);
  }

  #open(client: string, kind: Slot["kind"], onEnd: Slot["onEnd"], now: number): Slot {
    const id = randomUUID();
    const ready = this.#pool.open(id, client);
    ready.catch(() => {}); // whoever waits for it hears of it
    return { id, client, kind, openedAt: now, touchedAt: now, isUsed: false, ready, onEnd };
  }

  #end(slot: Slot, reason: "idle" | "evicted"): void {
    slot.onEnd(reason);
    this.release(slot.id);
  }

  #endPlain(slot: Slot): void {
    if (this.#plain.get(slot.client) === slot) this.#plain.delete(slot.client);
    this.#pool.drop(slot.id);
  }

  /** Ends the longest idle session of the client that has most, if that client has more than the one who asks would. */
  #makeRoom(own: number, now: number): boolean {
    let most = new Set<Slot>();
    for (const slots of this.#byClient.values()) if (slots.size > most.size) most = slots;
    if (most.size <= own + 1) return false;
    const idle = [...most].sort((a, b) => a.touchedAt - b.touchedAt);
    const isNew = ({ kind, openedAt }: Slot) => kind === "socket" && now - openedAt < GRACE_SECONDS * 1000;
    const victim =
      idle.find((slot) => !slot.isUsed && !isNew(slot)) ??
      idle.find(({ touchedAt }) => now - touchedAt > EVICTABLE_SECONDS * 1000);
    if (!victim) return false;
    this.#end(victim, "evicted");
    return true;
  }
}
