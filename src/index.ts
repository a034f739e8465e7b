// SQLEnv: a gym where a language model learns to answer questions about SQL databases it has never seen.

export * from "./apps/reports/index.ts";
export * from "./errors.ts";
export * from "./gym/client/index.ts";
export * from "./gym/data/index.ts";
export * from "./gym/env/index.ts";
export * from "./gym/evaluation/index.ts";
export * from "./gym/players/index.ts";
export * from "./gym/sql/index.ts";
export * from "./gym/worlds/index.ts";
export * from "./lm/engine/index.ts";
export { createTurnEncoder, Tokenizer, type TurnEncoder, trainBpe } from "./lm/model/index.ts";
export { type Random, random } from "./random.ts";
export * from "./rl/index.ts";
// A model from here can be trained: its engine has the policy losses.
export { loadTrainableWebModel as loadWebModel } from "./rl/load.ts";
