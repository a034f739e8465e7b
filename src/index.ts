export * from "./errors.ts";
export * from "./sql/index.ts";
