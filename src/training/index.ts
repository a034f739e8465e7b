// Teaching a model: imitation first.
export * from "./demonstrations.ts";
export * from "./transcripts.ts";
export * from "./warmup.ts";
