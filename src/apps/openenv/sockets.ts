// WebSockets: each has its own session, or attaches to the HTTP session that `/ws?session_id=` names. A socket's messages
// are answered in order; pings at any time.
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { messageOf, SqlEnvError } from "../../errors.ts";
import type { Access, Refusal } from "./access.ts";
import type { Proxies } from "./client-address.ts";
import type { HeldBytes } from "./held-bytes.ts";
import { MAX_UNREAD_BYTES, MAX_WAITING, MAX_WAITING_BYTES } from "./limits.ts";
import type { Log } from "./log.ts";
import { RPC, rpcError } from "./mcp/json-rpc.ts";
import type { Metrics } from "./metrics.ts";
import type { RateLimit } from "./rate-limit.ts";
import { errorReply } from "./session.ts";
import { AttachError, CapacityError, type Sessions, type Slot } from "./sessions.ts";
import type { ThreadPool } from "./thread-pool.ts";
import type { Answer } from "./thread-protocol.ts";

export interface SocketOptions {
  readonly pool: ThreadPool;
  readonly sessions: Sessions;
  readonly access: Access;
  readonly proxies: Proxies;
  readonly rate: RateLimit;
  /** Limits how often refusals are logged. */
  readonly logged: RateLimit;
  readonly held: HeldBytes;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly maxMessageBytes: number;
  readonly pingSeconds: number;
  readonly silentSeconds: number;
  readonly replySeconds: number;
}

/** /ws speaks OpenEnv's messages, /mcp plain JSON-RPC. */
type Kind = "ws" | "mcp";

const KINDS: Readonly<Record<string, Kind | undefined>> = { "/ws": "ws", "/mcp": "mcp" };

type UpgradeRefusal = Omit<Refusal, "status"> & { readonly status: number };

/** An admitted upgrade. */
interface Upgrade {
  readonly kind: Kind;
  readonly client: string;
  /** The HTTP session to attach to. */
  readonly sessionId: string | undefined;
}

/** Handles the WebSocket upgrades of an HTTP server. */
export class Sockets {
  readonly #options: SocketOptions;
  readonly #sockets: WebSocketServer;
  readonly #connections = new Set<Connection>();
  readonly #pinging: NodeJS.Timeout;
  #draining = false;

  constructor(server: Server, options: SocketOptions) {
    this.#options = options;
    this.#sockets = new WebSocketServer({
      noServer: true,
      maxPayload: options.maxMessageBytes,
      perMessageDeflate: false, // small messages, many sessions: memory and time matter more than bytes
      clientTracking: false,
      autoPong: false, // sent below, only while the client reads
    });
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      this.#upgrade(request, socket, head);
    });
    this.#pinging = setInterval(() => this.#ping(), options.pingSeconds * 1000);
    this.#pinging.unref();
  }

  /** Refuses new sockets, finishes running requests, and closes every socket with 1001. */
  async drain(seconds: number): Promise<void> {
    this.#draining = true;
    clearInterval(this.#pinging);
    const connections = [...this.#connections];
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, seconds * 1000);
    });
    await Promise.race([Promise.all(connections.map((connection) => connection.finish())), late]);
    for (const connection of connections) connection.close(1001, "the server is shutting down");
    await Promise.race([Promise.all(connections.map(({ closed }) => closed)), late]);
    for (const connection of this.#connections) connection.terminate();
    clearTimeout(timer);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const address = this.#options.proxies.addressOf(request);
    const decided = this.#decide(request, address);
    if ("status" in decided) {
      this.#refuse(address, socket, decided);
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (websocket) => {
      const connection = new Connection(websocket, decided, this.#options);
      this.#connections.add(connection);
      void connection.closed.then(() => this.#connections.delete(connection));
    });
  }

  /** What an upgrade asks for, or why it is refused. */
  #decide(request: IncomingMessage, address: string): UpgradeRefusal | Upgrade {
    const { access, rate } = this.#options;
    const header = (name: string) => request.headers[name] as string | undefined;
    const url = urlOf(request);
    if (!url) return { status: 400, detail: "Bad Request" };
    const caller = { address, url, header, isUpgrade: true };
    const refused = access.refuseOrigin(caller);
    if (refused) return refused;
    const kind = KINDS[url.pathname];
    if (!kind) return { status: 404, detail: "Not Found" };
    if (this.#draining) return { status: 503, detail: "Shutting down" };
    const admitted = access.admit(caller);
    if ("status" in admitted) return admitted;
    if (!rate.tryTake(admitted.client)) return { status: 429, detail: "Too Many Requests", retryAfter: 1 };
    const named = kind === "ws" ? url.searchParams.get("session_id") : null;
    return { kind, client: admitted.client, sessionId: named || undefined }; // an empty id counts as none
  }

  #refuse(client: string, socket: Duplex, { status, detail, retryAfter }: UpgradeRefusal): void {
    const { metrics, log, logged } = this.#options;
    metrics.count("sqlenv_sessions_refused_total", { reason: String(status) });
    if (logged.tryTake(client)) log("warning", "refused", { client, status, detail });
    const body = JSON.stringify({ detail });
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "Connection: close",
      "Content-Type: application/json",
      `Content-Length: ${Buffer.byteLength(body)}`,
      ...(retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`]),
    ];
    // Destroyed once sent: no HTTP timeout applies, so a client that never closes its side would keep the connection.
    socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
  }

  #ping(): void {
    const before = performance.now() - this.#options.silentSeconds * 1000;
    for (const connection of this.#connections) connection.ping(before);
  }
}

/** Message types that count as use of a session. */
const USES = new Set(["reset", "step", "mcp"]);

/** A request's URL; undefined if it cannot be parsed. */
function urlOf({ url = "/", headers }: IncomingMessage): URL | undefined {
  const text = `http://${headers.host ?? "localhost"}${url.startsWith("/") ? url : "/"}`;
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** A socket and its session. */
class Connection {
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #kind: Kind;
  readonly #client: string;
  readonly #sessionId: string | undefined;
  readonly #options: SocketOptions;
  readonly #waiting: { readonly text: string; readonly bytes: number }[] = [];
  /** Bytes of the message being answered. */
  #inWork = 0;
  #slot: Slot | undefined;
  #pumping: Promise<void> | undefined;
  #waitingBytes = 0;
  #heardAt = performance.now();
  #messages = 0;

  constructor(socket: WebSocket, { kind, client, sessionId }: Upgrade, options: SocketOptions) {
    this.#socket = socket;
    this.#kind = kind;
    this.#client = client;
    this.#sessionId = sessionId;
    this.#options = options;
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.on("close", (code) => this.#end(code));
    socket.on("error", (error) => options.log("warning", "socket_error", { client, message: error.message })); // e.g. 1007 or 1009; a close follows
    socket.on("pong", () => this.#touch());
    socket.on("ping", (data) => {
      this.#touch();
      if (socket.bufferedAmount < MAX_UNREAD_BYTES) socket.pong(data); // a client that does not read needs no pong
    });
    socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    this.#open();
  }

  /** Pings, or terminates a connection silent since `before`. */
  ping(before: number): void {
    if (this.#heardAt < before) {
      this.#options.log("warning", "silent", { client: this.#client });
      this.terminate();
    } else if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  /** Resolves when everything received so far is answered; nothing more is read meanwhile. */
  async finish(): Promise<void> {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.pause();
    await this.#pumping;
    this.#socket.resume();
  }

  close(code: number, reason: string): void {
    this.#release();
    this.#socket.close(code, reason);
  }

  terminate(): void {
    this.#release();
    this.#socket.terminate();
  }

  #open(): void {
    const { sessions, metrics, log } = this.#options;
    const [id, client] = [this.#sessionId, this.#client];
    const onEnd: Slot["onEnd"] = (reason) =>
      reason === "idle" ? this.close(1000, "idle") : this.close(1013, "the server is full");
    try {
      this.#slot = id === undefined ? sessions.take(client, "socket", onEnd) : sessions.attach(id, client, onEnd);
    } catch (error) {
      if (error instanceof AttachError) {
        this.#refuse("SESSION_ERROR", error.message, {});
        return;
      }
      if (!(error instanceof CapacityError)) throw error;
      const { message, active_sessions, max_sessions } = error;
      metrics.count("sqlenv_sessions_refused_total", { reason: "capacity" });
      this.#refuse("CAPACITY_REACHED", message, { active_sessions, max_sessions });
      return;
    }
    if (id === undefined) metrics.count("sqlenv_sessions_total", { kind: this.#kind });
    log("info", "session_open", { client: this.#client, kind: this.#kind });
    this.#slot.ready.catch((error: unknown) => {
      log("error", "no_environment", { message: messageOf(error) });
      this.#release();
      this.#refuse("FACTORY_ERROR", messageOf(error), { factory_name: "SQLEnvironment" });
    });
  }

  /** Refuses as the protocol does: an unprompted error, then a close. */
  #refuse(code: "CAPACITY_REACHED" | "FACTORY_ERROR" | "SESSION_ERROR", message: string, data: object): void {
    this.#options.metrics.count("sqlenv_errors_total", { code });
    const text =
      this.#kind === "ws"
        ? errorReply(code, message, data).text!
        : JSON.stringify(rpcError(null, RPC.server, message, data));
    this.#socket.send(text, () => this.#socket.close(1000));
  }

  #touch(): void {
    this.#heardAt = performance.now();
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#touch();
    if (!this.#slot) return;
    if (isBinary) {
      this.#options.metrics.count("sqlenv_errors_total", { code: "SESSION_ERROR" });
      this.#release();
      this.#socket.send(errorReply("SESSION_ERROR", "frames must be text, not binary").text!, () =>
        this.#socket.close(1000),
      );
      return;
    }
    const bytes = (data as Buffer).length; // one buffer: ws's default `binaryType`
    this.#waiting.push({ text: String(data), bytes });
    this.#waitingBytes += bytes;
    this.#options.held.add(this.#client, bytes);
    if (this.#isFull(1)) this.#socket.pause();
    this.#pumping ??= this.#pump().finally(() => {
      this.#pumping = undefined;
    });
  }

  /** Answers queued messages in order, within the rate limit and as fast as the client reads. */
  async #pump(): Promise<void> {
    const { pool, rate, metrics, held } = this.#options;
    for (let next = this.#waiting.shift(); next !== undefined && this.#slot; next = this.#waiting.shift()) {
      const { text, bytes } = next;
      const slot = this.#slot;
      this.#inWork = bytes;
      const delay = rate.take(this.#client);
      if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
      const from = performance.now();
      const answer = await pool
        .ask(slot.id, this.#client, { verb: this.#kind === "ws" ? "frame" : "rpcFrame", text })
        .catch((error: unknown): Answer => this.#failure(error));
      if (!this.#slot) return; // the client disconnected meanwhile; everything was released
      held.giveBack(this.#client, bytes);
      this.#inWork = 0;
      this.#waitingBytes -= bytes;
      slot.touchedAt = performance.now();
      if (USES.has(answer.kind)) slot.isUsed = true;
      this.#messages++;
      const isError = answer.kind === answer.kind.toUpperCase();
      if (isError) metrics.count("sqlenv_errors_total", { code: answer.kind });
      else metrics.count("sqlenv_messages_total", { type: answer.kind });
      metrics.time((performance.now() - from) / 1000);
      if (answer.text !== null) await this.#send(answer.text);
      if (answer.close !== undefined) this.close(answer.close, "");
      if (this.#socket.isPaused && (this.#waiting.length === 0 || !this.#isFull(0.5))) this.#socket.resume();
    }
  }

  /** Whether the queue is filled to this share of its limit, or the client's held bytes are. */
  #isFull(share: number): boolean {
    if (this.#waiting.length >= share * MAX_WAITING || this.#waitingBytes >= share * MAX_WAITING_BYTES) return true;
    return this.#options.held.over(this.#client) !== undefined;
  }

  #failure(error: unknown): Answer {
    const message = error instanceof SqlEnvError ? error.what : messageOf(error);
    if (this.#kind === "ws") return errorReply("EXECUTION_ERROR", message);
    return { text: JSON.stringify(rpcError(null, RPC.internal, message)), kind: "EXECUTION_ERROR" };
  }

  /** Sends; waits for a client that does not read. */
  async #send(text: string): Promise<void> {
    if (this.#socket.bufferedAmount < MAX_UNREAD_BYTES) {
      this.#socket.send(text);
      return;
    }
    const { held, log } = this.#options;
    const bytes = Buffer.byteLength(text);
    held.add(this.#client, bytes);
    let left = this.#socket.bufferedAmount + bytes;
    const watch = setInterval(() => {
      const isStuck = this.#socket.bufferedAmount >= left;
      left = this.#socket.bufferedAmount;
      if (!isStuck) return;
      log("warning", "does_not_read", { client: this.#client });
      this.terminate();
    }, this.#options.replySeconds * 1000);
    await new Promise<void>((resolve) => this.#socket.send(text, () => resolve()));
    clearInterval(watch);
    held.giveBack(this.#client, bytes);
  }

  #release(): void {
    const slot = this.#slot;
    this.#slot = undefined;
    for (const { bytes } of this.#waiting) this.#options.held.giveBack(this.#client, bytes);
    this.#options.held.giveBack(this.#client, this.#inWork);
    this.#inWork = 0;
    this.#waiting.length = 0;
    if (slot?.isAttached) this.#options.sessions.detach(slot);
    else if (slot) this.#options.sessions.release(slot.id);
  }

  #end(code: number): void {
    const slot = this.#slot;
    this.#release();
    const { log } = this.#options;
    const seconds = slot && (performance.now() - slot.openedAt) / 1000;
    log("info", "socket_closed", { client: this.#client, code, messages: this.#messages, seconds });
  }
}
