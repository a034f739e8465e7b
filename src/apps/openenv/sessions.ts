// Open sessions and their clients. A session of a socket or of MCP over HTTP holds a slot, released exactly once; the one
// that a client's plain HTTP requests share holds none, as the protocol requires. A WebSocket may attach to an HTTP
// session: both then use one environment and one slot.
import { randomUUID } from "node:crypto";
import { SqlEnvError } from "../../errors.ts";
import { EVICTABLE_SECONDS, GRACE_SECONDS, UNUSED_SECONDS } from "./limits.ts";
import type { ThreadPool } from "./thread-pool.ts";

/** No slot is free, in total or for this client. */
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

/** A WebSocket cannot attach to the session it names. */
export class AttachError extends SqlEnvError {
  constructor(what: string) {
    super("session", { what });
  }
}

type OnEnd = (reason: "idle" | "evicted") => void;

export interface Slot {
  readonly id: string;
  readonly client: string;
  /** Held by a socket, or known by its id only. */
  readonly kind: "socket" | "http";
  /** `performance.now()`, like all times here. */
  readonly openedAt: number;
  /** Time of the last request. */
  touchedAt: number;
  /** Whether it ever reset, stepped or called a tool. */
  isUsed: boolean;
  /** Resolves when the environment exists; rejects with code `factory`. */
  readonly ready: Promise<void>;
  /** Whether the environment exists. */
  isReady: boolean;
  /** Called when the server ends the session. */
  onEnd: OnEnd;
  /** Whether a WebSocket is attached to this HTTP session. */
  isAttached: boolean;
  /** Whether it ends when its WebSocket detaches. */
  isClosing: boolean;
}

export interface SessionsOptions {
  /** Slots. */
  readonly max: number;
  /** Slots per client. */
  readonly perClient: number;
  readonly idleSeconds: number;
  /** @default UNUSED_SECONDS */
  readonly unusedSeconds?: number;
}

/** Opens, finds, evicts and ends sessions. */
export class Sessions {
  readonly max: number;
  readonly #options: SessionsOptions;
  readonly #pool: ThreadPool;
  readonly #slots = new Map<string, Slot>();
  readonly #byClient = new Map<string, Set<Slot>>();
  /** Plain HTTP sessions by client, least recently used first. */
  readonly #plain = new Map<string, Slot>();

  constructor(pool: ThreadPool, options: SessionsOptions) {
    this.#pool = pool;
    this.#options = options;
    this.max = options.max;
  }

  get active(): number {
    return this.#slots.size;
  }

  /** Takes a slot. If none is free, an idle session of a client that has more is evicted. Throws CapacityError. */
  take(client: string, kind: Slot["kind"], onEnd: OnEnd = () => {}, now = performance.now()): Slot {
    const own = this.#byClient.get(client) ?? new Set<Slot>();
    if (own.size >= this.#options.perClient) throw new CapacityError("client", own.size, this.#options.perClient);
    if (this.#slots.size >= this.max && !this.#makeRoom(own.size, now))
      throw new CapacityError("server", this.#slots.size, this.max);
    const slot = this.#open(client, kind, onEnd, now);
    this.#slots.set(slot.id, slot);
    this.#byClient.set(client, own.add(slot));
    return slot;
  }

  /** The session that a client's plain HTTP requests share; created on first use. */
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

  /** A client's session by its id. Other clients' sessions count as unknown. */
  get(id: unknown, client: string): Slot | undefined {
    const slot = typeof id === "string" ? this.#slots.get(id) : undefined;
    return slot?.client === client ? slot : undefined;
  }

  /** Attaches a WebSocket to an HTTP session. Throws AttachError with the protocol's message. */
  attach(id: string, client: string, onEnd: OnEnd, now = performance.now()): Slot {
    const slot = this.get(id, client);
    const name = id.slice(0, 100);
    if (!slot) throw new AttachError(`Unknown session_id: ${name}`);
    if (!slot.isReady) throw new AttachError(`Session ${name} is still initializing`);
    if (slot.isAttached || slot.kind === "socket")
      throw new AttachError(`Session ${name} already has an attached WebSocket`);
    Object.assign(slot, { isAttached: true, onEnd, touchedAt: now });
    return slot;
  }

  /** Detaches the WebSocket. The session remains, unless its client closed it meanwhile. */
  detach(slot: Slot, now = performance.now()): void {
    Object.assign(slot, { isAttached: false, onEnd: () => {}, touchedAt: now });
    if (slot.isClosing) this.release(slot.id);
  }

  /** Ends an HTTP session: "closed" now, or "closing" when its WebSocket detaches. */
  close(slot: Slot): "closed" | "closing" {
    if (!slot.isAttached) {
      this.release(slot.id);
      return "closed";
    }
    slot.isClosing = true;
    return "closing";
  }

  /** Releases a slot; true the first time. */
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

  /** Ends idle sessions, and HTTP sessions that were never used. One with an attached WebSocket is not idle. */
  reap(now = performance.now()): void {
    const { idleSeconds, unusedSeconds = UNUSED_SECONDS } = this.#options;
    const isUnused = ({ openedAt, kind, isUsed }: Slot) =>
      kind === "http" && !isUsed && now - openedAt > unusedSeconds * 1000;
    const isIdle = (slot: Slot) => !slot.isAttached && (now - slot.touchedAt > idleSeconds * 1000 || isUnused(slot));
    for (const slot of [...this.#slots.values()].filter(isIdle)) this.#end(slot, "idle");
    for (const slot of [...this.#plain.values()].filter(isIdle)) this.#endPlain(slot);
  }

  #open(client: string, kind: Slot["kind"], onEnd: OnEnd, now: number): Slot {
    const id = randomUUID();
    const ready = this.#pool.open(id, client);
    const flags = { isUsed: false, isReady: false, isAttached: false, isClosing: false };
    const slot: Slot = { id, client, kind, openedAt: now, touchedAt: now, ready, onEnd, ...flags };
    ready.then(
      () => {
        slot.isReady = true;
      },
      () => {}, // handled by whoever awaits it
    );
    return slot;
  }

  #end(slot: Slot, reason: "idle" | "evicted"): void {
    slot.onEnd(reason);
    this.release(slot.id);
  }

  #endPlain(slot: Slot): void {
    if (this.#plain.get(slot.client) === slot) this.#plain.delete(slot.client);
    this.#pool.drop(slot.id);
  }

  /** Evicts the longest idle session of the client with the most, if it has more than the requesting client would. */
  #makeRoom(own: number, now: number): boolean {
    let most = new Set<Slot>();
    for (const slots of this.#byClient.values()) if (slots.size > most.size) most = slots;
    if (most.size <= own + 1) return false;
    const idle = [...most].sort((a, b) => a.touchedAt - b.touchedAt);
    const isNew = ({ kind, openedAt, isAttached }: Slot) =>
      (kind === "socket" || isAttached) && now - openedAt < GRACE_SECONDS * 1000;
    const victim =
      idle.find((slot) => !slot.isUsed && !isNew(slot)) ??
      idle.find(({ touchedAt }) => now - touchedAt > EVICTABLE_SECONDS * 1000);
    if (!victim) return false;
    this.#end(victim, "evicted");
    return true;
  }
}
