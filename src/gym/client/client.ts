// SQLEnvClient plays an environment on a server, with the interface of a local one. It runs in Node and in browsers.

import { ServerError } from "../../errors.ts";
import type { Outcome, ResetOptions, SQLAction, SQLObservation } from "../env/index.ts";
import { DEFAULT_RULES, type EnvironmentRules, rulesFromId } from "../env/rules.ts";
import type { PlayableEnvironment } from "../evaluation/index.ts";
import { OpenEnvSession, SERVER_FULL, type SessionOptions } from "./session.ts";

export interface ClientOptions extends SessionOptions {
  /** How often to retry a connection that fails or is refused because the server is full. @default 3 */
  readonly retries?: number;
  /** Seconds before the first retry; the delay doubles with each retry, up to two seconds. @default 0.2 */
  readonly retrySeconds?: number;
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
  readonly #session: OpenEnvSession;
  readonly #options: ClientOptions;
  #rules: Promise<EnvironmentRules> | undefined;

  /** `url` is the server's, such as http://localhost:8000. */
  constructor(url: string, options: ClientOptions = {}) {
    this.#session = new OpenEnvSession(url, options);
    this.#options = options;
  }

  /** Starts an episode. Connects first, also after a lost connection. */
  async reset(options: RemoteResetOptions = {}): Promise<SQLObservation> {
    return this.#session.queue(async () => {
      const { retries = 3, retrySeconds = 0.2 } = this.#options;
      for (let attempt = 0; ; attempt++) {
        try {
          await this.#connect();
          return parseObservation(await this.#session.ask("observation", { type: "reset", data: options }));
        } catch (error) {
          if (attempt >= retries || !isRetryable(error)) throw error;
          this.#session.close();
          const seconds = Math.min(retrySeconds * 2 ** attempt, MAX_RETRY_SECONDS);
          await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
        }
      }
    });
  }

  /** Takes an action in the running episode. */
  async step(action: SQLAction): Promise<SQLObservation> {
    const session = this.#session;
    return session.queue(async () =>
      parseObservation(await session.ask("observation", { type: "step", data: action })),
    );
  }

  /** The state of the session. */
  async state(): Promise<RemoteState> {
    const session = this.#session;
    return session.queue(async () => (await session.ask("state", { type: "state" })) as RemoteState);
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
    await this.#session.queue(async () => this.#session.close());
  }

  async #connect(): Promise<void> {
    if (!this.#session.isOpen) this.#rules = undefined; // the server may have been replaced
    await this.#session.connect();
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
