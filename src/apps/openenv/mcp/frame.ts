// One JSON-RPC message of a stream, a WebSocket's or stdin's, and its reply.
import { messageOf } from "../../../errors.ts";
import { parseJson } from "../../../io/json.ts";
import { checkRpc, isObject, RPC, type RpcRequest, type RpcResponse, rpcError } from "./json-rpc.ts";
import { isNotification } from "./lifecycle.ts";

/** The reply to a message. */
export interface RpcReply {
  /** JSON; null to a notification. */
  readonly text: string | null;
  /** Close the socket with this code after sending. */
  readonly close?: number;
  readonly kind: "mcp";
}

/** Parses a message and passes the request on. Throws only what `answer` throws. */
export function answerFrame(text: string, answer: (request: RpcRequest) => RpcResponse): RpcReply {
  const reply = (response: RpcResponse): RpcReply => ({ text: JSON.stringify(response), kind: "mcp" });
  let message: unknown;
  try {
    message = parseJson(text);
  } catch (error) {
    return reply(rpcError(null, RPC.parse, `Parse error: ${messageOf(error)}`));
  }
  if (!isObject(message))
    return { ...reply(rpcError(null, RPC.server, "a message must be a JSON object")), close: 1000 };
  const request = checkRpc(message);
  if (!("method" in request)) return reply(request);
  return isNotification(request.method) ? { text: null, kind: "mcp" } : reply(answer(request));
}
