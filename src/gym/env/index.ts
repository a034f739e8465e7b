// The environment: actions, observations, reset and step, the verifier, step rewards.
export {
  ACTION_TYPES,
  type ActionType,
  actionSchema,
  isLastReference,
  LAST_RESULT,
  MAX_ARGUMENT_LENGTH,
  normalizeAction,
  type ParsedAction,
  parseAction,
  type SQLAction,
  tableName,
  tableNames,
} from "./action.ts";
export {
  DEFAULT_STEP_BUDGET,
  DONE_REASONS,
  type DoneReason,
  type EnvironmentOptions,
  type EnvironmentState,
  GOLD_MARGIN,
  MAX_DESCRIBED,
  type Outcome,
  type ResetOptions,
  SQLEnvironment,
} from "./environment.ts";
export { ERROR_CLASSES, type ErrorClass, observationSchema, type SQLObservation } from "./observation.ts";
export {
  computeProgress,
  /** @deprecated use `computeProgress` */
  computeProgress as progressOf,
} from "./progress.ts";
export { renderDescription, renderResult, SHOWN_CELL, SHOWN_ROWS } from "./render.ts";
export { NO_REWARD, type RewardBreakdown, type RewardConfig, rewardBreakdownSchema, rewardSchema } from "./reward.ts";
export {
  DEFAULT_RULES,
  type EnvironmentRules,
  GUIDED_RULES,
  MIN_FAILURES,
  RULES_VERSION,
  rulesFromId,
  rulesId,
  rulesOf,
} from "./rules.ts";
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
