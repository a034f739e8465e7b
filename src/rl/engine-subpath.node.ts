// Deprecated: `sqlenv/lm/engine/node` with the advantages and losses of `sqlenv/rl`, under its old name.
export * from "../lm/engine/index.node.ts";
export * from "./engine-subpath.ts";
export { loadTrainableModel as loadModelAndTokenizer, startTrainableEngine as startEngine } from "./load.node.ts";
export { loadTrainableWebModel as loadWebModel } from "./load.ts";
