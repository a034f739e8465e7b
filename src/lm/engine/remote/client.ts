// HTTP to a server of the Tinker API: one request with retries, and requests whose result is a future.
//
//     a request     408, 409, 429, 5xx, no connection ──▶ again after 1, 2, 4 … 30 s, for five minutes
//                   402 ──▶ again every 5 s, for an hour: a hosted service waits for a payment
//                   anything else ──▶ EngineError with the server's message
//     a future      polled with long polls; 410 ──▶ the request is sent again, as described below
//                   400 without a message, which proxies send ──▶ again, three times
//
// A request that is sent again has the same idempotency key and sequence number, by which servers know it.
import { EngineError, messageOf } from "../../../errors.ts";
import { PROTOBUF } from "./messages.ts";

export interface ClientOptions {
  /** The server, such as http://localhost:8000. */
  readonly url: string;
  /** Sent as X-API-Key. @default none */
  readonly apiKey?: string | undefined;
  /** Seconds for which a failed request is retried. @default 300 */
  readonly retrySeconds?: number;
  /** Seconds that the server may take for one result. @default 3600 */
  readonly timeoutSeconds?: number;
  /** Seconds of one long poll. @default 45 */
  readonly pollSeconds?: number;
  /** The first pause before a request is sent again, in milliseconds; it doubles. @default 1000 */
  readonly backoffMs?: number;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A reply: JSON, or the bytes of a protobuf message. */
export type Reply = { readonly json: unknown } | { readonly proto: Uint8Array };

const REQUEST_SECONDS = 60;
const LONGEST_PAUSE_MS = 30_000;
const BILLING_PAUSE_MS = 5_000;
const BILLING_SECONDS = 3_600;
const BARE_400 = 3;
const RESUBMISSIONS = 3;

const RESUME = "checkpoints on the server are intact: resume the training with sqlenv train --resume";

/** A failed attempt: its status and what the server said. */
interface Failure {
  /** 0: no reply. */
  readonly status: number;
  readonly words: string;
  readonly retryAfterMs: number | null;
}

export class TinkerClient {
  readonly url: string;
  /** Whether some reply was a protobuf message. */
  speaksProtobuf = false;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #options: Required<Omit<ClientOptions, "url" | "apiKey">>;
  readonly #closed = new AbortController();

  constructor({ url, apiKey, ...options }: ClientOptions) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw new EngineError("engine_refused", {
        what: "not the address of a server",
        value: url,
        remedy: "for example http://localhost:8000",
      });
    this.url = url.replace(/\/+$/, "");
    this.#headers = apiKey ? { "x-api-key": apiKey } : {};
    this.#options = { retrySeconds: 300, timeoutSeconds: 3_600, pollSeconds: 45, backoffMs: 1_000, ...options };
  }

  /** Ends all requests that are under way. */
  close(): void {
    this.#closed.abort(new EngineError("engine_unreachable", { what: "the engine is closed" }));
  }

  /** Sends a request until it is answered; throws EngineError if it is refused. */
  async request(
    path: string,
    body: object | Uint8Array | null,
    { signal, headers = {} }: RequestOptions = {},
  ): Promise<Reply> {
    const key = crypto.randomUUID();
    const started = performance.now();
    for (let attempt = 0; ; attempt++) {
      const reply = await this.#attempt(path, body, { signal, headers: { "x-idempotency-key": key, ...headers } });
      if (!("status" in reply)) return reply;
      const seconds = (performance.now() - started) / 1000;
      const isBill = reply.status === 402 && seconds < BILLING_SECONDS;
      if (!isBill && !(isPassing(reply.status) && seconds < this.#options.retrySeconds))
        throw this.#refused(path, reply);
      await this.#pause(isBill ? BILLING_PAUSE_MS : this.#pauseMs(attempt, reply), signal);
    }
  }

  /** A request whose reply is JSON. */
  async json(path: string, body: object | Uint8Array | null, options?: RequestOptions): Promise<unknown> {
    const reply = await this.request(path, body, options);
    if ("json" in reply) return reply.json;
    throw this.wrongReply(path, "protobuf where JSON was expected");
  }

  /**
   * Waits for the result of a submitted request. `submit` sends it, again if the server has lost it, and returns the
   * immediate reply with its `request_id`.
   */
  async result(
    path: string,
    submit: () => Promise<unknown>,
    { signal, headers = {} }: RequestOptions = {},
  ): Promise<Reply> {
    const started = performance.now();
    for (let submission = 0; ; submission++) {
      const request_id = requestId(await submit());
      if (request_id === null) throw this.wrongReply(path, "no request_id");
      const result = await this.#poll(path, request_id, started, { signal, headers });
      if (result !== "gone") return result;
      if (submission >= RESUBMISSIONS)
        throw new EngineError("engine_failed", {
          what: `${this.url} has lost the result of ${path} several times`,
          remedy: RESUME,
        });
    }
  }

  /** The error for a reply that is not as the API defines it. */
  wrongReply(path: string, why: string): EngineError {
    return new EngineError("engine_reply", {
      what: `${this.url} answered ${path} with something other than a reply of the Tinker API`,
      value: why,
      remedy: "is it a server of the Tinker API, in a version that sqlenv supports?",
    });
  }

  /** Long polls until there is a result; "gone" if the server no longer knows the request. */
  async #poll(path: string, request_id: string, started: number, options: RequestOptions): Promise<Reply | "gone"> {
    const { timeoutSeconds, retrySeconds } = this.#options;
    let [failures, bare, lost] = [0, 0, 0];
    for (;;) {
      const asked = performance.now();
      if ((asked - started) / 1000 > timeoutSeconds)
        throw new EngineError("engine_timeout", {
          what: `${this.url} has not answered ${path} within`,
          value: `${timeoutSeconds} s`,
          remedy: RESUME,
        });
      const headers = { accept: `${PROTOBUF}, application/json`, ...options.headers };
      const reply = await this.#attempt("retrieve_future", { request_id }, { ...options, headers }, true);
      const isQuick = performance.now() - asked < 1_000;
      if (!("status" in reply)) {
        failures = 0;
        if ("proto" in reply) return reply;
        const { type, status, error, category } = (reply.json ?? {}) as Record<string, unknown>;
        if (type === "try_again" || status === "complete_metadata") {
          // A server that does not hold the poll must not be asked in a tight loop.
          if (type === "try_again" && isQuick) await this.#pause(this.#pauseMs(0, null) / 5, options.signal);
          continue;
        }
        if (typeof error === "string" || type === "RequestFailedResponse")
          throw this.#failed(path, wordsOf(reply.json) ?? String(category ?? "no reason given"));
        return reply;
      }
      if (reply.status === 410) return "gone";
      if (reply.status === 400 && reply.words === "" && bare++ < BARE_400) continue;
      if (reply.status === 400) throw this.#failed(path, reply.words || "HTTP 400 without a reason");
      const isPoll = reply.status === 408 || (reply.status === 0 && !isQuick);
      if (isPoll) {
        failures = 0; // the poll ended without a result, as polls do
        if (isQuick) await this.#pause(this.#pauseMs(0, null) / 5, options.signal);
        continue;
      }
      if (!isPassing(reply.status) && reply.status !== 402) throw this.#refused(path, reply);
      if (failures === 0) lost = asked;
      if (reply.status !== 402 && (performance.now() - lost) / 1000 > retrySeconds) throw this.#refused(path, reply);
      await this.#pause(reply.status === 402 ? BILLING_PAUSE_MS : this.#pauseMs(failures++, reply), options.signal);
    }
  }

  /** Sends a request once. Throws only if the caller or `close` aborts it. */
  async #attempt(
    path: string,
    body: object | Uint8Array | null,
    { signal, headers }: RequestOptions,
    isPoll = false,
  ): Promise<Reply | Failure> {
    const stop = AbortSignal.any([this.#closed.signal, ...(signal ? [signal] : [])]);
    stop.throwIfAborted();
    const timeout = AbortSignal.timeout(1000 * (isPoll ? this.#options.pollSeconds : REQUEST_SECONDS));
    const isBytes = body instanceof Uint8Array;
    try {
      const response = await fetch(`${this.url}/api/v1/${path}`, {
        method: body === null ? "GET" : "POST",
        headers: {
          ...this.#headers,
          ...(body !== null && { "content-type": isBytes ? PROTOBUF : "application/json" }),
          ...headers,
        },
        ...(body !== null && { body: isBytes ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) }),
        signal: AbortSignal.any([stop, timeout]),
      });
      const { status } = response;
      const type = response.headers.get("content-type") ?? "";
      if (response.ok && type.includes("protobuf")) {
        this.speaksProtobuf = true;
        return { proto: new Uint8Array(await response.arrayBuffer()) };
      }
      if (response.ok && /octet-stream|gzip|x-tar/.test(type))
        return { proto: new Uint8Array(await response.arrayBuffer()) };
      const text = await response.text();
      if (response.ok) {
        try {
          return { json: JSON.parse(text) as unknown };
        } catch {
          return { status: 415, words: `not JSON: ${text.slice(0, 100)}`, retryAfterMs: null };
        }
      }
      const after = Number(response.headers.get("retry-after") ?? Number.NaN);
      return { status, words: wordsOf(parsed(text)) ?? "", retryAfterMs: after >= 0 ? 1000 * after : null };
    } catch (error) {
      stop.throwIfAborted();
      const cause = error instanceof Error && error.cause ? error.cause : error;
      return { status: 0, words: messageOf(cause) || String((cause as { code?: string }).code), retryAfterMs: null };
    }
  }

  #pauseMs(attempt: number, failure: Failure | null): number {
    return Math.min(failure?.retryAfterMs ?? this.#options.backoffMs * 2 ** attempt, LONGEST_PAUSE_MS);
  }

  /** Waits, unless aborted. */
  #pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    const stop = AbortSignal.any([this.#closed.signal, ...(signal ? [signal] : [])]);
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        reject(stop.reason);
      };
      const timer = setTimeout(() => {
        stop.removeEventListener("abort", end);
        resolve();
      }, milliseconds);
      if (stop.aborted) end();
      else stop.addEventListener("abort", end, { once: true });
    });
  }

  #failed(path: string, words: string): EngineError {
    return new EngineError("engine_failed", { what: `${this.url} failed at ${path}`, value: words, remedy: RESUME });
  }

  #refused(path: string, { status, words }: Failure): EngineError {
    const value = [status > 0 ? `HTTP ${status}` : "", words].filter(Boolean).join(", ");
    if (status === 0)
      return new EngineError("engine_unreachable", {
        what: `cannot reach the engine at ${this.url}`,
        value,
        remedy: `is the server running? ${RESUME}`,
      });
    if (isPassing(status))
      return new EngineError("engine_unreachable", {
        what: `${this.url} did not accept ${path} for ${this.#options.retrySeconds} s`,
        value,
        remedy: RESUME,
      });
    const remedies: Readonly<Record<number, string>> = {
      401: "set TINKER_API_KEY to a key of this server",
      402: "the server waits for a payment",
      403: "set TINKER_API_KEY to a key of this server",
      404: `the server may have been restarted; ${RESUME}`,
    };
    return new EngineError("engine_refused", {
      what: `${this.url} refused ${path}`,
      value,
      remedy: remedies[status],
    });
  }
}

/** Whether a request may succeed if it is sent again: no connection, a full or failing server. */
function isPassing(status: number): boolean {
  return status === 0 || status === 408 || status === 409 || status === 429 || status >= 500;
}

function requestId(reply: unknown): string | null {
  const { request_id } = (reply ?? {}) as { request_id?: unknown };
  return typeof request_id === "string" ? request_id : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What a server says about a failure, in any of the known shapes. */
function wordsOf(reply: unknown): string | null {
  if (typeof reply !== "object" || reply === null) return null;
  const { detail, error, error_message, message } = reply as Record<string, unknown>;
  const words = detail ?? error_message ?? error ?? message;
  if (words === undefined || words === null) return null;
  return typeof words === "string" ? words : JSON.stringify(words);
}
