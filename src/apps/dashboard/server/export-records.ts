// The records of a run in an exported page.
import type { Comparison, EpisodeLine, EvaluationEpisodes, GoldAnswers } from "../../../rl/run/records.ts";
import type { LogName, LogPage, RunSummary } from "./schemas.ts";

export interface ExportedRun {
  readonly summary: RunSummary;
  readonly logs: Readonly<Record<LogName, LogPage>>;
  readonly comparison: Comparison;
  /** All questions of the last evaluation, or as many as fit, the wrong ones first. */
  readonly evaluation: EvaluationEpisodes | null;
  /** Gold of the questions in this file. */
  readonly gold: GoldAnswers | null;
  /** All episodes, or whole groups sampled evenly over the steps. */
  readonly episodes: readonly EpisodeLine[];
}
