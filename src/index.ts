// SQLEnv: a gym where a language model learns to answer questions about SQL databases it has never seen.
export * from "./env/index.ts";
export * from "./errors.ts";
export * from "./evaluation/index.ts";
export * from "./players/index.ts";
export * from "./questions/index.ts";
export { type Random, random } from "./random.ts";
export * from "./sql/index.ts";
export * from "./worlds/index.ts";
