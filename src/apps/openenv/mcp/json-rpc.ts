// JSON-RPC 2.0 as OpenEnv uses it for MCP: validated requests, responses with exactly one of result and error.
import { z } from "zod";
import { parseJson } from "../../../io/json.ts";

export const RPC = {
  parse: -32700,
  request: -32600,
  method: -32601,
  params: -32602,
  internal: -32603,
  server: -32000,
} as const;

export type RpcId = string | number | null;

export interface RpcRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly id: RpcId;
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
}

export type RpcResponse =
  | { readonly jsonrpc: "2.0"; readonly id: RpcId; readonly result: unknown }
  | { readonly jsonrpc: "2.0"; readonly id: RpcId; readonly error: RpcError };

const requestSchema = z.strictObject({
  jsonrpc: z.literal("2.0"),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).optional(),
  id: z.union([z.string(), z.int(), z.null()]).optional(),
});

/** Thrown inside a method to be returned as a JSON-RPC error. */
export class RpcFault extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown = null) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export function rpcResult(id: RpcId, result: unknown): RpcResponse {
  return { jsonrpc: "2.0", id, result };
}

export function rpcError(id: RpcId, code: number, message: string, data: unknown = null): RpcResponse {
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}

/** Parses a request's body, or returns the error response for an invalid one. */
export function parseRpc(text: string): RpcRequest | RpcResponse {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return rpcError(null, RPC.parse, "Parse error");
  }
  return isObject(value) ? checkRpc(value) : rpcError(null, RPC.parse, "Parse error");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const MAX_MESSAGE = 1_000; // characters; zod's message lists every unknown key

/** Validates a parsed request. */
export function checkRpc(value: unknown): RpcRequest | RpcResponse {
  const parsed = requestSchema.safeParse(value);
  if (parsed.success) {
    const { method, params = {}, id = null } = parsed.data;
    return { method, params, id };
  }
  const said = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "request"}: ${message}`);
  return rpcError(null, RPC.request, `Invalid request: ${said.join("; ").slice(0, MAX_MESSAGE)}`);
}

/** The error response for a thrown value. */
export function rpcFailure(id: RpcId, thrown: unknown): RpcResponse {
  if (thrown instanceof RpcFault) return rpcError(id, thrown.code, thrown.message, thrown.data);
  return rpcError(id, RPC.internal, thrown instanceof Error ? thrown.message : String(thrown));
}
