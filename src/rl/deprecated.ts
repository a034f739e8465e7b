// Earlier names of this layer's functions, kept for code that imports them.
import type { DataSet } from "../gym/data/index.ts";
import type { EnvironmentSource } from "../gym/evaluation/index.ts";
import type { TokenSequence } from "../lm/engine/learning/loss.ts";
import type { GRPOConfig } from "./config.ts";
import { type EvaluateModelOptions, evaluateModel } from "./evaluate-model.ts";
import { evaluateStage, type StageOptions } from "./evaluate-stage.ts";
import { measurePassAtK, type PassAtKOptions } from "./pass-at-k.ts";
import type { JudgedStage } from "./run/outcomes.ts";
import type {
  Decoding,
  Evaluation,
  EvaluationSplit,
  JudgedEpisode,
  PassAtK,
  ScoringRule,
  SplitAccuracy,
  StageEvaluation,
} from "./run/records.ts";
import { randomBaseline } from "./sql/random-baseline.ts";
import { createSqlEnvironment } from "./sql/sql-environment.ts";
import type { SamplingModel } from "./trainable-model.ts";

interface Environments {
  readonly environments?: EnvironmentSource | undefined;
}

/** @deprecated use `Evaluation` */
export type Standing = Evaluation;
/** @deprecated use `EvaluationSplit` */
export type Place = EvaluationSplit;
/** @deprecated use `Decoding` */
export type Manner = Decoding;
/** @deprecated use `PassAtK` */
export type Reach = PassAtK;
/** @deprecated use `ScoringRule` */
export type Mark = ScoringRule;
/** @deprecated use `JudgedEpisode` */
export type QuestionMarks = JudgedEpisode;
/** @deprecated use `JudgedStage` */
export type StageMarks = JudgedStage;
/** @deprecated use `SplitAccuracy` */
export type PlaceAccuracy = SplitAccuracy;
/** @deprecated use `StageEvaluation` */
export type Played = StageEvaluation;
/** @deprecated use `EvaluateModelOptions` */
export type StandingOptions = EvaluateModelOptions & Environments;
/** @deprecated use `StageOptions` */
export type PlayedOptions = StageOptions & Environments;
/** @deprecated use `PassAtKOptions` */
export type ReachOptions = PassAtKOptions & Environments;

/** @deprecated use `evaluateModel` */
export function standingOf(
  data: DataSet,
  model: SamplingModel,
  config: GRPOConfig,
  { environments, ...options }: StandingOptions,
): Promise<Evaluation> {
  return evaluateModel(createSqlEnvironment({ data, config, environments }), model, config, options);
}

/** @deprecated use `evaluateStage` */
export function playedBy(
  model: SamplingModel,
  data: DataSet,
  config: GRPOConfig,
  { environments, ...options }: PlayedOptions,
): Promise<StageEvaluation> {
  return evaluateStage(createSqlEnvironment({ data, config, environments }), model, config, options);
}

/** @deprecated use `measurePassAtK` */
export function reachOf(
  data: DataSet,
  model: SamplingModel,
  config: GRPOConfig,
  { environments, ...options }: ReachOptions = {},
): Promise<PassAtK> {
  return measurePassAtK(createSqlEnvironment({ data, config, environments }), model, config, options);
}

export {
  /** @deprecated use `compareStages` */
  compareStages as comparisonOf,
} from "./evaluate-stage.ts";
export {
  /** @deprecated use `passAtKWarning` */
  passAtKWarning as reachWarning,
} from "./pass-at-k.ts";
export {
  /** @deprecated use `SCORING_RULES` */
  SCORING_RULES as MARKS,
} from "./run/outcomes.ts";
export {
  /** @deprecated use `GPU_CLASSES` */
  GPU_CLASSES as CARD_CLASSES,
  /** @deprecated use `GpuClass` */
  type GpuClass as CardClass,
  /** @deprecated use `GpuPlan` */
  type GpuPlan as CardPlan,
} from "./run/plan.ts";
export {
  /** @deprecated use `sftDatabases` */
  sftDatabases as imitatedDatabases,
  /** @deprecated use `sftQuestions` */
  sftQuestions as imitatedQuestions,
} from "./run/split.ts";
export {
  /** @deprecated use `SftOptions` */
  type SftOptions as WarmupOptions,
  /** @deprecated use `SftReport` */
  type SftReport as WarmupReport,
  /** @deprecated use `SftStep` */
  type SftStep as WarmupStep,
  /** @deprecated use `sftLearningRate` */
  sftLearningRate as learningRate,
  /** @deprecated use `trainSft` */
  trainSft as warmup,
} from "./sft/sft.ts";
export {
  /** @deprecated use `sqlPlayer` */
  sqlPlayer as playerOf,
} from "./sql/sql-player.ts";
export type {
  /** @deprecated use `SamplingModel` */
  SamplingModel as SpeakingModel,
} from "./trainable-model.ts";
export {
  /** @deprecated use `randomBaseline` */
  randomBaseline as playedAtRandom,
};

/** @deprecated use TokenSequence */
export type TokenGroup = TokenSequence;
