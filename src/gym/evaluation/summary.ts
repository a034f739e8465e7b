// Summarizes episodes: success with an interval, rewards and behaviour, overall and by group.

import { ANSWER_TYPES, type AnswerType, DIFFICULTIES, type Difficulty } from "../data/index.ts";
import type { DoneReason } from "../env/index.ts";
import type { EpisodeRecord } from "../episode.ts";
import { type Behaviour, measureBehaviour } from "./behaviour.ts";
import { type Cluster, clusterInterval } from "./cluster.ts";
import { type Interval, wilson } from "./wilson.ts";

/** How an interval was computed: over questions, or over databases if those are the sampled units. */
export type IntervalMethod = "wilson" | "cluster_t_by_database";

/** A group of episodes. Rates are 0–1; null if nothing was scored. */
export interface Summary {
  readonly episodes: number;
  /** Number of episodes without an error. All rates and means are over these. */
  readonly scored: number;
  readonly success_rate: number | null;
  /** 95 % confidence interval. */
  readonly success_ci: Interval | null;
  readonly ci_method: IntervalMethod;
  readonly mean_reward: number | null;
  readonly mean_steps: number | null;
  /** Maximum number of episodes per question. */
  readonly tries: number;
  /** Share of questions answered right in at least one try (pass@k). */
  readonly solved_in_tries: number | null;
  readonly behaviour: Behaviour;
}

export interface EvaluationReport extends Summary {
  readonly player: string;
  /** Id of the prompt; absent for players without a prompt. */
  readonly prompt?: string;
  /** Id of the environment's rules; null if no episode has one. */
  readonly rules: string | null;
  /** Number of episodes aborted by an error of the player or its endpoint. */
  readonly errors: number;
  readonly first_error: string | null;
  /** Whether the evaluation was stopped before the last episode. */
  readonly interrupted: boolean;
  /** Share of actions that could not be parsed. */
  readonly parse_failure_rate: number | null;
  /** Share of actions that repeated an earlier one. */
  readonly repeat_rate: number | null;
  /** Share of actions that failed. */
  readonly invalid_rate: number | null;
  /** How the scored episodes ended; `none` if the player stopped or ran out of tokens. */
  readonly done_reasons: Readonly<Record<DoneReason | "none", number>>;
  readonly by_difficulty: Readonly<Record<Difficulty, Summary>>;
  readonly by_answer_type: Readonly<Record<AnswerType, Summary>>;
  /** New questions on databases that training also uses. */
  readonly seen: Summary;
  /** Questions on databases that training does not use. */
  readonly unseen: Summary;
  readonly by_database: Readonly<Record<string, Summary>>;
}

export interface ReportOptions {
  readonly player: string;
  readonly interrupted?: boolean;
}

/** Builds the report from episodes; their order does not matter. */
export function buildReport(
  records: readonly EpisodeRecord[],
  { player, interrupted = false }: ReportOptions,
): EvaluationReport {
  const scored = records.filter(isScored);
  const actions = scored.reduce((sum, record) => sum + record.step_count, 0);
  const rate = (count: (record: EpisodeRecord) => number) =>
    actions === 0 ? null : scored.reduce((sum, record) => sum + count(record), 0) / actions;
  const broken = records.filter(({ error }) => error !== null);
  const group = <K extends string>(keys: readonly K[], keyOf: (record: EpisodeRecord) => K) =>
    Object.fromEntries(
      keys.map((key) => [key, summarize(records.filter((record) => keyOf(record) === key))]),
    ) as Record<K, Summary>;
  const names = [...new Set(records.map(({ database_name }) => database_name))].sort();
  return {
    player,
    ...(records[0]?.prompt !== undefined && { prompt: records[0].prompt }),
    rules: records[0]?.rules ?? null,
    ...summarize(records),
    errors: broken.length,
    first_error: broken[0]?.error ?? null,
    interrupted,
    parse_failure_rate: rate(({ parse_failures }) => parse_failures),
    repeat_rate: rate(({ repeats }) => repeats),
    invalid_rate: rate(({ invalid }) => invalid),
    done_reasons: doneReasons(scored),
    by_difficulty: group(DIFFICULTIES, ({ difficulty }) => difficulty),
    by_answer_type: group(ANSWER_TYPES, ({ answer_type }) => answer_type),
    seen: summarize(records.filter(({ seen }) => seen)),
    unseen: summarize(
      records.filter(({ seen }) => !seen),
      "cluster_t_by_database",
    ),
    by_database: group(names, ({ database_name }) => database_name),
  };
}

function doneReasons(scored: readonly EpisodeRecord[]): Record<DoneReason | "none", number> {
  const counts = { answered: 0, budget: 0, stuck: 0, none: 0 };
  for (const { done_reason } of scored) counts[done_reason ?? "none"]++;
  return counts;
}

/** A timeout still counts as a scored failure: leaving it out would reward stalling. */
function isScored({ error }: EpisodeRecord): boolean {
  return error === null;
}

/** Summarizes a group. Clustering needs two databases; with fewer, Wilson's interval is used. */
export function summarize(records: readonly EpisodeRecord[], method: IntervalMethod = "wilson"): Summary {
  const scored = records.filter(isScored);
  const mean = (of: (record: EpisodeRecord) => number) =>
    scored.length === 0 ? null : scored.reduce((sum, record) => sum + of(record), 0) / scored.length;
  const success_rate = mean(({ correctness }) => correctness ?? 0);
  const clusters = method === "wilson" ? null : clusterInterval(byDatabase(scored));
  return {
    episodes: records.length,
    scored: scored.length,
    success_rate,
    success_ci: clusters ?? overQuestions(scored, success_rate),
    ci_method: clusters ? method : "wilson",
    mean_reward: mean(({ reward }) => reward ?? 0),
    mean_steps: mean(({ step_count }) => step_count),
    ...countTries(scored),
    behaviour: measureBehaviour(scored),
  };
}

function countTries(scored: readonly EpisodeRecord[]): Pick<Summary, "tries" | "solved_in_tries"> {
  const played = new Map<string, number>();
  const solved = new Set<string>();
  for (const { question_id, correctness } of scored) {
    played.set(question_id, (played.get(question_id) ?? 0) + 1);
    if (correctness === 1) solved.add(question_id);
  }
  return {
    tries: Math.max(0, ...played.values()),
    solved_in_tries: played.size === 0 ? null : solved.size / played.size,
  };
}

/** Wilson's interval over distinct questions: playing a question again adds no evidence. */
function overQuestions(scored: readonly EpisodeRecord[], rate: number | null): Interval | null {
  const questions = countQuestions(scored);
  return rate === null ? null : wilson(rate * questions, questions);
}

function countQuestions(scored: readonly EpisodeRecord[]): number {
  return new Set(scored.map(({ question_id }) => question_id)).size;
}

/** Successes and trials per database, over its distinct questions. */
function byDatabase(scored: readonly EpisodeRecord[]): Cluster[] {
  const names = new Set(scored.map(({ database_name }) => database_name));
  return [...names].map((name) => {
    const of = scored.filter(({ database_name }) => database_name === name);
    const rate = of.filter(({ correctness }) => correctness === 1).length / of.length;
    const trials = countQuestions(of);
    return { successes: rate * trials, trials };
  });
}

/** @deprecated use `buildReport` and `summarize` */
export { buildReport as reportOf, summarize as summaryOf };
