// Evaluates a player on a seeded sample of questions, played concurrently. Concurrency does not change the report.

import { UsageError } from "../../errors.ts";
import { random } from "../../random.ts";
import { yieldToEventLoop } from "../data/formats/build-questions.ts";
import {
  type AnswerType,
  type DataSet,
  type Difficulty,
  filterQuestions,
  type QuestionRecord,
  type Split,
} from "../data/index.ts";
import { type EnvironmentRules, SQLEnvironment } from "../env/index.ts";
import { type EpisodeRecord, type PlayableEnvironment, playEpisode } from "../episode.ts";
import type { Player } from "../players/index.ts";
import { buildReport, type EvaluationReport } from "./summary.ts";

export interface EvaluateOptions {
  /** Number of episodes; beyond the number of questions, they are played again. @default each question once */
  readonly episodes?: number | undefined;
  /** Number of questions to sample. @default all */
  readonly questions?: number | undefined;
  /** Episodes per question, if `episodes` is not given. @default 1 */
  readonly tries?: number | undefined;
  /** @default "eval" */
  readonly split?: Split;
  /** Seed of the sample and of the players' random numbers. @default 0 */
  readonly seed?: number;
  /** Each list names the values to keep; an absent or empty list keeps everything. */
  readonly difficulty?: readonly Difficulty[] | undefined;
  readonly answerTypes?: readonly AnswerType[] | undefined;
  readonly databases?: readonly string[] | undefined;
  /** @default 10 */
  readonly step_budget?: number;
  /** @default DEFAULT_RULES */
  readonly rules?: EnvironmentRules;
  /** Concurrent episodes. @default 1 */
  readonly concurrency?: number;
  /**
   * Creates an environment (for example a remote one) for each concurrent episode. @default an SQLEnvironment on the
   * data
   */
  readonly environment?: () => PlayableEnvironment;
  /** Called with each episode in the order of the sample, regardless of the order in which they end. */
  readonly onEpisode?: (record: EpisodeRecord) => void;
  /** Called as soon as an episode ends. */
  readonly onProgress?: (progress: Progress) => void;
  /** Aborts the evaluation; the report then covers the finished episodes. */
  readonly signal?: AbortSignal | undefined;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
  readonly correct: number;
  readonly errors: number;
}

/**
 * Plays a sample of the data set's questions and reports on it. Throws what `playEpisode` throws.
 *
 * @example
 * const report = await evaluate(data, keywordPlayer(), { split: "eval", episodes: 200, seed: 7 });
 * console.log(report.success_rate, report.success_ci);
 */
export async function evaluate(
  data: DataSet,
  player: Player,
  options: EvaluateOptions = {},
): Promise<EvaluationReport> {
  const { step_budget = 10, rules, seed = 0, signal } = options;
  const { environment = () => new SQLEnvironment(data, { step_budget, ...rules }) } = options;
  const sample = sampleQuestions(data.questions, options);
  const trained = new Set(data.questions.filter(({ split }) => split === "train").map((q) => q.database_name));
  const records = await playConcurrently(
    sample,
    () => {
      const env = environment();
      return {
        play: ({ question, round }) =>
          playEpisode(env, player, {
            question,
            seed: episodeSeed(seed, question.question_id, round),
            seen: trained.has(question.database_name),
            signal: signal && AbortSignal.any([signal]), // a signal per episode, since signals collect listeners
          }),
        close: () => env.close?.(),
      };
    },
    options,
  );
  return buildReport(records, { player: player.name, interrupted: records.length < sample.length });
}

/** Seed of an evaluation episode: equal seeds play equal episodes. */
export function episodeSeed(seed: number, question_id: string, round: number): string {
  return `${seed}/${question_id}/${round}`;
}

/** Plays episodes one after the other. */
export interface EpisodeWorker<T> {
  play(item: T): Promise<EpisodeRecord>;
  close?(): void | Promise<void>;
}

export type ConcurrencyOptions = Pick<EvaluateOptions, "concurrency" | "onEpisode" | "onProgress" | "signal">;

/** Plays an episode for each item on several workers. After an abort, returns the finished episodes. */
export async function playConcurrently<T>(
  items: readonly T[],
  open: () => EpisodeWorker<T>,
  { concurrency = 1, onEpisode, onProgress, signal }: ConcurrencyOptions,
): Promise<EpisodeRecord[]> {
  const records: (EpisodeRecord | undefined)[] = new Array(items.length);
  let [next, handedOut, done, correct, errors] = [0, 0, 0, 0, 0];

  async function work(): Promise<void> {
    const worker = open();
    try {
      while (next < items.length && !signal?.aborted) {
        const index = next++;
        records[index] = await worker.play(items[index]!);
        report(records[index]);
        if (done % EPISODES_PER_YIELD === 0) await yieldToEventLoop();
      }
    } catch (error) {
      if (signal?.aborted) return;
      next = items.length; // the evaluation has failed: start no further episodes
      throw error;
    } finally {
      await worker.close?.();
    }
  }

  function report(record: EpisodeRecord): void {
    done++;
    if (record.correctness === 1) correct++;
    if (record.error !== null) errors++;
    onProgress?.({ done, total: items.length, correct, errors });
    for (; records[handedOut]; handedOut++) onEpisode?.(records[handedOut]!);
  }

  checkCount("concurrency", concurrency);
  const workers = await Promise.allSettled(Array.from({ length: Math.min(concurrency, items.length) }, work));
  const failed = workers.find((worker) => worker.status === "rejected");
  if (failed) throw failed.reason; // all episodes have ended by now
  return records.filter((record) => record !== undefined);
}

export interface Sampled {
  readonly question: QuestionRecord;
  /** How often the question was played before. */
  readonly round: number;
}

/** Questions in a seeded random order, each once before any is repeated. Throws UsageError if none matches. */
export function sampleQuestions(
  questions: readonly QuestionRecord[],
  {
    split = "eval",
    difficulty,
    answerTypes,
    databases,
    episodes,
    tries = 1,
    questions: drawn,
    seed = 0,
  }: EvaluateOptions,
): Sampled[] {
  const fitting = filterQuestions(questions, { split, difficulty, answer_type: answerTypes, database: databases });
  if (fitting.length === 0) {
    throw new UsageError({ what: "no question fits", value: `split ${split}`, remedy: "loosen the filters" });
  }
  return sampleRounds(fitting, { episodes, tries, drawn, seed }).map(({ item, round }) => ({ question: item, round }));
}

export interface RoundOptions {
  /** Number of episodes. @default `tries` for each drawn item */
  readonly episodes?: number | undefined;
  /** @default 1 */
  readonly tries?: number | undefined;
  /** Number of items to draw. @default all */
  readonly drawn?: number | undefined;
  readonly seed: number;
}

/** Items in a seeded random order, each once before any is repeated. */
export function sampleRounds<T>(
  items: readonly T[],
  { episodes, tries = 1, drawn, seed }: RoundOptions,
): { readonly item: T; readonly round: number }[] {
  if (drawn !== undefined) checkCount("questions", drawn);
  const pool = drawn === undefined ? items : random("evaluate", seed, "questions").sample(items, drawn);
  if (episodes !== undefined) checkCount("episodes", episodes);
  checkCount("tries", tries);
  const wanted = episodes ?? tries * pool.length;
  const rounds = Array.from({ length: Math.ceil(wanted / pool.length) }, (_, round) =>
    random("evaluate", seed, round)
      .shuffle(pool)
      .map((item) => ({ item, round })),
  );
  return rounds.flat().slice(0, wanted);
}

function checkCount(name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1 || value > MAX_COUNT) {
    throw new UsageError({ what: `${name} must be a whole number from 1 to ${MAX_COUNT}`, value });
  }
}

const MAX_COUNT = 1_000_000; // all records are kept in memory until the report

const EPISODES_PER_YIELD = 16; // yield to the event loop this often: synchronous players and environments never do
