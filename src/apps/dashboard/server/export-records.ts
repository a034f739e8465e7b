// The records of a run in an exported page.
import type { Comparison, EpisodeLine } from "../../../rl/run/records.ts";
import type { LogName, LogPage, RunSummary } from "./schemas.ts";

export interface ExportedRun {
  readonly summary: RunSummary;
  readonly logs: Readonly<Record<LogName, LogPage>>;
  readonly comparison: Comparison;
  /** All of them, or whole groups sampled evenly over the steps. */
  readonly episodes: readonly EpisodeLine[];
}
