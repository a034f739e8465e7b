// Deprecated: `sqlenv/lm/engine` with the advantages and losses of `sqlenv/rl`, under its old name.
export * from "../lm/engine/index.ts";
export { type AdvantageOptions, type Advantages, computeAdvantages } from "./advantages.ts";
export type { TokenGroup } from "./deprecated.ts";
export { loadTrainableWebModel as loadWebModel } from "./load.ts";
export { computeLoss, type EntropyCut, entropyCut, POLICY_LOSSES, type PolicyTotals, policyLoss } from "./loss.ts";
export {
  POLICY_DEFAULTS,
  type PolicyLossType,
  type PolicyOptions,
  type PolicySpec,
} from "./loss-options.ts";
