// Training under Node: whole trainings, runs as folders, and models made by a recipe.
export * from "./index.ts";
export { loadRemoteModel, loadTrainableModel, startTrainableEngine } from "./load.node.ts";
export { RunFolder } from "./run/folder.node.ts";
export { type PreparedTraining, type PrepareOptions, prepareTraining } from "./run/prepare.node.ts";
export { tensorBoard } from "./run/tensorboard.node.ts";
// Replaces index.ts's `runTraining`, which needs a loaded model.
export { type ReportHook, runTraining, type TrainOptions } from "./run/train.node.ts";
// Replaces index.ts's `trainAgent`: a run's folder also gets the settings.
export { trainAgent } from "./run/train-agent.node.ts";
export { saveFreshModel } from "./sft/init-model.node.ts";
export { type MakeModelOptions, makeModel } from "./sft/recipe.node.ts";
