// Generators of databases and questions: the bundled set, and any number of practice worlds from a seed.
export { buildWorld } from "./build.ts";
export * from "./bundled.ts";
export * from "./practice/practice.ts";
export * from "./practice/set.ts";
export { practiceWorld } from "./practice/spec.ts";
export * from "./spec.ts";
