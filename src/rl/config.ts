// The settings of a training.
export * from "./config/derived.ts";
export * from "./config/renamed.ts";
export * from "./config/resolve.ts";
export * from "./config/schema.ts";
