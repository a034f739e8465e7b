// A session with any OpenEnv server: JSON actions and observations over its WebSocket. One connection is one environment.
import { messageOf, ServerError } from "../../errors.ts";
import { Connection, type SocketLike, type SocketMaker } from "./socket.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export interface SessionOptions {
  /** Sent as a bearer token in a header; as `?api_key=` in browsers, whose WebSockets cannot send headers. */
  readonly apiKey?: string | undefined;
  /** Seconds to wait for the connection. @default 10 */
  readonly connectSeconds?: number;
  /** Seconds to wait for each reply. @default 60 */
  readonly replySeconds?: number;
  /** Creates the socket. @default the platform's WebSocket, or the `ws` package in Node where there is none or a key is sent */
  readonly socket?: SocketMaker;
}

/** What a server replies to reset and step. */
export interface SessionReply {
  readonly observation: JsonObject;
  /** Null if the server sent none, and for NaN, which JSON does not have. */
  readonly reward: number | null;
  readonly done: boolean;
}

/** Whether this is Node, where the `ws` package sends the key in a header; other WebSockets send it in the address. */
const IS_NODE = (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined;

/** Code of the error of a server that has no free session. */
export const SERVER_FULL = "CAPACITY_REACHED";

/**
 * An environment on a server. A lost connection ends its episode: the current request and later ones reject with
 * `connection_lost`, and `connect` opens another session.
 *
 * @example
 * const session = new OpenEnvSession("http://localhost:8000");
 * await session.connect();
 * const { observation } = await session.reset({ seed: 1 });
 * const { reward, done } = await session.step({ message: "hello" });
 * await session.close();
 */
export class OpenEnvSession {
  readonly #url: string;
  readonly #options: SessionOptions;
  #connection: Connection | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** `url` is the server's, such as http://localhost:8000. */
  constructor(url: string, options: SessionOptions = {}) {
    this.#url = socketUrl(url);
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#connection?.isOpen ?? false;
  }

  /** Whether a request has not been answered yet. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  /** Opens a connection unless there is one. A full server says so in the reply to the first request. */
  async connect(): Promise<void> {
    if (this.isOpen) return;
    const { apiKey, socket, connectSeconds = 10 } = this.#options;
    const milliseconds = connectSeconds * 1000;
    if (!socket && (typeof WebSocket === "undefined" || (apiKey && IS_NODE))) {
      this.#connection = await Connection.open(this.#url, await nodeSocket(apiKey), milliseconds);
      return;
    }
    const url = new URL(this.#url);
    if (apiKey) url.searchParams.set("api_key", apiKey);
    const make = socket ?? ((address: string) => new WebSocket(address) as SocketLike);
    this.#connection = await Connection.open(url.href, make, milliseconds);
  }

  /** Starts an episode; `options` are the environment's own. */
  async reset(options: JsonObject = {}): Promise<SessionReply> {
    return readReply(await this.ask("observation", { type: "reset", data: options }));
  }

  /** Takes an action in the running episode. */
  async step(action: JsonObject): Promise<SessionReply> {
    return readReply(await this.ask("observation", { type: "step", data: action }));
  }

  /** The state of the environment. */
  async state(): Promise<JsonObject> {
    return (await this.ask("state", { type: "state" })) as JsonObject;
  }

  /** Sends a message and returns the `data` of the reply, which must have this type. */
  async ask(type: string, message: object): Promise<unknown> {
    const connection = this.#connection;
    if (!connection)
      throw new ServerError("not_connected", { what: "no episode is running", remedy: "call reset() first" });
    this.#waiting++;
    try {
      const text = await connection.ask(JSON.stringify(message), (this.#options.replySeconds ?? 60) * 1000);
      return readMessage(type, text);
    } finally {
      this.#waiting--;
    }
  }

  /** Runs one task after another, because replies carry no ids. */
  queue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Ends the session. */
  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

function readMessage(type: string, text: string): unknown {
  let reply: { type?: unknown; data?: unknown } | null;
  try {
    reply = JSON.parse(text) as typeof reply;
  } catch (cause) {
    throw new ServerError("bad_reply", {
      what: `the server sent a reply that is not JSON (${messageOf(cause)})`,
      value: text,
      cause,
    });
  }
  if (reply?.type === type) return reply.data;
  if (reply?.type !== "error")
    throw new ServerError("bad_reply", { what: "the server sent another reply", value: text });
  const { code, message: what, errors } = (reply.data ?? {}) as Record<string, unknown>;
  const value = errors === undefined ? undefined : JSON.stringify(errors);
  throw new ServerError(String(code), { what: String(what), value, cause: errors });
}

function readReply(data: unknown): SessionReply {
  const { observation, reward = null, done } = (data ?? {}) as Record<string, unknown>;
  const isObject = typeof observation === "object" && observation !== null && !Array.isArray(observation);
  const number = typeof reward === "boolean" ? Number(reward) : reward;
  const bad = (what: string) => new ServerError("bad_reply", { what, value: JSON.stringify(data) });
  if (!isObject) throw bad("the server sent an observation that is not an object");
  if (number !== null && typeof number !== "number") throw bad("the server sent a reward that is not a number");
  if (typeof done !== "boolean") throw bad("the server sent a `done` that is not true or false");
  return { observation: observation as JsonObject, reward: number, done };
}

function socketUrl(text: string): string {
  const url = new URL(serverUrl(text));
  url.protocol = url.protocol.replace("http", "ws");
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/ws`;
  return url.href;
}

/** A server's URL without a slash at the end. Throws ServerError if it is none. */
export function serverUrl(text: string): string {
  if (URL.canParse(text) && /^(https?|wss?):$/.test(new URL(text).protocol)) return text.replace(/\/+$/, "");
  throw new ServerError("bad_url", { what: "not a URL", value: text, remedy: "such as http://localhost:8000" });
}

async function nodeSocket(apiKey: string | undefined): Promise<SocketMaker> {
  const { WebSocket: NodeSocket } = await import("ws");
  const headers = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  return (url) => new NodeSocket(url, { headers }) as unknown as SocketLike;
}
