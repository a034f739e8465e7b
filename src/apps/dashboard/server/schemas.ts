// What the dashboard's server and page tell each other: plain records, the same in a live page and in an exported file.
import type { Difficulty } from "../../../gym/data/index.ts";
import type { Standing, TrainingResult, Warning } from "../../../rl/run/records.ts";

/** What a run is doing, as far as its folder shows. */
export type RunState = "evaluating" | "training" | "finished" | "stopped";

/** A run in a list. */
export interface RunListing {
  /** Its name in addresses. */
  readonly id: string;
  readonly name: string;
  readonly state: RunState;
  readonly model_name: string | null;
  readonly config: Readonly<Record<string, unknown>> | null;
  /** The last step that was done. */
  readonly step: number;
  /** Steps there will be; null before that is known. */
  readonly total_steps: number | null;
  /** Seconds of training. */
  readonly elapsed: number | null;
  readonly random: Standing | null;
  readonly before: Standing | null;
  /** The newest evaluation after `before`: on the way, or at the end. */
  readonly now: Standing | null;
  readonly now_step: number | null;
  readonly result: Pick<TrainingResult, "seconds" | "steps" | "episodes" | "tokens"> | null;
}

/** Everything the first screen needs. */
export interface RunSummary extends RunListing {
  readonly warnings: readonly Warning[];
  /** Seconds left; null when that cannot be told. */
  readonly eta: number | null;
  readonly episodes: {
    readonly count: number;
    /** Share of the file that has been read. */
    readonly indexed: number;
    /** Of an exported page, which holds a sample: how many the run has. */
    readonly of?: number;
  };
  /** What the model does in the first and in the last tenth of the steps. */
  readonly early: Manners | null;
  readonly late: Manners | null;
  readonly lines: { readonly metrics: number; readonly timings: number; readonly habits: number };
  /** What of the folder could not be read. */
  readonly problems: readonly string[];
  /** Where in the run's life this is: what a feed is resumed by. */
  readonly cursor: string;
}

/** How episodes of some steps were played: sequences of actions, the commonest first. */
export interface Manners {
  readonly from_step: number;
  readonly to_step: number;
  readonly episodes: number;
  /** Share of right answers. */
  readonly right: number;
  readonly sequences: readonly { readonly actions: string; readonly share: number; readonly right: number }[];
}

/** Numbers by column, the rows `from` … of a log. */
export interface LogPage {
  readonly from: number;
  readonly total: number;
  readonly columns: Readonly<Record<string, readonly (number | null)[]>>;
}

export type LogName = "metrics" | "timings" | "habits";
export const LOG_NAMES: readonly LogName[] = ["metrics", "timings", "habits"];

/** An episode in the table. */
export interface EpisodeRow {
  /** Its line in episodes.jsonl, from 0. */
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
  /** First letters of its actions: "DQA". */
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
  /** A sequence of actions, as in `EpisodeRow`. */
  readonly actions?: string;
  readonly sort?: SortKey;
  readonly descending?: boolean;
  readonly offset?: number;
  readonly limit?: number;
}

export interface EpisodePage {
  readonly rows: readonly EpisodeRow[];
  /** How many match. */
  readonly total: number;
  readonly right: number;
  readonly mean_reward: number | null;
}

/** An event of the feed: what is new since the cursor it was asked with, or since the event before. */
export interface FeedEvent {
  readonly summary: RunSummary;
  readonly logs: Readonly<Record<LogName, LogPage>>;
}
