// `sqlenv/engine`, the sub-path of before the layers: the engine with what rl/ has taken over from it.
export * from "../lm/engine/index.ts";
export * from "./advantages.ts";
export { loadTrainableWebModel as loadWebModel } from "./load.ts";
export * from "./loss.ts";
export * from "./loss-options.ts";
