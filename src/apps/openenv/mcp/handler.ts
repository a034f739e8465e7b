// POST /mcp: session methods are handled by the server, tools by a session; without one, by the client's plain HTTP session.
import { messageOf } from "../../../errors.ts";
import type { Metrics } from "../metrics.ts";
import { unknownSession } from "../session.ts";
import { CapacityError, type Sessions } from "../sessions.ts";
import type { ThreadPool } from "../thread-pool.ts";
import { paramsOf, parseRpc, RPC, RpcFault, type RpcRequest, rpcFailure, rpcResult } from "./json-rpc.ts";

export interface McpOptions {
  readonly pool: ThreadPool;
  readonly sessions: Sessions;
  readonly metrics: Metrics;
}

/** Answers a JSON-RPC request, text to text. */
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
  { pool, sessions }: McpOptions,
): Promise<string> {
  const isNamed = id !== undefined && id !== null;
  const slot = isNamed ? sessions.get(id) : sessions.plain(client);
  if (!slot) throw unknownSession(id);
  await slot.ready;
  slot.touchedAt = performance.now();
  const { text: answer } = await pool.ask(slot.id, client, { verb: "rpcFrame", text });
  if (method === "tools/call") slot.isUsed = true;
  return answer!;
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

/** Closes a session the client opened over HTTP. Other clients' sessions count as unknown; a socket's ends with the socket. */
function closeSession(id: unknown, client: string, { sessions }: McpOptions): void {
  const slot = sessions.get(id);
  if (slot?.client !== client) throw unknownSession(id);
  if (slot.kind === "socket")
    throw new RpcFault(RPC.request, "Cannot close active WebSocket-managed session via MCP method");
  sessions.release(slot.id);
}
