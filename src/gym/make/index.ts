// Makes questions for databases that have none. From files and servers: make.node.ts.
export { type ColumnReport, type InferredWorlds, inferWorlds } from "./infer.ts";
export {
  type DatabaseReport,
  type Made,
  type MakeOptions,
  type MakeReport,
  makeQuestions,
  type SourceDatabase,
} from "./make.ts";
export { DROP_REASONS, type DropReason } from "./questions.ts";
export { type RephraseOptions, type RephraseReport, rephraseQuestions } from "./rephrase.ts";
export { DROP_WORDS, personalColumns, refusals, reportMarkdown } from "./report.ts";
export { type FoundSchema, type Note, type Reference, readSchema } from "./schema.ts";
export { databaseFromFiles, type NamedBytes } from "./sources/files.ts";
