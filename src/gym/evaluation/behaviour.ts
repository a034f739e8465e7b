// Behaviour statistics: whether players describe tables before they query them, and answer with values they saw.
import { isLastReference, rulesFromId, tableNames } from "../env/index.ts";
import type { EpisodeRecord } from "../episode.ts";

/** Shares are 0–1; null if the denominator is 0. */
export interface Behaviour {
  /** Share of episodes that described a table before the first query on it. */
  readonly described_first: number | null;
  /** Share of answers whose values all occurred in an earlier result. */
  readonly answers_seen: number | null;
  /** Mean number of actions in episodes with a right answer. */
  readonly steps_to_solve: number | null;
  /** Mean number of repeated actions per episode. */
  readonly repeats: number | null;
}

/** Computes the statistics of scored episodes. */
export function measureBehaviour(records: readonly EpisodeRecord[]): Behaviour {
  const answered = records.filter(({ steps }) => steps.at(-1)?.action.action_type === "ANSWER");
  const solved = records.filter(({ correctness }) => correctness === 1);
  return {
    described_first: mean(records.map((record) => Number(describedFirst(record)))),
    answers_seen: mean(answered.map((record) => Number(answersWhatItSaw(record)))),
    steps_to_solve: mean(solved.map(({ step_count }) => step_count)),
    repeats: mean(records.map(({ repeats }) => repeats)),
  };
}

function describedFirst({ steps }: EpisodeRecord): boolean {
  const first = steps.findIndex(({ action }) => action.action_type === "QUERY");
  if (first < 0) return false;
  const sql = steps[first]!.action.argument.toLowerCase();
  return steps.slice(0, first).some(({ action: { action_type, argument }, observation }) => {
    if (action_type !== "DESCRIBE" || observation.error !== null) return false;
    return tableNames(argument).some((table) => sql.includes(table.toLowerCase()));
  });
}

function answersWhatItSaw({ steps, rules }: EpisodeRecord): boolean {
  const { argument } = steps.at(-1)!.action;
  if (rulesFromId(rules ?? "")?.answer_last && isLastReference(argument)) return true;
  const shown = steps.map(({ observation }) => observation.result.toLowerCase()).join("\n");
  const values = valuesOf(argument);
  return values.length > 0 && values.every((value) => shown.includes(value));
}

/** Splits an answer into values as a result would show them. */
function valuesOf(answer: string): string[] {
  const list = /^\s*\[(.*)\]\s*$/s.exec(answer)?.[1]?.match(/\s*(?:"(?:[^"\\]|\\.)*"|[^,]+)/g);
  return (list ?? answer.split(/\n| \| |, /))
    .map((value) =>
      value
        .trim()
        .replace(/^"(.*)"$/s, "$1")
        .toLowerCase(),
    )
    .filter((value) => value !== "");
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** @deprecated use `measureBehaviour` */
export { measureBehaviour as behaviourOf };
