// The Tinker server: this package's engine, served by the Tinker API.
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
