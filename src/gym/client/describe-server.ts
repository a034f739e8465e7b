// What an OpenEnv server says about itself over HTTP: its name and the schemas of actions and observations.
import { messageOf, ServerError } from "../../errors.ts";
import { type JsonObject, serverUrl } from "./session.ts";

export interface ServerDescription {
  readonly name: string;
  /** JSON schemas. */
  readonly action: JsonObject;
  readonly observation: JsonObject;
}

export interface DescribeOptions {
  readonly apiKey?: string | undefined;
  /** Seconds to wait for each of the two replies. @default 30 */
  readonly seconds?: number | undefined;
}

/**
 * Reads a server's /metadata and /schema.
 *
 * @example
 * const { name, action } = await describeServer("http://localhost:8000");
 */
export async function describeServer(url: string, options: DescribeOptions = {}): Promise<ServerDescription> {
  const base = serverUrl(url).replace(/^ws/, "http");
  const { name } = await getObject(`${base}/metadata`, options);
  const { action, observation } = await getObject(`${base}/schema`, options);
  if (!isObject(action) || !isObject(observation))
    throw notOpenEnv(`${base}/schema`, "its reply has no schemas of actions and observations");
  return { name: typeof name === "string" && name !== "" ? name : new URL(base).host, action, observation };
}

async function getObject(url: string, { apiKey, seconds = 30 }: DescribeOptions): Promise<JsonObject> {
  const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, { headers, signal: AbortSignal.timeout(seconds * 1000) });
    text = await response.text();
  } catch (cause) {
    const isLate = cause instanceof Error && cause.name === "TimeoutError";
    const why = isLate ? `no answer within ${seconds} s` : messageOf((cause as Error).cause ?? cause);
    throw new ServerError("connect_failed", {
      what: "cannot connect to",
      value: url,
      remedy: `${why || "the connection was refused"}; is the server running?`,
      cause,
    });
  }
  if (response.status === 401 || response.status === 403)
    throw new ServerError("refused", {
      what: `the server refuses (HTTP ${response.status})`,
      value: url,
      remedy: "give its API key",
    });
  if (response.status >= 500)
    throw new ServerError("server_failed", {
      what: `the server failed (HTTP ${response.status})`,
      value: url,
      remedy: "see the server's log",
    });
  if (!response.ok) throw notOpenEnv(url, `HTTP ${response.status}`);
  try {
    const parsed: unknown = JSON.parse(text);
    if (isObject(parsed)) return parsed;
  } catch {
    // refused below
  }
  throw notOpenEnv(url, "its reply is not a JSON object");
}

function notOpenEnv(url: string, why: string): ServerError {
  return new ServerError("not_openenv", {
    what: `this is no OpenEnv server (${why})`,
    value: url,
    remedy: "give the URL of one, without a path such as /web or /ws",
  });
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
