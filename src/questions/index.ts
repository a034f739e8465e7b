export * from "./answer.ts";
export * from "./dataset.ts";
export * from "./record.ts";
