// SQLEnv under Node and Deno: everything of index.ts, and what needs files and threads.

export * from "./apps/openenv/index.ts";
export * from "./apps/reports/index.node.ts";
export * from "./gym/data/index.node.ts";
export { EnvironmentThreads, type EnvironmentThreadsOptions } from "./gym/evaluation/environments/threads.node.ts";
export * from "./index.ts";
export * from "./lm/engine/index.node.ts";
export * from "./rl/index.node.ts";
export { loadTrainableModel as loadModelAndTokenizer, startTrainableEngine as startEngine } from "./rl/load.node.ts";
// Models from here can be trained: their engines have the policy losses.
export { loadTrainableWebModel as loadWebModel } from "./rl/load.ts";
