// A model that can sample and learn.
export * from "./advantages.ts";
export * from "./engine.ts";
export { LocalEngine } from "./local-engine.ts";
export * from "./loss.ts";
export { cudaLimits, estimateMemory, type MemoryEstimate, type MemoryOptions, type MemoryPlace } from "./memory.ts";
export { loadWebModel, type WebModel, type WebModelOptions } from "./web.ts";
