// Training a model: SFT, then GRPO in an environment.

export { type AdvantageOptions, type Advantages, computeAdvantages } from "./advantages.ts";
export type { AgentClient, AgentResult, AgentReward, RunAgent } from "./agents/agent.ts";
export type { AgentPlace } from "./agents/agent-episode.ts";
export {
  type AgentEnvironmentOptions,
  type AgentModel,
  createAgentEnvironment,
  type TrainAgentOptions,
} from "./agents/train-agent.ts";
export type { EventDetails, TrainerCallback, TrainerEvent, TrainingView } from "./callbacks.ts";
export {
  type Batching,
  batchingOf,
  CONFIG_KEYS,
  configSchema,
  environmentOptionsOf,
  type GRPOConfig,
  type GRPOConfigInput,
  learningRateAt,
  RENAMED_KEYS,
  type RenamedSettings,
  renameSettings,
  resolveConfig,
  stepsOf,
  trainingEnvironmentOptions,
} from "./config.ts";
export * from "./deprecated.ts";
export {
  chatPrompt,
  type Ending,
  type Environment,
  type EnvironmentPrompt,
  type EpisodePolicy,
  type EpisodePolicyOptions,
  type EpisodePurpose,
  type Task,
  type TaskSplit,
  type TextEnvironment,
  type TextReset,
  type TextStep,
} from "./environment.ts";
export { DECODINGS, EVALUATION_SPLITS, type EvaluateModelOptions, evaluateModel } from "./evaluate-model.ts";
export { compareStages, evaluateStage, type StageOptions } from "./evaluate-stage.ts";
export {
  type LiveView,
  LiveVisualizationCallback,
  type LiveVisualizationOptions,
  type RewardPoint,
  type Show,
  type SuccessPoint,
} from "./live-visualization.ts";
export { loadTrainableWebModel } from "./load.ts";
export { computeLoss, type EntropyCut, entropyCut, POLICY_LOSSES, type PolicyTotals, policyLoss } from "./loss.ts";
export { POLICY_DEFAULTS, type PolicyLossType, type PolicyOptions, type PolicySpec } from "./loss-options.ts";
export { METRIC_MEANINGS, meaningOf } from "./metric-names.ts";
export {
  type ConnectOptions,
  connectEnvironment,
  type ServerEnvironment,
} from "./openenv/server-environment.ts";
export { parseTasks, type ServerTask } from "./openenv/tasks.ts";
export { measurePassAtK, type PassAtKOptions, passAtKWarning } from "./pass-at-k.ts";
export { PRESET_NAMES, PRESET_NOTES, PRESETS, presetFor, presetNamed } from "./presets.ts";
export {
  REWARD_FUNCTIONS,
  type RewardContext,
  type RewardFunction,
  rewardCorrectness,
  rewardEnvironment,
  rewardName,
  rewardOperational,
  rewardProgress,
  type ScoreOptions,
  type Scores,
  score,
} from "./rewards.ts";
export { type RolloutOptions, rollOut } from "./rollout.ts";
export {
  accuracyOf,
  type JudgedStage,
  type OutcomesAbout,
  outcomesOf,
  pairsOf,
  SCORING_RULES,
} from "./run/outcomes.ts";
export {
  evaluationEpisodes,
  evaluationSeconds,
  GPU_CLASSES,
  type GpuClass,
  type GpuPlan,
  memoryOptionsOf,
  type PlannedStage,
  type PresetLine,
  planFor,
  presetTable,
  sftSeconds,
  stagesOf,
  stepSeconds,
} from "./run/plan.ts";
export {
  type Accuracy,
  type ComparedQuestion,
  type Comparison,
  comparisonSchema,
  type Decoding,
  type Episode,
  type EpisodeLine,
  type Evaluation,
  type EvaluationSplit,
  episodeLineSchema,
  evaluationSchema,
  type JudgedEpisode,
  type MetricLine,
  metricLineSchema,
  type Outcomes,
  outcomesSchema,
  type PassAtK,
  passAtKSchema,
  type RunInputs,
  runInputsSchema,
  type Score,
  type ScoringRule,
  type SelfTaughtReport,
  type SplitAccuracy,
  type SplitPart,
  type StageEvaluation,
  type StagePair,
  type StageReport,
  selfTaughtReportSchema,
  stageEvaluationSchema,
  stageReportSchema,
  type TimingLine,
  type TrainingResult,
  type TrainingSplit,
  timingLineSchema,
  trainingResultSchema,
  trainingSplitSchema,
  type Warning,
  warningSchema,
} from "./run/records.ts";
export {
  buildTrainer,
  type Phase,
  type RunTrainingOptions,
  runTraining,
  runTrainingWithMetrics,
  sampleRandomBaseline,
} from "./run/run.ts";
export {
  overlapWarning,
  rewardedQuestions,
  type SplitConfig,
  sftDatabases,
  sftQuestions,
  splitOf,
} from "./run/split.ts";
export {
  type Checkpoint,
  LOGS,
  type Log,
  type LogLengths,
  MemoryStore,
  type ResumePoint,
  type RunStore,
  resumePointSchema,
  type TrainerState,
} from "./run/store.ts";
export { trainAgent } from "./run/train-agent.ts";
export {
  type DataDemonstrationOptions,
  dataDemonstration,
  demonstrations,
  type Mixture,
  mixtureSchema,
  teacherOf,
} from "./sft/demonstrations.ts";
export { type FineTuneOptions, fineTune, practiceMixture } from "./sft/fine-tune.ts";
export { type FreshModel, type FreshOptions, freshModel } from "./sft/init-model.ts";
export { type MixOptions, mixed } from "./sft/mixing.ts";
export { mixtureAt, type Recipe, recipeDemonstrations, recipeSchema, recipeVocabulary } from "./sft/recipe.ts";
export { encodeEpisode, type SelfTaughtOptions, selectEpisodes, selfTaughtRound } from "./sft/self-taught.ts";
export { type SftOptions, type SftReport, type SftStep, sftLearningRate, trainSft } from "./sft/sft.ts";
export {
  encodeTranscript,
  parseTranscripts,
  type Transcript,
  type TranscriptOptions,
  transcriptOf,
  transcriptSchema,
} from "./sft/transcripts.ts";
export { findQuestion, loadQuestionPrompts, type QuestionPrompt, trainedDatabases } from "./sql/questions.ts";
export { type RandomBaselineOptions, randomBaseline } from "./sql/random-baseline.ts";
export { parseModelOutput, type RolloutFuncOptions, rolloutFunc } from "./sql/rollout-func.ts";
export { createSqlEnvironment, type SqlEnvironmentOptions } from "./sql/sql-environment.ts";
export { sqlPlayer } from "./sql/sql-player.ts";
export { createTextEnvironment, type TaskSplits, type TextEnvironmentOptions } from "./text-environment.ts";
export type { SamplingModel, TrainableEngine, TrainableModel } from "./trainable-model.ts";
export {
  GRPOTrainer,
  type TrainerOptions,
  type TrainOutput,
} from "./trainer.ts";
