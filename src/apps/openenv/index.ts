// The OpenEnv server: HTTP, WebSocket and MCP over the environment, for clients and trainers in any language.
export { isEveryAddress, isLoopback } from "./allowed-hosts.ts";
export {
  ALONE_MS,
  COMPLETIONS,
  COMPLETIONS_PER_CLIENT,
  CONTENDED_MS,
  EVICTABLE_SECONDS,
  GRACE_SECONDS,
  HELD_BYTES,
  HELD_BYTES_PER_CLIENT,
  IDLE_SECONDS,
  MAX_MESSAGE_BYTES,
  MAX_SESSIONS,
  MAX_UNREAD_BYTES,
  MAX_WAITING,
  MAX_WAITING_BYTES,
  PING_SECONDS,
  RATE_PER_CLIENT,
  REPLY_SECONDS,
  REQUEST_BYTES,
  RUNNING_COMPLETIONS,
  SESSIONS_PER_CLIENT,
  SHUTDOWN_SECONDS,
  SILENT_SECONDS,
  SPARE_CONNECTIONS,
  UNUSED_SECONDS,
} from "./limits.ts";
export type { ServedModel } from "./llm/endpoint.ts";
export { Rollouts } from "./llm/rollouts.ts";
export type { LogRecord } from "./log.ts";
export type { PageHandler } from "./page-handler.ts";
export { WIRE_ERRORS, type WireErrorCode } from "./schemas.ts";
export { type RunningServer, SERVER_STEP_BUDGET, type ServerOptions, startServer } from "./server.ts";
