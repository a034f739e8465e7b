// Everything in sqlenv/gym/evaluation, plus environments on threads, which need Node.

export { EnvironmentThreads, type EnvironmentThreadsOptions } from "./environments/threads.node.ts";
export * from "./index.ts";
