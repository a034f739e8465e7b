// Execution accuracy of an episode: whether its last query returns the gold result.
import type { QuestionRecord } from "../../data/index.ts";
import type { EpisodeRecord } from "../../episode.ts";
import type { Database } from "../../sql/index.ts";
import { type ExecutionRule, executeGold, judge } from "./execution.ts";

/**
 * The query that execution accuracy judges: the last one that ran. Failed queries after it do not replace it, since
 * they returned no result to answer with.
 */
export function lastQuery({ steps }: Pick<EpisodeRecord, "steps">): string | null {
  const ran = steps.findLast(
    ({ action, observation: { error_class } }) =>
      action.action_type === "QUERY" && (error_class === null || error_class === "repeat"),
  );
  return ran?.action.argument ?? null;
}

/** Judges an episode's last query by both published rules; an episode without one is wrong. */
export function judgeEpisode(
  record: Pick<EpisodeRecord, "steps">,
  { gold_sql }: Pick<QuestionRecord, "gold_sql">,
  database: Database,
): Readonly<Record<ExecutionRule, boolean>> {
  const sql = lastQuery(record);
  if (sql === null) return { spider: false, bird: false };
  const { spider, bird } = judge(database, sql, executeGold(database, gold_sql));
  return { spider, bird };
}
