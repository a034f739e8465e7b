// Teaching a model: imitation first, then GRPO in the environment.
export * from "./callbacks.ts";
export * from "./config.ts";
export * from "./demonstrations.ts";
export * from "./fresh.ts";
export * from "./metric-names.ts";
export * from "./presets.ts";
export * from "./questions.ts";
export * from "./recipe.ts";
export * from "./records.ts";
export * from "./rewards.ts";
export * from "./rollout.ts";
export * from "./run.ts";
export * from "./standing.ts";
export * from "./store.ts";
export * from "./trainer.ts";
export * from "./transcripts.ts";
export * from "./warmup.ts";
