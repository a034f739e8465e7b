// Question files, Spider, BIRD, archives and downloads: what needs Node's disk and network.

export * from "../download.node.ts";
export { MAX_ENTRIES, MAX_UNPACKED_BYTES, UnpackBudget } from "./archive.ts";
export * from "./databases.node.ts";
export * from "./export.node.ts";
export * from "./import.node.ts";
export * from "./layout.node.ts";
export { type LoadOptions, loadQuestions } from "./load.node.ts";
export * from "./open.node.ts";
export { type BirdOptions, loadBird, loadSpider, withQuestionsFrom } from "./spider.node.ts";
export * from "./spider10.node.ts";
export * from "./unpack.node.ts";
