// SQLEnv: a gym where a language model learns to answer questions about SQL databases it has never seen.
// The names most programs need; the sub-paths (sqlenv/gym/env, sqlenv/lm/engine, sqlenv/rl …) export more.

// Reports: pictures and pages of a training.
export { comparisonMarkdown, learningCurve, livePlots, modelCard, runPage } from "./apps/reports/index.ts";
// Errors. All are SqlEnvErrors with a code.
export {
  ActionParseError,
  DownloadError,
  ModelLoadError,
  OOMError,
  PlayerError,
  QuestionLoadError,
  ServerError,
  SqlEnvError,
  UsageError,
} from "./errors.ts";
// An environment on a server.
export { SQLEnvClient } from "./gym/client/index.ts";
// Data sets of questions.
export {
  checkDataSet,
  type DataSet,
  type Difficulty,
  filterQuestions,
  parseQuestions,
  type QuestionRecord,
  type Split,
} from "./gym/data/index.ts";
// The environment.
export {
  DEFAULT_RULES,
  type EnvironmentOptions,
  type EnvironmentRules,
  GUIDED_RULES,
  type Outcome,
  parseAction,
  type ResetOptions,
  type RewardBreakdown,
  rulesId,
  type SQLAction,
  SQLEnvironment,
  type SQLObservation,
  verifyAnswer,
} from "./gym/env/index.ts";
// Evaluation.
export {
  comparePaired,
  type EpisodeRecord,
  type EvaluateOptions,
  type EvaluationReport,
  evaluate,
  formatTranscript,
  playEpisode,
  wilson,
} from "./gym/evaluation/index.ts";
// Players.
export {
  chatPlayer,
  type Decision,
  formatObservation,
  getSystemPrompt,
  guesserPlayer,
  keywordPlayer,
  lookerPlayer,
  modelPlayer,
  oraclePlayer,
  type Player,
  type Policy,
  parseModelOutput,
  randomPlayer,
  scriptedPlayer,
  teacherPlayer,
} from "./gym/players/index.ts";
// Databases.
export { createDatabase, Database, DatabasePool, loadSqlite, type ResultTable } from "./gym/sql/index.ts";
// Generated data sets.
export {
  bundledDataSet,
  practiceDataSet,
  practiceSet,
  practiceWorlds,
  STARTER_FORMS,
} from "./gym/worlds/index.ts";
// Models and engines.
export {
  crossEntropy,
  type Datum,
  type Engine,
  estimateMemory,
  type LossFunction,
  type Sample,
  type SampleRequest,
} from "./lm/engine/index.ts";
export { createTurnEncoder, Tokenizer, type TurnEncoder, trainBpe } from "./lm/model/index.ts";
export { type Random, random } from "./random.ts";
// Training.
export {
  buildTrainer,
  chatPrompt,
  compareStages,
  computeAdvantages,
  configSchema,
  createSqlEnvironment,
  demonstrations,
  type Environment,
  evaluateStage,
  fineTune,
  type GRPOConfig,
  type GRPOConfigInput,
  GRPOTrainer,
  LiveVisualizationCallback,
  loadQuestionPrompts,
  MemoryStore,
  mixtureSchema,
  POLICY_LOSSES,
  PRESET_NAMES,
  presetNamed,
  type RewardFunction,
  type RunStore,
  type RunTrainingOptions,
  randomBaseline,
  resolveConfig,
  rewardCorrectness,
  rewardEnvironment,
  rewardOperational,
  rewardProgress,
  rolloutFunc,
  runTraining,
  runTrainingWithMetrics,
  sampleRandomBaseline,
  type Task,
  type TextEnvironment,
  type TrainerCallback,
  type TrainerOptions,
  type TrainingResult,
  trainAgent,
} from "./rl/index.ts";
// A model from here can be trained: its engine has the policy losses.
export { loadTrainableWebModel as loadWebModel } from "./rl/load.ts";
