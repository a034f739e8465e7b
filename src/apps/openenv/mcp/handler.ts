// POST /mcp: sessions are the server's, tools a session's. Without a session the client's plain HTTP session is used.
import { messageOf } from "../../../errors.ts";
import type { Metrics } from "../metrics.ts";
import { unknownSession } from "../session.ts";
import { CapacityError, type Hub } from "../sessions.ts";
import type { Pool } from "../thread-pool.ts";
import { paramsOf, parseRpc, RPC, RpcFault, type RpcRequest, rpcFailure, rpcResult } from "./json-rpc.ts";

export interface McpOptions {
  readonly pool: Pool;
  readonly hub: Hub;
  readonly metrics: Metrics;
}

/** Answers a request's text with a response's text. */
export async function answerMcp(text: string, client: string, options: McpOptions): Promise<string> {
  const request = parseRpc(text);
  if (!("method" in request)) return JSON.stringify(request);
  try {
    const { session_id } = paramsOf(request);
    if (request.method === "openenv/session/create")
      return JSON.stringify(rpcResult(request.id, { session_id: await createSession(client, options) }));
    if (request.method === "openenv/session/close") {
      closeSession(session_id, client, options);
      return JSON.stringify(rpcResult(request.id, { session_id, closed: true }));
    }
    return await call(request, text, session_id, client, options);
  } catch (error) {
    return JSON.stringify(rpcFailure(request.id, error));
  }
}

async function call(
  { method }: RpcRequest,
  text: string,
  id: unknown,
  client: string,
  { pool, hub }: McpOptions,
): Promise<string> {
  const isNamed = id !== undefined && id !== null;
  const slot = isNamed ? hub.get(id) : hub.plain(client);
  if (!slot) throw unknownSession(id);
  await slot.ready;
  slot.touchedAt = performance.now();
  const { text: answer } = await pool.ask(slot.id, client, { verb: "rpcFrame", text });
  if (method === "tools/call") slot.isUsed = true;
  return answer!;
}

async function createSession(client: string, { hub, metrics }: McpOptions): Promise<string> {
  try {
    const slot = hub.take(client, "http");
    await slot.ready.catch((error: unknown) => {
      hub.release(slot.id);
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

/** Closes a session the client opened over HTTP. Others' are as good as unknown, and a socket's ends with its socket. */
function closeSession(id: unknown, client: string, { hub }: McpOptions): void {
  const slot = hub.get(id);
  if (slot?.client !== client) throw unknownSession(id);
  if (slot.kind === "socket")
    throw new RpcFault(RPC.request, "Cannot close active WebSocket-managed session via MCP method");
  hub.release(slot.id);
}
