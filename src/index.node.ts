// SQLEnv under Node and Deno: everything of index.ts, and what needs files and threads.

export * from "./apps/openenv/index.ts";
export * from "./apps/reports/index.node.ts";
export * from "./gym/data/index.node.ts";
export { EnvironmentThreads, type EnvironmentThreadsOptions } from "./gym/evaluation/environments/threads.node.ts";
export * from "./index.ts";
export * from "./lm/engine/index.node.ts";
export * from "./rl/index.node.ts";
