// The names most programs need: those of index.ts, and those that need files and threads (Node, Deno).

export { type RunningServer, type ServerOptions, startServer } from "./apps/openenv/index.ts";
export { readRun, svgToPng, trainingReport, writeReport } from "./apps/reports/index.node.ts";
export {
  exportDataSet,
  importDataSet,
  loadBird,
  loadQuestions,
  loadSpider,
  openDataSet,
} from "./gym/data/index.node.ts";
export { EnvironmentThreads } from "./gym/evaluation/index.node.ts";
export * from "./index.ts";
export { findModel, type LoadedModel } from "./lm/engine/index.node.ts";
export { makeModel, RunFolder, trainAgent } from "./rl/index.node.ts";
// Models from here can be trained: their engines have the policy losses.
export { loadTrainableModel as loadModelAndTokenizer, startTrainableEngine as startEngine } from "./rl/load.node.ts";
// Also loads the model and runs the stages before GRPO.
export { runTraining } from "./rl/run/train.node.ts";
