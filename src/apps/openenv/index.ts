// The OpenEnv server: HTTP, WebSocket and MCP over the environment, for clients and trainers in any language.
export { isEveryAddress, isLoopback } from "./allowed-hosts.ts";
export * from "./limits.ts";
export type { LogRecord } from "./log.ts";
export type { PageHandler } from "./page-handler.ts";
export { WIRE_ERRORS, type WireErrorCode } from "./schemas.ts";
export * from "./server.ts";
