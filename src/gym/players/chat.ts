// A player that asks an OpenAI-compatible endpoint (vLLM, Ollama, llama.cpp, hosted services) for one reply per turn,
// without streaming.

import { messageOf, PlayerError, UsageError } from "../../errors.ts";
import { random } from "../../random.ts";
import { cutReply } from "../../stop-rule.ts";
import type { SQLAction } from "../env/index.ts";
import type { Player } from "./player.ts";
import { type PromptChoice, promptFor, promptId } from "./prompts/prompt.ts";
import { type ActionTool, callOf } from "./prompts/tools.ts";

export interface ChatOptions {
  /** The URL before `/chat/completions`, usually ending in /v1: "http://localhost:8000/v1". */
  readonly baseUrl: string;
  readonly model: string;
  /** Sent as a bearer token and never printed. */
  readonly apiKey?: string | undefined;
  /** @default 0 */
  readonly temperature?: number;
  /** @default the server's default */
  readonly topP?: number;
  /** New tokens per turn, including a model's thinking. @default 1024 */
  readonly maxTokens?: number;
  /** Sent with every request; servers that support it sample reproducibly. @default none */
  readonly seed?: number | undefined;
  /** @default instruct, without examples */
  readonly prompt?: PromptChoice | undefined;
  /** Timeout of a request, in milliseconds. @default 120000 */
  readonly timeoutMs?: number;
  /** Retries after 429, 5xx and broken connections. @default 3 */
  readonly retries?: number;
  /** Waits before a retry; rejects if aborted. @default a timer */
  readonly wait?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
}

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  /** Name of the tool, and its arguments as JSON. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/**
 * Thrown if a request gets no usable reply; `code` is chat_connection, chat_timeout, chat_auth, chat_not_found,
 * chat_http or chat_reply.
 */
export class ChatError extends PlayerError {}

const FIRST_WAIT_MS = 500; // doubled with each retry
const MAX_WAIT_MS = 60_000; // also limits Retry-After
// Errors worth a retry.
const BROKEN_CONNECTION = /\((?:ECONNRESET|EPIPE|ETIMEDOUT|EAI_AGAIN|UND_ERR_SOCKET|UND_ERR_CONNECT_TIMEOUT)\)$/;
const MAX_SHOWN_BODY = 300; // maximum characters of a server's response in an error message

/**
 * Makes a player that asks a chat model for each decision.
 *
 * @example
 * const player = chatPlayer({ baseUrl: "http://localhost:11434/v1", model: "qwen3:0.6b" });
 * const report = await evaluate(data, player, { episodes: 20 });
 */
export function chatPlayer(options: ChatOptions): Player {
  const complete = chatClient(options);
  const choice = options.prompt ?? { prompt: "instruct" };
  return {
    name: `chat:${options.model}`,
    prompt_id: promptId(choice),
    start: ({ signal, seed, rules }) => {
      const { system, examples, format, stop, stopStrings, tools, parse } = promptFor(choice, rules);
      const messages: ChatMessage[] = [{ role: "system", content: system }];
      let called: string | undefined; // the tool call that has no result yet
      const show = (content: string, isFirst: boolean) => {
        const answer = { role: "tool", tool_call_id: called ?? "" } as const;
        if (isFirst && called !== undefined) messages.push({ ...answer, content: "The task is over." });
        messages.push(isFirst || called === undefined ? { role: "user", content } : { ...answer, content });
        called = undefined;
      };
      const hear = (reply: string) => {
        const call = tools ? parse(reply) : null;
        if (call && !call.error) {
          called = `call_${messages.length}`;
          messages.push(callMessage(call.action, called));
        } else messages.push({ role: "assistant", content: reply || "(nothing)" }); // some servers refuse ""
      };
      for (const { user, assistant, isFirst = false } of examples) {
        show(user, isFirst);
        hear(assistant);
      }
      return async (observation) => {
        show(format(observation), observation.step_count === 0);
        let usage: ChatUsage | undefined;
        const text = await complete(messages, {
          signal,
          key: `${seed}/${observation.step_count}`,
          stop: stopStrings,
          ...(tools && { tools }),
          onUsage: (counted) => {
            usage = counted;
          },
        });
        const reply = cutReply(withoutThinking(text), stop);
        hear(reply);
        const { action, error } = parse(stop ? reply : text);
        const counted = usage && { tokens: usage.completion_tokens, prompt_tokens: usage.prompt_tokens };
        return { action, text, parse_error: error, ...counted };
      };
    },
  };
}

/** Requests one reply to a conversation. Throws ChatError, or the signal's reason if aborted. */
export type Complete = (messages: readonly ChatMessage[], options?: AskOptions) => Promise<string>;

export interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  readonly key?: string;
  /** Called with the token counts, if the endpoint reports them. */
  readonly onUsage?: (usage: ChatUsage) => void;
  /** Stop strings; a server that does not support them is asked again without. */
  readonly stop?: readonly string[];
  /** Functions that the model may call; a call is returned as text between <tool_call> tags. */
  readonly tools?: readonly ActionTool[];
}

/** Token counts of one request. */
export interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

/** Creates a client for one endpoint and model. */
export function chatClient({
  baseUrl,
  model,
  apiKey,
  temperature = 0,
  topP,
  maxTokens = 1024,
  seed,
  timeoutMs = 120_000,
  retries = 3,
  wait = pause,
}: ChatOptions): Complete {
  const url = endpointOf(baseUrl);
  if (model.trim() === "")
    throw new UsageError({ what: "a chat player needs a model", remedy: "name one with --model" });
  let tokensKey = "max_tokens"; // newer hosted models require max_completion_tokens, and their error says so
  let knowsStop = true;
  const hide = (text: string) => (apiKey ? text.replaceAll(apiKey, "[key]") : text);
  const fail = (code: string, what: string, remedy: string, cause?: unknown) =>
    new ChatError(code, { what: hide(what), value: shownUrl(url), remedy, cause });

  async function request(
    messages: readonly ChatMessage[],
    { stop = [], tools }: Pick<AskOptions, "stop" | "tools">,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const deadline = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) },
        body: JSON.stringify({
          model,
          messages,
          temperature,
          ...(topP !== undefined && { top_p: topP }),
          [tokensKey]: maxTokens,
          ...(seed !== undefined && { seed }),
          ...(stop.length > 0 && knowsStop && { stop }),
          ...(tools && { tools }),
        }),
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      });
      // Read the body here, under the same deadline: a server may also hang after its headers.
      return new Response(await response.text(), { status: response.status, headers: response.headers });
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (deadline.aborted) {
        throw fail(
          "chat_timeout",
          `no reply within ${timeoutMs / 1000} s`,
          "give a longer --timeout, or a faster model",
          error,
        );
      }
      const reason = reasonOf(error);
      const refused = /ECONNREFUSED/.test(reason);
      const remedy = refused ? "start the server, or correct --base-url" : "check --base-url and the network";
      throw fail("chat_connection", `cannot reach the endpoint (${reason})`, remedy, error);
    }
  }

  return async (messages, { signal, key = "", stop = [], tools, onUsage } = {}) => {
    for (let attempt = 0; ; attempt++) {
      let retryAfter: number | undefined;
      let failure: ChatError;
      try {
        const response = await request(messages, { stop, ...(tools && { tools }) }, signal);
        const body = await response.text();
        if (response.ok) {
          const content = contentOf(body, (what, remedy) => fail("chat_reply", what, remedy));
          const usage = usageOf(body);
          if (usage) onUsage?.(usage);
          return content;
        }
        if (response.status === 400 && tokensKey === "max_tokens" && body.includes("max_completion_tokens")) {
          tokensKey = "max_completion_tokens";
          continue;
        }
        if (response.status === 400 && stop.length > 0 && knowsStop && /\bstop\b/.test(body)) {
          knowsStop = false;
          continue;
        }
        failure = refusal(response.status, body, model, fail);
        if (response.status !== 429 && response.status < 500) throw failure;
        retryAfter = readRetryAfter(response.headers.get("retry-after"));
      } catch (error) {
        if (!(error instanceof ChatError) || !BROKEN_CONNECTION.test(error.what)) throw error;
        failure = error;
      }
      if (attempt >= retries) throw failure;
      // Concurrent episodes fail at the same time; jitter spreads their retries.
      const spread = 0.5 + random("retry", key, attempt).next();
      await wait(Math.min(MAX_WAIT_MS, retryAfter ?? FIRST_WAIT_MS * 2 ** attempt * spread), signal);
    }
  };
}

function endpointOf(baseUrl: string): string {
  const base = baseUrl
    .trim()
    .replace(/\/+$/, "")
    .replace(/\/chat\/completions$/, "");
  if (!/^https?:\/\/[^/]/.test(base) || !URL.canParse(base)) {
    throw new UsageError({
      what: "not a base URL",
      value: baseUrl,
      remedy: "give one such as http://localhost:8000/v1",
    });
  }
  return `${base}/chat/completions`;
}

/** The URL without user, password and query, which may contain a secret. */
function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

/** The message with its `cause`, in which fetch hides the reason. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
  return code ?? messageOf(cause ?? error);
}

/** The token counts in a reply, if any. */
function usageOf(body: string): ChatUsage | undefined {
  const { prompt_tokens, completion_tokens } = (JSON.parse(body) as { usage?: Partial<ChatUsage> | null }).usage ?? {};
  const isCount = (value: unknown): value is number => typeof value === "number" && value >= 0;
  return isCount(prompt_tokens) && isCount(completion_tokens) ? { prompt_tokens, completion_tokens } : undefined;
}

/** The text of a reply. A message without text (truncated while thinking) gives "": that is data, not an error. */
function contentOf(body: string, fail: (what: string, remedy: string) => ChatError): string {
  let reply: unknown;
  try {
    reply = JSON.parse(body);
  } catch {
    throw fail(
      `the reply is not JSON (${shorten(body)})`,
      "check that --base-url is an OpenAI-compatible API, usually ending in /v1",
    );
  }
  type Reply = { choices?: { message?: { content?: unknown; tool_calls?: unknown } }[] } | null;
  const choice = (reply as Reply)?.choices?.[0];
  const content = choice?.message?.content ?? null;
  if (!choice?.message || (content !== null && typeof content !== "string")) {
    throw fail(
      `the reply has no choices[0].message.content (${shorten(body)})`,
      "check that the server speaks the chat completions API",
    );
  }
  return (content ?? "") + callsText(choice.message.tool_calls);
}

/** Formats tool calls as the text that a model generates for them; only the first one is used. */
function callsText(calls: unknown): string {
  const call = Array.isArray(calls) ? (calls[0] as Partial<ToolCall> | null) : null;
  return call?.function ? `\n<tool_call>\n${JSON.stringify(call.function)}\n</tool_call>` : "";
}

/** Makes a message with a tool call from an action. */
function callMessage(action: SQLAction, id: string): ChatMessage {
  const { name, arguments: given } = callOf(action);
  const call = { id, type: "function", function: { name, arguments: JSON.stringify(given) } } as const;
  return { role: "assistant", content: "", tool_calls: [call] };
}

function refusal(
  status: number,
  body: string,
  model: string,
  fail: (code: string, what: string, remedy: string) => ChatError,
): ChatError {
  const said = shorten(saidIn(body));
  if (status === 401 || status === 403) {
    return fail(
      "chat_auth",
      `the endpoint refuses the key (${status}: ${said})`,
      "put a valid key into the variable named by --api-key-env",
    );
  }
  if (status === 404) {
    return fail(
      "chat_not_found",
      `no such model or path, model ${model} (404: ${said})`,
      "check --model, and that --base-url ends as the server wants, usually in /v1",
    );
  }
  const remedy =
    status === 429
      ? "lower --concurrency or wait"
      : status >= 500
        ? "try again, or look at the server's log"
        : "check --model and its limits";
  return fail("chat_http", `the endpoint answered ${status} (${said})`, remedy);
}

/** Extracts the server's error message: OpenAI's {error: {message}}, Ollama's {error}, else the body. */
function saidIn(body: string): string {
  try {
    const { error, message, detail } = JSON.parse(body) as Record<string, unknown>;
    const nested = typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
    return String(nested ?? message ?? (typeof detail === "string" ? detail : undefined) ?? body);
  } catch {
    return body;
  }
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, " ").trim() || "empty";
  return line.length <= MAX_SHOWN_BODY ? line : `${line.slice(0, MAX_SHOWN_BODY)}…`;
}

/** Parses Retry-After (seconds or a date) into milliseconds. */
function readRetryAfter(header: string | null): number | undefined {
  if (header === null || header.trim() === "") return undefined;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/**
 * Removes thinking, which is not sent back: it is long, and models are trained without the thinking of earlier turns.
 */
function withoutThinking(text: string): string {
  return text.replace(/^\s*<think>[\s\S]*?(?:<\/think>|$)/, "").trim();
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
