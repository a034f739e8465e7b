// An in-memory index of a run's episodes, to filter, sort and page 100,000 of them without rereading the file.

import type { EpisodeLine } from "../../../rl/run/records.ts";
import {
  type ActionStats,
  ActionStatsCounter,
  actionLetters,
  type CountedEpisode,
} from "../../reports/action-stats.ts";
import type {
  ActionSequences,
  EpisodeNeighbours,
  EpisodePage,
  EpisodeQuery,
  EpisodeRow,
  SortKey,
  VerdictFilter,
} from "./schemas.ts";

/** Maximum rows per page. */
export const MAX_PAGE = 1000;
/** Action sequences listed; the rest are rare. */
const NAMED_SEQUENCES = 6;

export class EpisodeIndex {
  readonly rows: EpisodeRow[] = [];
  readonly #habits = new ActionStatsCounter();
  #habitsList: ActionStats[] | null = null;
  /** Interned strings: questions repeat often. */
  readonly #texts = new Map<string, string>();
  /** By step: count and right answers of each action sequence. */
  readonly #sequences = new Map<number, Map<string, [count: number, right: number]>>();

  add(line: EpisodeLine & CountedEpisode): void {
    const actions = this.#intern(actionLetters(line.steps));
    this.rows.push({
      n: this.rows.length,
      step: line.step,
      group: line.group,
      generation: line.generation,
      question_id: this.#intern(line.question_id),
      question: this.#intern(line.question),
      database_name: this.#intern(line.database_name),
      difficulty: line.difficulty,
      correctness: line.correctness,
      total_reward: line.total_reward,
      advantage: line.advantage,
      actions,
      step_count: line.step_count,
      failed: line.invalid,
      not_understood: line.parse_failures,
      completion_tokens: line.completion_tokens,
      truncated: line.truncated,
    });
    this.#habits.add(line);
    this.#habitsList = null;
    const counts = this.#sequences.get(line.step) ?? new Map<string, [number, number]>();
    this.#sequences.set(line.step, counts);
    const [count, right] = counts.get(actions) ?? [0, 0];
    counts.set(actions, [count + 1, right + (line.correctness === 1 ? 1 : 0)]);
  }

  habits(): readonly ActionStats[] {
    this.#habitsList ??= this.#habits.list();
    return this.#habitsList;
  }

  /** Action sequences of the first and last tenth of the steps; null before there are two steps. */
  actionSequences(): { readonly early: ActionSequences; readonly late: ActionSequences } | null {
    const steps = [...this.#sequences.keys()].sort((a, b) => a - b);
    if (steps.length < 2) return null;
    const tenth = Math.max(1, Math.floor(steps.length / 10));
    return { early: this.#countSequences(steps.slice(0, tenth)), late: this.#countSequences(steps.slice(-tenth)) };
  }

  query(query: EpisodeQuery): EpisodePage {
    const { offset = 0, limit = 50 } = query;
    const found = this.#sorted(query);
    let [sum, scored, right] = [0, 0, 0];
    for (const { total_reward, correctness } of found) {
      if (correctness === 1) right++;
      if (total_reward === null) continue;
      sum += total_reward;
      scored++;
    }
    return {
      rows: found.slice(offset, offset + Math.min(limit, MAX_PAGE)),
      total: found.length,
      right,
      mean_reward: scored === 0 ? null : sum / scored,
    };
  }

  /** An episode's neighbours in the list of a query; undefined if it is not in that list. */
  neighbours(n: number, query: EpisodeQuery): EpisodeNeighbours | undefined {
    const found = this.#sorted(query);
    const at = found.findIndex((row) => row.n === n);
    if (at < 0) return undefined;
    return {
      previous: found[at - 1]?.n ?? null,
      next: found[at + 1]?.n ?? null,
      position: at + 1,
      total: found.length,
    };
  }

  #sorted(query: EpisodeQuery): EpisodeRow[] {
    const { sort = "n", descending = false } = query;
    const found = this.matching(query);
    const sign = descending ? -1 : 1;
    if (sort !== "n") return found.sort((a, b) => sign * compare(a, b, sort) || a.n - b.n);
    return descending ? found.reverse() : found;
  }

  /** Matching rows, in the order they were played. */
  matching({ text = "", from_step, to_step, verdict, difficulty, actions }: EpisodeQuery): EpisodeRow[] {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = new Map<string, boolean>(); // cached by question: far fewer than episodes
    const matchesText = (row: EpisodeRow) => {
      if (words.length === 0) return true;
      const key = `${row.question_id}\n${row.question}\n${row.database_name}`;
      const known = matches.get(key);
      if (known !== undefined) return known;
      const lower = key.toLowerCase();
      const isMatch = words.every((word) => lower.includes(word));
      matches.set(key, isMatch);
      return isMatch;
    };
    return this.rows.filter(
      (row) =>
        (from_step === undefined || row.step >= from_step) &&
        (to_step === undefined || row.step <= to_step) &&
        (verdict === undefined || VERDICT_TESTS[verdict](row)) &&
        (difficulty === undefined || row.difficulty === difficulty) &&
        (actions === undefined || row.actions === actions) &&
        matchesText(row),
    );
  }

  /** The episodes of one question in one step, in order. */
  group(step: number, group: number): EpisodeRow[] {
    return this.rows.filter((row) => row.step === step && row.group === group);
  }

  #countSequences(steps: readonly number[]): ActionSequences {
    const sums = new Map<string, [number, number]>();
    let [episodes, rights] = [0, 0];
    for (const step of steps)
      for (const [actions, [count, right]] of this.#sequences.get(step)!) {
        const [all, good] = sums.get(actions) ?? [0, 0];
        sums.set(actions, [all + count, good + right]);
        episodes += count;
        rights += right;
      }
    const sequences = [...sums]
      .sort(([, [a]], [, [b]]) => b - a)
      .slice(0, NAMED_SEQUENCES)
      .map(([actions, [count, right]]) => ({ actions, share: count / episodes, right: right / count }));
    return { from_step: steps[0]!, to_step: steps.at(-1)!, episodes, right: rights / episodes, sequences };
  }

  #intern(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#texts.set(text, text);
    return text;
  }
}

const VERDICT_TESTS: Readonly<Record<VerdictFilter, (row: EpisodeRow) => boolean>> = {
  right: ({ correctness }) => correctness === 1,
  wrong: ({ correctness }) => correctness === 0,
  unscored: ({ correctness }) => correctness === null,
  truncated: ({ truncated }) => truncated,
  failed: ({ failed }) => failed > 0,
  not_understood: ({ not_understood }) => not_understood > 0,
};

/** null sorts first; strings by code unit, the same in every locale. */
function compare(a: EpisodeRow, b: EpisodeRow, key: SortKey): number {
  const [x, y] = [a[key], b[key]];
  if (x === y) return 0;
  if (x === null || y === null) return x === null ? -1 : 1;
  return x < y ? -1 : 1;
}
