// The Tinker server: the engine behind the Tinker API, for remote engines here and for the stock client.
export { loadBaseModel } from "./base-model.node.ts";
export {
  HELD_BYTES,
  HELD_BYTES_PER_CLIENT,
  IDLE_SECONDS,
  MAX_BODY_BYTES,
  MAX_MODELS,
  MAX_SESSIONS,
  POLL_MS,
  RUNNING_SAMPLES,
  SAMPLES,
  SAMPLES_PER_CLIENT,
  SESSIONS_PER_CLIENT,
} from "./limits.ts";
export { type RunningTinkerServer, startTinkerServer, type TinkerServerOptions } from "./server.ts";
export { type BaseModel, LORA_ALPHA } from "./service.ts";
