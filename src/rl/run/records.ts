// What a training leaves behind, as plain records: every file of a run folder is made of these.
import type { EpisodeRecord, Interval, PairedComparison, Summary } from "../../gym/evaluation/index.ts";
import type { Message, Segment } from "../../gym/players/index.ts";
import type { SftReport } from "../sft/sft.ts";
import type { TrainingSplit } from "./split.ts";

/** An episode of the model that is trained: the record everyone has, what was said, and the tokens to learn from. */
export interface Episode extends EpisodeRecord {
  readonly messages: readonly Message[];
  readonly segments: readonly Segment[];
  /** Tokens the model wrote. */
  readonly completion_tokens: number;
  /** Whether its last turn ended before the model had closed it, or the episode ran out of tokens. */
  readonly truncated: boolean;
}

/** A line of episodes.jsonl: an episode without its tokens, with what training made of it. */
export interface EpisodeLine extends EpisodeRecord {
  /** Optimizer step it was played for, from 1. */
  readonly step: number;
  /** Number of its question in the step, and its own among that question's episodes. */
  readonly group: number;
  readonly generation: number;
  /** By reward function; null where it has no opinion. */
  readonly rewards: Readonly<Record<string, number | null>>;
  /** Weighted sum; null when nothing could be scored. */
  readonly total_reward: number | null;
  readonly advantage: number;
  /** Its tokens had advantages by self-distillation instead. */
  readonly distilled?: true;
  /** Added to the advantage of the first turns, as many as `turns` says, or of all (null); only with turn_credit. */
  readonly turn_credit?: { readonly advantage: number; readonly turns: number | null };
  /** Set where its group had no spread and was replaced (dynamic_sampling): nothing was learned from it. */
  readonly dropped?: true;
  readonly completion_tokens: number;
  readonly prompt_tokens: number;
  readonly segments: number;
  readonly truncated: boolean;
}

/**
 * A line of metrics.jsonl: numbers by name, TRL's where it has one, no clocks. Lines of the training have `loss`, and `reward` where episodes were played;
 * lines of an evaluation have `eval_{seen,unseen}/{greedy,sampled}/{success_rate,success_ci_low,success_ci_high,reward,steps,episodes}`.
 */
export interface MetricLine extends Readonly<Record<string, number>> {
  readonly step: number;
}

/** A line of timings.jsonl: where the seconds of a step went. */
export interface TimingLine {
  readonly step: number;
  readonly step_time: number;
  readonly sampling: number;
  /** In which nothing was sampled because of environments: all they took in the main thread, or the waiting for other threads. */
  readonly environment: number;
  /** That environments worked, added up over their threads; absent in records of earlier versions. */
  readonly environment_work?: number;
  readonly rewards: number;
  readonly training: number;
  /** Groups that were started and stopped because the batch was full without them; only with dynamic_sampling. */
  readonly stopped_groups?: number;
  readonly tokens_per_s: number;
  /** Seconds of all steps so far; evaluations and pauses between resumes are not in it. */
  readonly elapsed: number;
}

/** A line of warnings.jsonl. */
export interface Warning {
  readonly step: number;
  /** Such as "truncated", "no_spread", "parse_failures", "entropy_collapsed", "nan". */
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}

/** Evaluation tasks on databases that training has questions on, and on others. */
export type EvaluationSplit = "seen" | "unseen";
export type Decoding = "greedy" | "sampled";

/** Success on each split with each decoding. */
export type Evaluation = Readonly<Record<EvaluationSplit, Readonly<Record<Decoding, Summary>>>>;

/** What a model could do before training, on training questions: reward can make likelier what it does now and then. */
export interface Reach {
  readonly questions: number;
  readonly tries: number;
  /** Shares of right answers: the likeliest actions; sampled as in training; and of questions that were solved at least once. */
  readonly greedy: number | null;
  readonly sampled: number | null;
  readonly solved_in_tries: number | null;
}

/** A way of being right: the answer as the environment judges it, or the last query by Spider's or BIRD's rule. */
export type Mark = "answer" | "spider" | "bird";

/** Whether a greedy evaluation episode was right. */
export interface QuestionMarks extends Readonly<Record<Mark, boolean>> {
  readonly question_id: string;
  readonly database: string;
  readonly seen: boolean;
}

/** The rate is 0–1; the interval 95 %, over databases where training has no questions on them. */
export interface Score {
  readonly right: number;
  readonly rate: number;
  readonly ci: Interval;
}

export interface SplitAccuracy extends Readonly<Record<Mark, Score | null>> {
  readonly questions: number;
}

/** Greedy accuracy of one stage; null where there are no questions. */
export type Accuracy = Readonly<Record<EvaluationSplit, SplitAccuracy>>;

/** Two stages on the same questions; the difference is `to` − `from`. */
export interface StagePair extends PairedComparison {
  readonly from: string;
  readonly to: string;
  readonly place: EvaluationSplit;
  readonly mark: Mark;
}

/** outcomes.json: each question's outcome at each stage, ids and bits only. */
export interface Outcomes {
  readonly format: "sqlenv-outcomes-1";
  /** What was evaluated, and how: greedily, with the schema unknown. */
  readonly model_name: string;
  readonly seed: number;
  readonly data: string;
  readonly prompt: string;
  readonly rules: string;
  readonly step_budget: number;
  readonly max_new_tokens: number;
  /** SHA-256 of the questions' ids; absent in pages without crypto.subtle. */
  readonly ids_sha256?: string;
  readonly stages: readonly string[];
  /** What each bit says, the lowest first. */
  readonly bits: readonly Mark[];
  /** By database and question id, a number for each stage; null where it was not asked. */
  readonly questions: Readonly<Record<string, Readonly<Record<string, readonly (number | null)[]>>>>;
}

/** NAME.json of a stage before GRPO, such as sft.json: what it learned from. */
export interface StageReport extends Omit<SftReport, "interrupted"> {
  readonly seconds: number;
}

/** self-taught-N.json: a round of SFT on the model's own right episodes. */
export interface SelfTaughtReport extends StageReport {
  /** Questions that were tried, and of them those solved at least once. */
  readonly questions: number;
  readonly solved: number;
  /** Episodes that were sampled, those that were right, and those learned from. */
  readonly episodes: number;
  readonly right: number;
  readonly kept: number;
}

/** results.json: what a training says of itself at its end. */
export interface TrainingResult {
  readonly run: string;
  readonly model_name: string;
  /** Id of the prompt; absent in results of versions that had one. */
  readonly prompt?: string;
  /** Id of the environment's rules; absent in results of versions that had one set of rules. */
  readonly rules?: string;
  /** SHA-256 of the evaluation questions' ids: results that share it are about the same questions. Absent in pages without crypto.subtle. */
  readonly eval_ids_sha256?: string;
  readonly seconds: number;
  readonly steps: number;
  readonly episodes: number;
  readonly tokens: number;
  readonly random: Evaluation;
  /** Before SFT and self-taught rounds; absent where there were none. */
  readonly base?: Evaluation;
  /** Where GRPO began. */
  readonly before: Evaluation;
  readonly after: Evaluation;
  /** Measured where pass_k asks for it. */
  readonly reach?: Reach;
  /** Greedy, by stage: answers, and last queries by the rules of Spider and BIRD. */
  readonly accuracy?: Readonly<Partial<Record<"base" | "before" | "after", Accuracy>>>;
  /** Each stage compared with the one before it. */
  readonly paired?: readonly StagePair[];
  /** What SFT before GRPO learned from. */
  readonly sft?: StageReport;
  /** What each self-taught round before GRPO learned from. */
  readonly self_taught?: readonly SelfTaughtReport[];
  /** Which databases each part had questions on; absent in results of versions that did not keep it. */
  readonly split?: TrainingSplit;
  readonly warnings: number;
}

/** comparison.json: the same questions by the players of a training: random, base, before and after. */
export interface Comparison {
  readonly players: readonly string[];
  readonly questions: readonly ComparedQuestion[];
}

export interface ComparedQuestion {
  readonly question_id: string;
  readonly question: string;
  readonly database_name: string;
  readonly seen: boolean;
  /** In the order of the players. */
  readonly episodes: readonly EpisodeRecord[];
}
