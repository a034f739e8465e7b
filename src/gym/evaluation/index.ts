// Evaluates players: success rates with confidence intervals, comparisons, transcripts.

export {
  type EpisodeRecord,
  isRepeat,
  type PlayableEnvironment,
  type PlayedEpisode,
  type PlayOptions,
  playEpisode,
  recordEpisode,
  type StepRecord,
  UNSCORED,
} from "../episode.ts";
export { judgeEpisode, lastQuery } from "./accuracy/episode-accuracy.ts";
export {
  EXECUTION_RULES,
  type Executed,
  type Execution,
  type ExecutionRule,
  execute,
  executeGold,
  type GoldExecution,
  judge,
  resultKey,
  type Verdict,
} from "./accuracy/execution.ts";
export { TWINS_VERSION } from "./accuracy/twin.ts";
export { MAX_TWIN_SEEDS, Twins } from "./accuracy/twins.ts";
export { type Behaviour, behaviourOf, measureBehaviour } from "./behaviour.ts";
export { type Cluster, clusterInterval } from "./cluster.ts";
export { type EnvironmentSource, localEnvironments, type OpenedEnvironment } from "./environments/source.ts";
export {
  type ConcurrencyOptions,
  type EpisodeWorker,
  type EvaluateOptions,
  episodeSeed,
  evaluate,
  type Progress,
  playConcurrently,
  type RoundOptions,
  type Sampled,
  sampleQuestions,
  sampleRounds,
} from "./evaluate.ts";
export { comparePaired, type PairedComparison, type PairedOutcome } from "./paired.ts";
export {
  buildReport,
  type EvaluationReport,
  type IntervalMethod,
  type ReportOptions,
  reportOf,
  type Summary,
  summarize,
  summaryOf,
} from "./summary.ts";
export { explainReward, formatStep, formatTranscript, formatVerdict, signed } from "./transcript.ts";
export { type Interval, wilson, Z } from "./wilson.ts";
