// Habits of play that keep an episode from being right, counted for the metrics and for the warnings of diagnostics.ts.
import { isLastReference } from "../gym/env/index.ts";
import type { Episode } from "./run/records.ts";

/** On a database with fewer tables it is reasonable to describe them all. */
const MANY_TABLES = 4;
/** Repeated actions after which an episode without an answer counts as one that repeats itself. */
const SEVERAL_REPEATS = 2;

/** Shares of actions, of episodes and of groups; episodes of one question are adjacent. */
export function habitMetrics(episodes: readonly Episode[], num_generations: number): Record<string, number> {
  const actions = episodes.reduce((sum, { step_count }) => sum + step_count, 0);
  const early = episodes.reduce((sum, { steps }) => sum + steps.filter(isEarlyReference).length, 0);
  const share = (test: (episode: Episode) => boolean) => episodes.filter(test).length / episodes.length;
  return {
    "actions/early_last_rate": actions === 0 ? 0 : early / actions,
    "episodes/describes_everything": share(describesEverything),
    "episodes/repeats_to_the_end": share(repeatsToTheEnd),
    "episodes/answer_cut_off": share(isAnswerCutOff),
    "episodes/answer_miscopied": share(isAnswerMiscopied),
    ...uniformGroups(episodes, num_generations),
  };
}

/** `ANSWER: @last` before any query has worked. */
function isEarlyReference({ action, observation }: Episode["steps"][number]): boolean {
  return (
    observation.error_class === "bad_action" && action.action_type === "ANSWER" && isLastReference(action.argument)
  );
}

/** Most actions look at tables, and most tables of a database with many are described before the first query. */
function describesEverything({ steps }: Episode): boolean {
  const looks = steps.filter(({ action: { action_type: type } }) => type === "DESCRIBE" || type === "SAMPLE").length;
  if (looks <= steps.length / 2) return false;
  const query = steps.findIndex(({ action }) => action.action_type === "QUERY");
  const before = query < 0 ? steps.at(-1) : steps[query - 1];
  // One line for each table once one is described, those described with their columns.
  const tables = before?.observation.schema_info.split("\n") ?? [];
  return tables.length >= MANY_TABLES && tables.filter((line) => line.endsWith(")")).length > tables.length / 2;
}

/** Ended by the budget, or as stuck, after repeating actions. */
function repeatsToTheEnd({ done_reason, repeats }: Episode): boolean {
  return done_reason === "stuck" || (done_reason === "budget" && repeats >= SEVERAL_REPEATS);
}

/** The answer's turn was ended by a token limit. */
function isAnswerCutOff({ truncated, steps }: Episode): boolean {
  return truncated && steps.at(-1)?.action.action_type === "ANSWER";
}

/** A query returned the values of the right answer (Φ = 1), and the answer was wrong all the same. */
function isAnswerMiscopied({ done_reason, progress, correctness }: Episode): boolean {
  return done_reason === "answered" && progress === 1 && correctness === 0;
}

/** Shares of groups whose scored episodes are all right or all wrong: correctness tells nothing apart there. */
function uniformGroups(episodes: readonly Episode[], size: number): Record<string, number> {
  const groups = Array.from({ length: Math.floor(episodes.length / size) }, (_, g) =>
    episodes
      .slice(g * size, (g + 1) * size)
      .flatMap(({ correctness }) => (correctness === null ? [] : [correctness as number])),
  ).filter((verdicts) => verdicts.length > 0);
  if (groups.length === 0) return {};
  const share = (verdict: number) => groups.filter((all) => all.every((one) => one === verdict)).length / groups.length;
  return { "groups/all_right": share(1), "groups/all_wrong": share(0) };
}
