// The OpenEnv server: HTTP, WebSocket and MCP over the environment, for clients and trainers in any language.
export { isEveryAddress, isLoopback } from "./hosts.ts";
export * from "./limits.ts";
export type { LogRecord } from "./log.ts";
export type { PageHandler } from "./page.ts";
export * from "./server.ts";
export { WIRE_ERRORS, type WireErrorCode } from "./wire.ts";
