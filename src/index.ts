// SQLEnv: a gym where a language model learns to answer questions about SQL databases it has never seen.
export * from "./client/index.ts";
export * from "./engine/index.ts";
export * from "./env/index.ts";
export * from "./errors.ts";
export * from "./evaluation/index.ts";
export { createTurnEncoder, Tokenizer, type TurnEncoder, trainBpe } from "./model/index.ts";
export * from "./players/index.ts";
export * from "./questions/index.ts";
export { type Random, random } from "./random.ts";
export * from "./reports/index.ts";
export * from "./sql/index.ts";
export * from "./training/index.ts";
export * from "./worlds/index.ts";
