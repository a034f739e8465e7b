// Deprecated: `sqlenv/lm/engine` with the advantages and losses of `sqlenv/rl`, under its old name.
export * from "../lm/engine/index.ts";
export * from "./advantages.ts";
export { loadTrainableWebModel as loadWebModel } from "./load.ts";
export * from "./loss.ts";
export * from "./loss-options.ts";
