// The lifecycle of an MCP connection: protocol versions, and what the server says about itself.
import { packageInfo } from "../../../io/package-info.node.ts";
import { RPC, RpcFault } from "./json-rpc.ts";

/** MCP versions with a handshake, newest first. Later ones have no sessions, which an episode needs. */
export const MCP_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

/** The newest version, offered to a client that asks for one we do not know. */
const NEWEST = MCP_VERSIONS[0];

export function isMcpVersion(version: unknown): boolean {
  return MCP_VERSIONS.some((known) => known === version);
}

/** The result of `initialize`. Throws RpcFault if the client names no version. */
export function initializeResult(params: Readonly<Record<string, unknown>>, instructions: string): object {
  const { protocolVersion } = params;
  if (typeof protocolVersion !== "string")
    throw new RpcFault(RPC.params, "Invalid params - 'protocolVersion' is required", { supported: MCP_VERSIONS });
  return {
    protocolVersion: isMcpVersion(protocolVersion) ? protocolVersion : NEWEST,
    capabilities: { tools: {} },
    serverInfo: { name: "sqlenv", title: "SQLEnv", version: packageInfo().version },
    instructions,
  };
}

/** Whether a method is a notification, which gets no reply. */
export function isNotification(method: string): boolean {
  return method.startsWith("notifications/");
}
