// SQLEnv under Node and Deno: everything of index.ts, and what needs files and threads.
export * from "./engine/index.node.ts";
export { EnvironmentThreads, type EnvironmentThreadsOptions } from "./evaluation/environment-threads.node.ts";
export * from "./index.ts";
export * from "./questions/index.node.ts";
export * from "./reports/index.node.ts";
export * from "./server/index.ts";
export * from "./training/index.node.ts";
