// Questions: records, files, filters, checks. Loaders from disk and network are in sqlenv/gym/data/node.
export * from "./answer.ts";
export * from "./check.ts";
export * from "./dataset.ts";
export { difficultyOf, type Outline, outline, tablesInvolved } from "./difficulty.ts";
export * from "./filter.ts";
export { type AssembleOptions, assemble, type QuestionDraft } from "./formats/assemble.ts";
export * from "./formats/file.ts";
export * from "./gold.ts";
export { evalIdsSha256, idsSha256 } from "./ids.ts";
export * from "./question.ts";
