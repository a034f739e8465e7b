// SQLEnvClient plays an environment on a server, with the interface of a local one. It runs in Node and in browsers.

import { ServerError } from "../../errors.ts";
import type { Outcome, ResetOptions, SQLAction, SQLObservation } from "../env/index.ts";
import { DEFAULT_RULES, type EnvironmentRules, rulesFromId } from "../env/rules.ts";
import type { PlayableEnvironment } from "../evaluation/index.ts";
import { Connection, type SocketLike, type SocketMaker } from "./socket.ts";

export interface ClientOptions {
  /** Sent in a header, or as `?api_key=` where WebSockets cannot send headers, as in browsers. */
  readonly apiKey?: string | undefined;
  /** Seconds to wait for the connection. @default 10 */
  readonly connectSeconds?: number;
  /** Seconds to wait for each reply. @default 60 */
  readonly replySeconds?: number;
  /** How often to retry a connection that fails or is refused because the server is full. @default 3 */
  readonly retries?: number;
  /** Seconds before the first retry; the delay doubles with each retry, up to two seconds. @default 0.2 */
  readonly retrySeconds?: number;
  /** Creates the socket. @default the platform's WebSocket, or the `ws` package where there is none, as in Node 20 */
  readonly socket?: SocketMaker;
}

/** The state of the session on the server. */
export interface RemoteState extends Outcome {
  readonly episode_id: string | null;
  readonly step_count: number;
  readonly question_id: string | null;
  readonly step_budget: number;
  /** Id of the environment's rules. Older servers do not send it. */
  readonly rules?: string;
}

/** Options of `reset`. */
export interface RemoteResetOptions extends ResetOptions {
  readonly episode_id?: string;
}

const MAX_RETRY_SECONDS = 2;
const SERVER_FULL = "CAPACITY_REACHED";

/**
 * An environment on a server. It connects when first used. A lost connection ends its episode: the current step and later
 * ones reject with `connection_lost`, and the next `reset` connects again.
 *
 * @example
 * const env = new SQLEnvClient("http://localhost:8000");
 * const { question } = await env.reset({ split: "eval", seed: 1 });
 * const { result } = await env.step({ action_type: "DESCRIBE", argument: "customers" });
 * await env.close();
 */
export class SQLEnvClient implements PlayableEnvironment {
  readonly #url: string;
  readonly #options: ClientOptions;
  #connection: Connection | undefined;
  #rules: Promise<EnvironmentRules> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** `url` is the server's, such as http://localhost:8000. */
  constructor(url: string, options: ClientOptions = {}) {
    this.#url = socketUrl(url);
    this.#options = options;
  }

  /** Starts an episode. Connects first, also after a lost connection. */
  async reset(options: RemoteResetOptions = {}): Promise<SQLObservation> {
    return this.#queue(async () => {
      const { retries = 3, retrySeconds = 0.2 } = this.#options;
      for (let attempt = 0; ; attempt++) {
        try {
          if (!this.#connection?.isOpen) this.#connection = await this.#connect();
          return parseObservation(await this.#ask("observation", { type: "reset", data: options }));
        } catch (error) {
          if (attempt >= retries || !isRetryable(error)) throw error;
          this.#connection?.close();
          const seconds = Math.min(retrySeconds * 2 ** attempt, MAX_RETRY_SECONDS);
          await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
        }
      }
    });
  }

  /** Takes an action in the running episode. */
  async step(action: SQLAction): Promise<SQLObservation> {
    return this.#queue(async () => parseObservation(await this.#ask("observation", { type: "step", data: action })));
  }

  /** The state of the session. */
  async state(): Promise<RemoteState> {
    return this.#queue(async () => (await this.#ask("state", { type: "state" })) as RemoteState);
  }

  /** The episode's rewards so far. */
  get outcome(): Promise<Outcome> {
    return this.state().then(({ correctness, progress, operational, done_reason }) => ({
      correctness,
      progress,
      operational,
      done_reason,
    }));
  }

  /** The server's rules, or the default rules if the server sends none or the id of another version. */
  get rules(): Promise<EnvironmentRules> {
    this.#rules ??= this.state().then(({ rules }) => rulesFromId(rules ?? "") ?? DEFAULT_RULES);
    return this.#rules;
  }

  /** Ends the session. A later reset opens another. */
  async close(): Promise<void> {
    await this.#queue(async () => {
      this.#connection?.close();
      this.#connection = undefined;
    });
  }

  async #connect(): Promise<Connection> {
    this.#rules = undefined; // the server may have been replaced
    const { apiKey, socket, connectSeconds = 10 } = this.#options;
    const milliseconds = connectSeconds * 1000;
    if (!socket && typeof WebSocket === "undefined")
      return Connection.open(this.#url, await nodeSocket(apiKey), milliseconds);
    const url = new URL(this.#url);
    if (apiKey) url.searchParams.set("api_key", apiKey);
    return Connection.open(url.href, socket ?? ((address) => new WebSocket(address) as SocketLike), milliseconds);
  }

  async #ask(type: string, message: object): Promise<unknown> {
    if (!this.#connection) {
      throw new ServerError("not_connected", { what: "no episode is running", remedy: "call reset() first" });
    }
    const text = await this.#connection.ask(JSON.stringify(message), (this.#options.replySeconds ?? 60) * 1000);
    const reply = JSON.parse(text) as { type: string; data: Record<string, unknown> };
    if (reply.type === type) return reply.data;
    if (reply.type !== "error")
      throw new ServerError("bad_reply", { what: "the server sent another reply", value: text });
    const { code, message: what, errors } = reply.data;
    const value = errors === undefined ? undefined : JSON.stringify(errors);
    throw new ServerError(String(code), { what: String(what), value });
  }

  /** Sends one request at a time, because replies carry no ids. */
  #queue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}

function isRetryable(error: unknown): boolean {
  return error instanceof ServerError && ["connect_failed", "connection_lost", SERVER_FULL].includes(error.code);
}

/** Builds the observation from a reply, which has `reward` and `done` beside it. */
function parseObservation(data: unknown): SQLObservation {
  const { observation, reward, done } = data as { observation: SQLObservation; reward: number | null; done: boolean };
  const { question, schema_info, result, step_count, budget_remaining, action_history } = observation ?? {};
  const isComplete =
    [question, schema_info, result].every((text) => typeof text === "string") &&
    [step_count, budget_remaining].every((count) => typeof count === "number") &&
    Array.isArray(action_history);
  if (!isComplete) {
    const value = JSON.stringify(data);
    throw new ServerError("bad_reply", { what: "the server sent an observation that is not complete", value });
  }
  const { metadata: _, ...seen } = observation as SQLObservation & { metadata?: unknown }; // a field of OpenEnv 0.10, not part of an observation
  return { ...seen, reward, done };
}

function socketUrl(text: string): string {
  if (!URL.canParse(text))
    throw new ServerError("bad_url", { what: "not a URL", value: text, remedy: "such as http://localhost:8000" });
  const url = new URL(text);
  url.protocol = url.protocol.replace("http", "ws");
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/ws`;
  return url.href;
}

async function nodeSocket(apiKey: string | undefined): Promise<SocketMaker> {
  const { WebSocket: NodeSocket } = await import("ws");
  const headers = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  return (url) => new NodeSocket(url, { headers }) as unknown as SocketLike;
}
