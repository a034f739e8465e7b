// The environment: actions, observations, reset and step, the verifier, step rewards.
export * from "./action.ts";
export * from "./environment.ts";
export * from "./observation.ts";
export {
  computeProgress,
  /** @deprecated use `computeProgress` */
  computeProgress as progressOf,
} from "./progress.ts";
export { SHOWN_CELL, SHOWN_ROWS } from "./render.ts";
export * from "./reward.ts";
export * from "./rules.ts";
export { rulesSchema } from "./rules-schema.ts";
export {
  type Gold,
  outermostClauses,
  runGold,
  /** @deprecated use `runGold` */
  runGold as goldOf,
  type TieGroup,
} from "./verifier/gold.ts";
export { verifyAnswer, verifyResult } from "./verifier/verify.ts";
