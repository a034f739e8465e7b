// Judges attempts: for each question, whether the answer and the final query are right, and if not, why.

import { yieldToEventLoop } from "../../../gym/data/formats/build-questions.ts";
import { type DataSet, type Difficulty, outline, type QuestionRecord } from "../../../gym/data/index.ts";
import {
  type ExecutionRule,
  executeGold,
  type GoldExecution,
  judge,
  resultKey,
  Twins,
} from "../../../gym/evaluation/index.ts";
import type { Database } from "../../../gym/sql/index.ts";
import type { Attempt, Attempts } from "./attempts.ts";
import { elect } from "./votes.ts";

/** The measures: the answer, the query by each rule, and the query by Spider's rule on perturbed twins as well. */
export const MEASURES = ["answer", "spider", "bird", "twins"] as const;

export type Measure = (typeof MEASURES)[number];

/** Whether each measure is met; null if it does not apply. */
export type Verdicts = Readonly<Record<Measure, boolean | null>>;

/** A question's outcome: ids and verdicts only, no text of the data set. */
export interface QuestionOutcome extends Verdicts {
  readonly id: string;
  readonly database: string;
  readonly difficulty: Difficulty;
  /** Number of joins in the gold query. */
  readonly joins: number;
  /**
   * Why the query is wrong by a rule: no query, SQLite's error class, `clock` (time limit) or another result; null if
   * right by both.
   */
  readonly reason: string | null;
  /**
   * Set if a statement of any attempt, of the gold query, or on a twin hit the time limit: the verdict then depends on
   * the machine.
   */
  readonly stopped?: true;
  /** Number of twins on which the gold query has a usable answer; may be fewer than requested. */
  readonly tried_twins?: number;
  /** With several attempts: how many agree with the chosen one; `any` tells which measures any attempt meets. */
  readonly votes?: number;
  readonly any?: Verdicts;
  /** Tokens of all attempts; null if the player does not count them. */
  readonly tokens: number | null;
  readonly prompt_tokens: number | null;
  /** Error of a failed attempt. */
  readonly error: string | null;
}

export interface JudgeOptions {
  /** Number of twins on which a query must also agree with the gold query. @default 0 */
  readonly twins?: number;
  /** If aborted, the outcomes cover the questions judged so far. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each question. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Judges every attempt; outcomes are in the data set's order. */
export async function judgeAttempts(
  data: DataSet,
  attempts: Attempts,
  { twins: count = 0, signal, onProgress }: JudgeOptions = {},
): Promise<QuestionOutcome[]> {
  const twins = count > 0 ? new Twins(data, count) : undefined;
  const asked = data.questions.filter(({ question_id }) => attempts.has(question_id));
  const outcomes: QuestionOutcome[] = [];
  for (const question of asked) {
    if (signal?.aborted) break;
    outcomes.push(judgeQuestion(question, attempts.get(question.question_id)!, data, twins));
    onProgress?.(outcomes.length, asked.length);
    if (outcomes.length % QUESTIONS_PER_YIELD === 0) await yieldToEventLoop();
  }
  twins?.close();
  return outcomes;
}

const QUESTIONS_PER_YIELD = 16;

function judgeQuestion(
  question: QuestionRecord,
  attempts: readonly Attempt[],
  data: DataSet,
  twins: Twins | undefined,
): QuestionOutcome {
  const { question_id: id, database_name: database, difficulty, gold_sql } = question;
  const gold = executeGold(data.databases.get(database), gold_sql);
  const twinGolds = twins?.goldsOf(question) ?? [];
  const agrees = twins && ((sql: string) => twins.agrees(question, sql, twinGolds));
  const stoppedBefore = twins?.stopped ?? 0;
  const judged = attempts.map((attempt) => judgeAttempt(attempt, gold, data.databases.get(database), agrees));
  const { index, votes } = elect(judged.map(({ ballot }) => ballot));
  const chosen = judged[index]!;
  const stopped = (twins?.stopped ?? 0) > stoppedBefore || [...attempts, ...judged].some((one) => one.stopped);
  return {
    id,
    database,
    difficulty,
    joins: outline(gold_sql).joins,
    ...chosen.verdicts,
    reason: chosen.reason,
    ...(stopped && { stopped }),
    ...(twins && { tried_twins: twinGolds.length }),
    ...(attempts.length > 1 && { votes, any: anyOf(judged.map(({ verdicts }) => verdicts)) }),
    tokens: total(attempts.map(({ tokens }) => tokens)),
    prompt_tokens: total(attempts.map(({ prompt_tokens }) => prompt_tokens)),
    error: attempts.find(({ error }) => error !== null)?.error ?? null,
  };
}

interface Judged {
  readonly verdicts: Verdicts;
  readonly reason: string | null;
  /** Equal for attempts whose queries returned the same rows; undefined without a result. */
  readonly ballot: string | undefined;
  readonly stopped: boolean;
}

function judgeAttempt(
  { sql, answer, error, why }: Attempt,
  gold: GoldExecution,
  database: Database,
  agrees: ((sql: string) => boolean) | undefined,
): Judged {
  if (sql === null) {
    const verdicts = { answer, spider: false, bird: false, twins: agrees ? false : null };
    return { verdicts, reason: why ?? (error === null ? "no query" : "broken"), ballot: undefined, stopped: false };
  }
  const { spider, bird, error: failure, result, stopped } = judge(database, sql, gold);
  const isRight = spider && bird;
  const reason = stopped && !isRight ? STOPPED : failure ? failure.error_class : wrongBy({ spider, bird }, gold);
  const twins = agrees ? spider && agrees(sql) : null;
  return { verdicts: { answer, spider, bird, twins }, reason, ballot: result ? resultKey(result) : undefined, stopped };
}

/** The reason if the query or its gold query hit the time limit. */
const STOPPED = "clock";

function wrongBy({ spider, bird }: Record<ExecutionRule, boolean>, gold: GoldExecution): string | null {
  if (spider && bird) return null;
  if (!gold.spider.ok || !gold.bird.ok) return "the gold fails";
  return spider ? "another result by bird" : bird ? "another result by spider" : "another result";
}

function anyOf(verdicts: readonly Verdicts[]): Verdicts {
  const any = (measure: Measure) =>
    verdicts.every((one) => one[measure] === null) ? null : verdicts.some((one) => one[measure] === true);
  return { answer: any("answer"), spider: any("spider"), bird: any("bird"), twins: any("twins") };
}

function total(counts: readonly (number | null)[]): number | null {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : known.reduce((sum, count) => sum + count, 0);
}
