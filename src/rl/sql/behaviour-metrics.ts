// Behaviour that keeps SQL episodes from being right, for the metrics and the warnings of diagnostics.ts.
import { isLastReference } from "../../gym/env/index.ts";
import type { Episode } from "../run/records.ts";

/** On a database with fewer tables it is reasonable to describe them all. */
const MANY_TABLES = 4;
/** An episode without an answer counts as repetitive if it repeats at least this many actions. */
const SEVERAL_REPEATS = 2;

/** Shares of actions and of episodes. */
export function behaviourMetrics(episodes: readonly Episode[]): Record<string, number> {
  const actions = episodes.reduce((sum, { step_count }) => sum + step_count, 0);
  const early = episodes.reduce((sum, { steps }) => sum + steps.filter(isEarlyReference).length, 0);
  const share = (test: (episode: Episode) => boolean) => episodes.filter(test).length / episodes.length;
  return {
    "actions/early_last_rate": actions === 0 ? 0 : early / actions,
    "episodes/describes_everything": share(describesEverything),
    "episodes/repeats_to_the_end": share(repeatsToTheEnd),
    "episodes/answer_cut_off": share(isAnswerCutOff),
    "episodes/answer_miscopied": share(isAnswerMiscopied),
  };
}

/** `ANSWER: @last` before any query has worked. */
function isEarlyReference({ action, observation }: Episode["steps"][number]): boolean {
  return (
    observation.error_class === "bad_action" && action.action_type === "ANSWER" && isLastReference(action.argument)
  );
}

/** Most actions are DESCRIBE or SAMPLE, and most tables of a database with many are described before the first query. */
function describesEverything({ steps }: Episode): boolean {
  const views = steps.filter(({ action: { action_type: type } }) => type === "DESCRIBE" || type === "SAMPLE").length;
  if (views <= steps.length / 2) return false;
  const query = steps.findIndex(({ action }) => action.action_type === "QUERY");
  const before = query < 0 ? steps.at(-1) : steps[query - 1];
  // Once a table is described, schema_info has one line per table, with the columns of those described.
  const tables = before?.observation.schema_info.split("\n") ?? [];
  return tables.length >= MANY_TABLES && tables.filter((line) => line.endsWith(")")).length > tables.length / 2;
}

/** Ended by the budget, or as stuck, after repeating actions. */
function repeatsToTheEnd({ done_reason, repeats }: Episode): boolean {
  return done_reason === "stuck" || (done_reason === "budget" && repeats >= SEVERAL_REPEATS);
}

/** A token limit ended the turn with the answer. */
function isAnswerCutOff({ truncated, steps }: Episode): boolean {
  return truncated && steps.at(-1)?.action.action_type === "ANSWER";
}

/** A query returned the values of the right answer (Φ = 1), and the answer was still wrong. */
function isAnswerMiscopied({ done_reason, progress, correctness }: Episode): boolean {
  return done_reason === "answered" && progress === 1 && correctness === 0;
}
