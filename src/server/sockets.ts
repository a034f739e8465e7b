// The sockets: one session each. Messages of a socket are answered one after another; its pings at any time.
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { messageOf, SqlEnvError } from "../errors.ts";
import type { Access } from "./access.ts";
import { clientOf, urlOf } from "./adapter.ts";
import { CapacityError, type Hub, type Slot } from "./hub.ts";
import { MAX_UNREAD_BYTES, MAX_WAITING } from "./limits.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import type { Pool } from "./pool.ts";
import type { Answer } from "./protocol.ts";
import type { RateLimit } from "./rate.ts";
import { RPC, rpcError } from "./rpc.ts";
import { errorReply } from "./session.ts";

export interface SocketOptions {
  readonly pool: Pool;
  readonly hub: Hub;
  readonly access: Access;
  readonly rate: RateLimit;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly maxMessageBytes: number;
  readonly pingSeconds: number;
  readonly silentSeconds: number;
}

/** /ws speaks OpenEnv's messages, /mcp plain JSON-RPC. */
type Kind = "ws" | "mcp";

/** Takes over the upgrades of an HTTP server. */
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
    });
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      this.#upgrade(request, socket, head);
    });
    this.#pinging = setInterval(() => this.#ping(), options.pingSeconds * 1000);
    this.#pinging.unref();
  }

  /** Lets no one in any more, finishes what is being answered, and closes every socket with 1001. */
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
    const url = urlOf(request);
    const kind = url?.pathname === "/ws" ? "ws" : url?.pathname === "/mcp" ? "mcp" : undefined;
    if (!url || !kind) this.#refuse(request, socket, 404, "Not Found");
    else if (this.#draining) this.#refuse(request, socket, 503, "Shutting down");
    else {
      const header = (name: string) => request.headers[name] as string | undefined;
      const refusal = this.#options.access.refuse({ url, header });
      if (refusal) this.#refuse(request, socket, refusal.status, refusal.detail);
      else
        this.#sockets.handleUpgrade(request, socket, head, (websocket) => {
          const connection = new Connection(websocket, kind, clientOf(request), this.#options);
          this.#connections.add(connection);
          void connection.closed.then(() => this.#connections.delete(connection));
        });
    }
  }

  #refuse(request: IncomingMessage, socket: Duplex, status: number, detail: string): void {
    const { metrics, log } = this.#options;
    metrics.count("sqlenv_sessions_refused_total", { reason: String(status) });
    log("warning", "refused", { client: clientOf(request), status, detail });
    const body = JSON.stringify({ detail });
    const head = `HTTP/1.1 ${status} ${detail}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    socket.end(`${head}\r\n\r\n${body}`);
  }

  #ping(): void {
    const before = Date.now() - this.#options.silentSeconds * 1000;
    for (const connection of this.#connections) connection.ping(before);
  }
}

/** A socket and its session. */
class Connection {
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #kind: Kind;
  readonly #client: string;
  readonly #options: SocketOptions;
  readonly #waiting: string[] = [];
  #slot: Slot | undefined;
  #pumping: Promise<void> | undefined;
  #heardAt = Date.now();
  #messages = 0;

  constructor(socket: WebSocket, kind: Kind, client: string, options: SocketOptions) {
    this.#socket = socket;
    this.#kind = kind;
    this.#client = client;
    this.#options = options;
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.on("close", (code) => this.#end(code));
    socket.on("error", (error) => options.log("warning", "socket_error", { client, message: error.message })); // 1007, 1009 and the like; close follows
    socket.on("pong", () => this.#hear());
    socket.on("ping", () => this.#hear());
    socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    this.#open();
  }

  /** Pings, or gives up on a peer that has shown no sign of life since `before`. */
  ping(before: number): void {
    if (this.#heardAt < before) {
      this.#options.log("warning", "silent", { client: this.#client, session: this.#slot?.id });
      this.terminate();
    } else if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  /** Resolves when everything received so far is answered; what comes later is left in the network. */
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
    const { hub, metrics, log } = this.#options;
    try {
      this.#slot = hub.take(this.#client, () => this.close(1000, "idle"));
    } catch (error) {
      const { message, active_sessions, max_sessions } = error as CapacityError;
      if (!(error instanceof CapacityError)) throw error;
      metrics.count("sqlenv_sessions_refused_total", { reason: "capacity" });
      this.#refuse("CAPACITY_REACHED", message, { active_sessions, max_sessions });
      return;
    }
    metrics.count("sqlenv_sessions_total", { kind: this.#kind });
    log("info", "session_open", { client: this.#client, session: this.#slot.id, kind: this.#kind });
    this.#slot.ready.catch((error: unknown) => {
      log("error", "no_environment", { message: messageOf(error) });
      this.#release();
      this.#refuse("FACTORY_ERROR", messageOf(error), { factory_name: "SQLEnvironment" });
    });
  }

  /** The protocol's way to say no: the error unprompted, then the close. */
  #refuse(code: "CAPACITY_REACHED" | "FACTORY_ERROR", message: string, data: object): void {
    this.#options.metrics.count("sqlenv_errors_total", { code });
    const text =
      this.#kind === "ws"
        ? errorReply(code, message, data).text!
        : JSON.stringify(rpcError(null, RPC.server, message, data));
    this.#socket.send(text, () => this.#socket.close(1000));
  }

  #hear(): void {
    this.#heardAt = Date.now();
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#hear();
    if (!this.#slot) return;
    if (isBinary) {
      this.#options.metrics.count("sqlenv_errors_total", { code: "SESSION_ERROR" });
      this.#release();
      this.#socket.send(errorReply("SESSION_ERROR", "frames must be text, not binary").text!, () =>
        this.#socket.close(1000),
      );
      return;
    }
    this.#waiting.push(String(data));
    if (this.#waiting.length >= MAX_WAITING) this.#socket.pause();
    this.#pumping ??= this.#pump().finally(() => {
      this.#pumping = undefined;
    });
  }

  /** Answers what is waiting, in order, as fast as the client may speak and does read. */
  async #pump(): Promise<void> {
    const { pool, rate, metrics } = this.#options;
    for (let text = this.#waiting.shift(); text !== undefined && this.#slot; text = this.#waiting.shift()) {
      const slot = this.#slot;
      const delay = rate.take(this.#client);
      if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
      const from = performance.now();
      const answer = await pool
        .ask(slot.id, this.#client, { verb: this.#kind === "ws" ? "frame" : "rpcFrame", text })
        .catch((error: unknown): Answer => this.#failure(error));
      if (!this.#slot) return; // the client went away meanwhile
      slot.touchedAt = Date.now();
      this.#messages++;
      const isError = answer.kind === answer.kind.toUpperCase();
      if (isError) metrics.count("sqlenv_errors_total", { code: answer.kind });
      else metrics.count("sqlenv_messages_total", { type: answer.kind });
      metrics.time((performance.now() - from) / 1000);
      if (answer.text !== null) await this.#send(answer.text);
      if (answer.close !== undefined) this.close(answer.close, "");
      if (this.#socket.isPaused && this.#waiting.length < MAX_WAITING / 2) this.#socket.resume();
    }
  }

  #failure(error: unknown): Answer {
    const message = error instanceof SqlEnvError ? error.what : messageOf(error);
    if (this.#kind === "ws") return errorReply("EXECUTION_ERROR", message);
    return { text: JSON.stringify(rpcError(null, RPC.internal, message)), kind: "EXECUTION_ERROR" };
  }

  /** Sends; a client that does not read is waited for. */
  async #send(text: string): Promise<void> {
    if (this.#socket.bufferedAmount < MAX_UNREAD_BYTES) {
      this.#socket.send(text);
      return;
    }
    await new Promise<void>((resolve) => this.#socket.send(text, () => resolve()));
  }

  #release(): void {
    const slot = this.#slot;
    this.#slot = undefined;
    this.#waiting.length = 0;
    if (slot) this.#options.hub.release(slot.id);
  }

  #end(code: number): void {
    const slot = this.#slot;
    this.#release();
    const { log } = this.#options;
    const seconds = slot && (Date.now() - slot.openedAt) / 1000;
    log("info", "socket_closed", { client: this.#client, session: slot?.id, code, messages: this.#messages, seconds });
  }
}
