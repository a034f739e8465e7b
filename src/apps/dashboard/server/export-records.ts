// What an exported page holds of a run.
import type { Comparison, EpisodeLine } from "../../../rl/run/records.ts";
import type { LogName, LogPage, RunSummary } from "./schemas.ts";

export interface ExportedRun {
  readonly summary: RunSummary;
  readonly logs: Readonly<Record<LogName, LogPage>>;
  readonly comparison: Comparison;
  /** All of them, or whole groups evenly from all steps. */
  readonly episodes: readonly EpisodeLine[];
}
