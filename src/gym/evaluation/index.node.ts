// Environments on threads, which need Node, besides all of sqlenv/gym/evaluation.

export { EnvironmentThreads, type EnvironmentThreadsOptions } from "./environments/threads.node.ts";
export * from "./index.ts";
