// SQLEnvClient: an environment on a server, used like one of ours, in Node and in browsers.

import { ServerError } from "../../errors.ts";
import type { Outcome, ResetOptions, SQLAction, SQLObservation } from "../env/index.ts";
import { DEFAULT_RULES, type EnvironmentRules, rulesFromId } from "../env/rules.ts";
import type { PlayableEnvironment } from "../evaluation/index.ts";
import { type SocketLike, type SocketMaker, Talk } from "./socket.ts";

export interface ClientOptions {
  /** Sent in a header, or where WebSockets cannot have one, as in browsers, as `?api_key=`. */
  readonly apiKey?: string | undefined;
  /** For the connection to stand. @default 10 */
  readonly connectSeconds?: number;
  /** For each reply. @default 60 */
  readonly replySeconds?: number;
  /** How often a connection that fails or is refused for want of slots is tried again. @default 3 */
  readonly retries?: number;
  /** Before the first retry; each later one waits twice as long, at most two seconds. @default 0.2 */
  readonly retrySeconds?: number;
  /** Makes a socket. @default the platform's WebSocket; where there is none, as in Node 20, that of `ws` */
  readonly socket?: SocketMaker;
}

/** How the session stands, as the server tells it. */
export interface RemoteState extends Outcome {
  readonly episode_id: string | null;
  readonly step_count: number;
  readonly question_id: string | null;
  readonly step_budget: number;
  /** Id of the environment's rules; older servers do not send it. */
  readonly rules?: string;
}

/** What a reset may ask for, beside the question. */
export interface RemoteResetOptions extends ResetOptions {
  readonly episode_id?: string;
}

const MAX_RETRY_SECONDS = 2;
const SHORT_OF_SLOTS = "CAPACITY_REACHED";

/**
 * An environment on a server. It connects when first used. A connection that is lost takes its episode with it: the step
 * under way and later ones reject with `connection_lost`, and the next `reset` connects again.
 */
export class SQLEnvClient implements PlayableEnvironment {
  readonly #url: string;
  readonly #options: ClientOptions;
  #talk: Talk | undefined;
  #rules: Promise<EnvironmentRules> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** `url` is the server's, such as http://localhost:8000. */
  constructor(url: string, options: ClientOptions = {}) {
    this.#url = socketUrl(url);
    this.#options = options;
  }

  /** Starts an episode. Connects, and connects again where the connection was lost. */
  async reset(options: RemoteResetOptions = {}): Promise<SQLObservation> {
    return this.#inTurn(async () => {
      const { retries = 3, retrySeconds = 0.2 } = this.#options;
      for (let attempt = 0; ; attempt++) {
        try {
          if (!this.#talk?.isOpen) this.#talk = await this.#connect();
          return parseObservation(await this.#ask("observation", { type: "reset", data: options }));
        } catch (error) {
          if (attempt >= retries || !isWorthARetry(error)) throw error;
          this.#talk?.close();
          const seconds = Math.min(retrySeconds * 2 ** attempt, MAX_RETRY_SECONDS);
          await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
        }
      }
    });
  }

  /** Takes an action of the running episode. */
  async step(action: SQLAction): Promise<SQLObservation> {
    return this.#inTurn(async () => parseObservation(await this.#ask("observation", { type: "step", data: action })));
  }

  /** How the session stands. */
  async state(): Promise<RemoteState> {
    return this.#inTurn(async () => (await this.#ask("state", { type: "state" })) as RemoteState);
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

  /** The rules the server was started with; the defaults where it names none, or rules of another version. */
  get rules(): Promise<EnvironmentRules> {
    this.#rules ??= this.state().then(({ rules }) => rulesFromId(rules ?? "") ?? DEFAULT_RULES);
    return this.#rules;
  }

  /** Ends the session. A later reset opens another. */
  async close(): Promise<void> {
    await this.#inTurn(async () => {
      this.#talk?.close();
      this.#talk = undefined;
    });
  }

  async #connect(): Promise<Talk> {
    this.#rules = undefined; // another server may have been started in its place
    const { apiKey, socket, connectSeconds = 10 } = this.#options;
    const milliseconds = connectSeconds * 1000;
    if (!socket && typeof WebSocket === "undefined")
      return Talk.open(this.#url, await nodeSocket(apiKey), milliseconds);
    const url = new URL(this.#url);
    if (apiKey) url.searchParams.set("api_key", apiKey);
    return Talk.open(url.href, socket ?? ((address) => new WebSocket(address) as SocketLike), milliseconds);
  }

  async #ask(type: string, message: object): Promise<unknown> {
    if (!this.#talk) {
      throw new ServerError("not_connected", { what: "no episode is running", remedy: "call reset() first" });
    }
    const text = await this.#talk.ask(JSON.stringify(message), (this.#options.replySeconds ?? 60) * 1000);
    const reply = JSON.parse(text) as { type: string; data: Record<string, unknown> };
    if (reply.type === type) return reply.data;
    if (reply.type !== "error")
      throw new ServerError("bad_reply", { what: "the server sent another reply", value: text });
    const { code, message: what, errors } = reply.data;
    const value = errors === undefined ? undefined : JSON.stringify(errors);
    throw new ServerError(String(code), { what: String(what), value });
  }

  /** One question at a time: answers carry no number. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}

function isWorthARetry(error: unknown): boolean {
  return error instanceof ServerError && ["connect_failed", "connection_lost", SHORT_OF_SLOTS].includes(error.code);
}

/** The observation in a reply, whose reward and `done` are beside it. */
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
  return { ...observation, reward, done };
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
