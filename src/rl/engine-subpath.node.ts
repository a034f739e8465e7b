// `sqlenv/engine/node`, the sub-path of before the layers.
export * from "../lm/engine/index.node.ts";
export * from "./engine-subpath.ts";
export { loadTrainableModel as loadModelAndTokenizer, startTrainableEngine as startEngine } from "./load.node.ts";
export { loadTrainableWebModel as loadWebModel } from "./load.ts";
