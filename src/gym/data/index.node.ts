// Question files, Spider, BIRD, archives and downloads, which need Node's disk and network.

export * from "../../io/download.node.ts";
export { MAX_ENTRIES, MAX_UNPACKED_BYTES, UnpackBudget } from "./archives/archive.ts";
export * from "./archives/unpack.node.ts";
export * from "./formats/databases.node.ts";
export * from "./formats/export.node.ts";
export * from "./formats/import.node.ts";
export * from "./formats/layout.node.ts";
export { type LoadOptions, loadQuestions } from "./formats/load.node.ts";
export * from "./formats/open.node.ts";
export { type BirdOptions, loadBird, loadSpider, withQuestionsFrom } from "./formats/spider.node.ts";
export * from "./formats/spider10.node.ts";
