// POST and DELETE /mcp. A session comes from `initialize` (header `mcp-session-id`, as MCP specifies) or from
// `openenv/session/create` (parameter `session_id`, as OpenEnv does); without one, the client's plain HTTP session answers.
import { messageOf } from "../../../errors.ts";
import type { Metrics } from "../metrics.ts";
import { unknownSession } from "../session.ts";
import { CapacityError, type Sessions, type Slot } from "../sessions.ts";
import type { ThreadPool } from "../thread-pool.ts";
import { parseRpc, RPC, RpcFault, type RpcId, type RpcRequest, rpcError, rpcFailure, rpcResult } from "./json-rpc.ts";
import { initializeResult, isMcpVersion, isNotification, MCP_VERSIONS } from "./lifecycle.ts";
import { INSTRUCTIONS } from "./tools.ts";

export interface McpOptions {
  readonly pool: ThreadPool;
  readonly sessions: Sessions;
  readonly metrics: Metrics;
}

/** What a request's headers say. */
export interface McpCaller {
  readonly client: string;
  /** `mcp-session-id` */
  readonly sessionId: string | undefined;
  /** `mcp-protocol-version` */
  readonly version: string | undefined;
}

export interface McpReply {
  readonly status: 200 | 202 | 204 | 400 | 404;
  /** JSON; null for an empty body. */
  readonly text: string | null;
  /** A new session, for the header `mcp-session-id`. */
  readonly sessionId?: string;
}

/** Answers the body of a POST. */
export async function answerMcp(text: string, caller: McpCaller, options: McpOptions): Promise<McpReply> {
  const { client, sessionId } = caller;
  const wrong = wrongVersion(caller);
  if (wrong) return wrong;
  const request = parseRpc(text);
  if (!("method" in request)) return { status: 200, text: JSON.stringify(request) };
  const { id, method } = request;
  try {
    if (method === "initialize") return await initialize(request, client, options);
    const slot = sessionId === undefined ? undefined : options.sessions.get(sessionId, client);
    if (sessionId !== undefined && !slot) return noSession(id);
    if (isNotification(method)) {
      if (slot) slot.touchedAt = performance.now();
      if (slot && method === "notifications/initialized") slot.isUsed = true; // a session without it ends after a minute
      return { status: 202, text: null };
    }
    return { status: 200, text: await answer(request, text, slot, client, options) };
  } catch (error) {
    return { status: 200, text: JSON.stringify(rpcFailure(id, error)) };
  }
}

/** Answers a DELETE, which ends the session that the header names. */
export function endMcp(caller: McpCaller, { sessions }: McpOptions): McpReply {
  const wrong = wrongVersion(caller);
  if (wrong) return wrong;
  if (caller.sessionId === undefined) return bad("the header mcp-session-id is missing");
  const slot = sessions.get(caller.sessionId, caller.client);
  if (slot?.kind !== "http") return noSession(null);
  sessions.close(slot);
  return { status: 204, text: null };
}

async function initialize(request: RpcRequest, client: string, options: McpOptions): Promise<McpReply> {
  const result = initializeResult(request.params, INSTRUCTIONS); // throws before a slot is taken
  const sessionId = await createSession(client, options);
  return { status: 200, text: JSON.stringify(rpcResult(request.id, result)), sessionId };
}

async function answer(
  request: RpcRequest,
  text: string,
  ofHeader: Slot | undefined,
  client: string,
  options: McpOptions,
): Promise<string> {
  const { id, method } = request;
  const { session_id } = request.params;
  if (method === "openenv/session/create")
    return JSON.stringify(rpcResult(id, { session_id: await createSession(client, options) }));
  if (method === "openenv/session/close")
    return JSON.stringify(rpcResult(id, closeSession(session_id, client, options)));
  const { pool, sessions } = options;
  const isNamed = session_id !== undefined && session_id !== null && session_id !== "";
  const slot = ofHeader ?? (isNamed ? sessions.get(session_id, client) : sessions.plain(client));
  if (!slot) throw unknownSession(session_id);
  if (isNamed && !slot.isReady) throw starting(slot);
  await slot.ready;
  slot.touchedAt = performance.now();
  const { text: said } = await pool.ask(slot.id, client, { verb: ofHeader ? "mcpFrame" : "rpcFrame", text });
  if (method === "tools/call") slot.isUsed = true;
  return said!;
}

async function createSession(client: string, { sessions, metrics }: McpOptions): Promise<string> {
  try {
    const slot = sessions.take(client, "http");
    await slot.ready.catch((error: unknown) => {
      sessions.release(slot.id);
      throw error;
    });
    metrics.count("sqlenv_sessions_total", { kind: "http" });
    return slot.id;
  } catch (error) {
    if (error instanceof CapacityError) {
      const { active_sessions, max_sessions } = error;
      throw new RpcFault(RPC.server, error.message, { active_sessions, max_sessions });
    }
    throw new RpcFault(RPC.server, messageOf(error), { factory_name: "SQLEnvironment" });
  }
}

/** Closes a session opened over HTTP: now, or when its WebSocket detaches. A socket's own ends with the socket. */
function closeSession(id: unknown, client: string, { sessions }: McpOptions): object {
  const slot = sessions.get(id, client);
  if (!slot) throw unknownSession(id);
  if (slot.kind === "socket")
    throw new RpcFault(RPC.request, "Cannot close active WebSocket-managed session via MCP method");
  if (!slot.isReady) throw starting(slot);
  const isClosed = sessions.close(slot) === "closed";
  return isClosed ? { session_id: id, closed: true } : { session_id: id, closed: false, closing: true };
}

function starting({ id }: Slot): RpcFault {
  return new RpcFault(RPC.request, `Session ${id} is still initializing; retry shortly`);
}

function wrongVersion({ version }: McpCaller): McpReply | undefined {
  if (version === undefined || isMcpVersion(version)) return undefined;
  return bad(`Unsupported protocol version: ${version.slice(0, 100)}; use ${MCP_VERSIONS.join(", ")}`);
}

function bad(message: string): McpReply {
  return { status: 400, text: JSON.stringify(rpcError(null, RPC.request, message)) };
}

/** MCP's answer for an ended or unknown session: the client initializes again. */
function noSession(id: RpcId): McpReply {
  return { status: 404, text: JSON.stringify(rpcError(id, RPC.server, "Session not found")) };
}
