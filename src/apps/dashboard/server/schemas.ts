// Records exchanged by the dashboard's server and page; the same in a live page and an exported file.
import type { Difficulty } from "../../../gym/data/index.ts";
import type { EpisodeRecord } from "../../../gym/evaluation/index.ts";
import type {
  EnvironmentDescription,
  EpisodeLine,
  Evaluation,
  GoldAnswer,
  TrainingResult,
  Warning,
} from "../../../rl/run/records.ts";
import type { EvaluatedQuestion } from "../../reports/evaluated-questions.ts";

/** A question of the last evaluation in a list; its gold comes with the whole question. */
export type QuestionRow = Omit<EvaluatedQuestion, "gold">;

/** A run's state, inferred from its folder. */
export type RunState = "evaluating" | "training" | "finished" | "stopped";

/** The preset nearest to a run's settings (null: the defaults), and its values of the settings that differ. */
export interface PresetSettings {
  readonly name: string | null;
  readonly usual: Readonly<Record<string, string>>;
}

/** A run in a list. */
export interface RunListing {
  /** The run's name in URLs. */
  readonly id: string;
  readonly name: string;
  readonly state: RunState;
  readonly model_name: string | null;
  readonly config: Readonly<Record<string, unknown>> | null;
  readonly preset: PresetSettings | null;
  /** The last completed step. */
  readonly step: number;
  /** Total steps; null while unknown. */
  readonly total_steps: number | null;
  /** Seconds of training. */
  readonly elapsed: number | null;
  readonly random: Evaluation | null;
  readonly before: Evaluation | null;
  /** The newest evaluation after `before`, during or at the end of training. */
  readonly now: Evaluation | null;
  readonly now_step: number | null;
  /** The environment, if it is not SQL. */
  readonly environment: EnvironmentDescription | null;
  readonly result: Pick<TrainingResult, "seconds" | "steps" | "episodes" | "tokens" | "paired"> | null;
}

/** The data of the overview. */
export interface RunSummary extends RunListing {
  readonly warnings: readonly Warning[];
  /** Seconds left; null if unknown. */
  readonly eta: number | null;
  readonly episodes: {
    readonly count: number;
    /** Share of the file that has been read. */
    readonly indexed: number;
    /** In an exported page with a sample of episodes: the run's total. */
    readonly of?: number;
  };
  /** Action sequences in the first and last tenth of the steps. */
  readonly early: ActionSequences | null;
  readonly late: ActionSequences | null;
  readonly lines: { readonly metrics: number; readonly timings: number; readonly habits: number };
  /** Files or lines that could not be read. */
  readonly problems: readonly string[];
  /** Position in the run, from which a feed can be resumed. */
  readonly cursor: string;
}

/** Action sequences of the episodes of some steps, most frequent first. */
export interface ActionSequences {
  readonly from_step: number;
  readonly to_step: number;
  readonly episodes: number;
  /** Share of right answers. */
  readonly right: number;
  readonly sequences: readonly { readonly actions: string; readonly share: number; readonly right: number }[];
}

/** Rows of a log by column, starting at `from`. */
export interface LogPage {
  readonly from: number;
  readonly total: number;
  readonly columns: Readonly<Record<string, readonly (number | null)[]>>;
}

export type LogName = "metrics" | "timings" | "habits";
export const LOG_NAMES: readonly LogName[] = ["metrics", "timings", "habits"];

/** An episode as a table row. */
export interface EpisodeRow {
  /** Line number in episodes.jsonl, from 0. */
  readonly n: number;
  readonly step: number;
  readonly group: number;
  readonly generation: number;
  readonly question_id: string;
  readonly question: string;
  readonly database_name: string;
  readonly difficulty: Difficulty;
  readonly correctness: 0 | 1 | null;
  readonly total_reward: number | null;
  readonly advantage: number;
  /** First letters of the actions: "DQA". */
  readonly actions: string;
  readonly step_count: number;
  readonly failed: number;
  readonly not_understood: number;
  readonly completion_tokens: number;
  readonly truncated: boolean;
}

export const SORT_KEYS = [
  "n",
  "step",
  "question",
  "database_name",
  "correctness",
  "total_reward",
  "advantage",
  "actions",
  "step_count",
  "completion_tokens",
] as const;
export type SortKey = (typeof SORT_KEYS)[number];
export const VERDICTS = ["right", "wrong", "unscored", "truncated", "failed", "not_understood"] as const;
export type VerdictFilter = (typeof VERDICTS)[number];

export interface EpisodeQuery {
  /** Part of the question, its id or the database's name. */
  readonly text?: string;
  readonly from_step?: number;
  readonly to_step?: number;
  readonly verdict?: VerdictFilter;
  readonly difficulty?: Difficulty;
  /** An action sequence, as in `EpisodeRow`. */
  readonly actions?: string;
  readonly sort?: SortKey;
  readonly descending?: boolean;
  readonly offset?: number;
  readonly limit?: number;
}

export interface EpisodePage {
  readonly rows: readonly EpisodeRow[];
  /** Number of matches. */
  readonly total: number;
  readonly right: number;
  readonly mean_reward: number | null;
}

/** Rows before and after an episode in a filtered and sorted list. */
export interface EpisodeNeighbours {
  readonly previous: number | null;
  readonly next: number | null;
  /** From 1. */
  readonly position: number;
  readonly total: number;
}

/** An episode by its number, with the question's gold. */
export interface NumberedEpisode {
  readonly n: number;
  readonly episode: EpisodeLine;
  readonly gold: GoldAnswer | null;
  /** Its neighbours in the requested list. */
  readonly neighbours?: EpisodeNeighbours;
}

/** One evaluated question in full: the episodes of those players that have played it. */
export interface QuestionDetail {
  readonly question_id: string;
  readonly question: string;
  readonly gold: GoldAnswer | null;
  readonly form: string;
  readonly episodes: readonly EpisodeRecord[];
}

/** An event of the feed: changes since the requested cursor or the previous event. */
export interface FeedEvent {
  readonly summary: RunSummary;
  readonly logs: Readonly<Record<LogName, LogPage>>;
}
