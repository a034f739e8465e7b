// Training under Node: whole trainings, runs as folders, and models made by a recipe.
export * from "./index.ts";
export * from "./load.node.ts";
export { RunFolder } from "./run/folder.node.ts";
export { type PreparedTraining, type PrepareOptions, prepareTraining } from "./run/prepare.node.ts";
// In place of index.ts's, which trains a model that is loaded.
export { type ReportHook, runTraining, type TrainOptions } from "./run/train.node.ts";
export * from "./sft/recipe.node.ts";
