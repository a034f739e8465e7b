// Asks a question that has no gold: one episode whose answer is given, and samples that must agree with it.
import { SqlEnvError, UsageError } from "../../errors.ts";
import type { DataSet, QuestionRecord } from "../data/index.ts";
import {
  DEFAULT_STEP_BUDGET,
  type DoneReason,
  type EnvironmentRules,
  SQLEnvironment,
  type SQLObservation,
} from "../env/index.ts";
import { type EpisodeRecord, playEpisode, type StepRecord } from "../episode.ts";
import type { Player } from "../players/index.ts";
import type { DatabasePool, ResultTable } from "../sql/index.ts";
import { type Agreement, MIN_AGREEMENT, measureAgreement, type Unsure, whyUnsure } from "./agreement.ts";
import { type FoundAnswer, findAnswer, type Support } from "./answer.ts";

/** Maximum characters of a question. The longest of Spider and BIRD have about 500. */
export const MAX_QUESTION_LENGTH = 2_000;

export interface AskQuestionOptions {
  readonly databases: DatabasePool;
  /** Which of the databases. @default the only one */
  readonly database?: string | undefined;
  readonly question: string;
  /** Plays the episode whose answer is given: for a model, greedily. */
  readonly player: Player;
  /** Plays the samples: for a model, at a temperature. @default player */
  readonly sampler?: Player | undefined;
  /** Number of samples; 0 for none. @default 0 */
  readonly samples?: number | undefined;
  /** With a smaller share of agreeing samples, the answer is unsure. @default MIN_AGREEMENT */
  readonly minAgreement?: number | undefined;
  /** @default 10 */
  readonly step_budget?: number | undefined;
  /** @default DEFAULT_RULES */
  readonly rules?: EnvironmentRules | undefined;
  /** Seed of the players' random numbers. @default 0 */
  readonly seed?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the first observation of the episode whose answer is given. */
  readonly onStart?: ((observation: SQLObservation) => void | Promise<void>) | undefined;
  /** Called after each of its steps. */
  readonly onStep?: ((step: StepRecord) => void | Promise<void>) | undefined;
  /** Called with the answer, before the samples are played. */
  readonly onAnswer?: ((given: FoundAnswer) => void) | undefined;
  /** Called as each sample ends. */
  readonly onSample?: ((done: number, total: number) => void) | undefined;
}

/** The answer to a question. */
export interface AskedAnswer extends Agreement {
  readonly question: string;
  readonly database: string;
  /** Null if the episode ended without one. */
  readonly answer: string | null;
  /** The query that gave it; null if no single query did. */
  readonly sql: string | null;
  /** The result of `sql`, if the answer is that whole result; else null. */
  readonly result: ResultTable | null;
  readonly support: Support;
  /** Number of samples played. */
  readonly samples: number;
  /** Why the answer should not be trusted; null if nothing speaks against it. */
  readonly unsure: Unsure | null;
  readonly done_reason: DoneReason | null;
  readonly steps: readonly StepRecord[];
}

/**
 * Asks a player a question about a database. Throws UsageError for a question that cannot be asked, SqlEnvError
 * `player_failed` if the player fails, and what `playEpisode` throws.
 *
 * @example
 * import { askQuestion } from "sqlenv/gym/ask";
 *
 * await loadSqlite();
 * const databases = new DatabasePool({ names: ["shop"], read: () => readFileSync("shop.sqlite") });
 * const { answer, sql, unsure } = await askQuestion({
 *   databases,
 *   question: "How many items are there?",
 *   player: keywordPlayer(),
 * });
 */
export async function askQuestion(options: AskQuestionOptions): Promise<AskedAnswer> {
  const { databases, player, sampler = player, samples = 0, minAgreement = MIN_AGREEMENT } = options;
  const { step_budget = DEFAULT_STEP_BUDGET, rules, seed = 0, signal, onStart, onStep, onAnswer, onSample } = options;
  const question = recordOf(options);
  const data: DataSet = { name: question.database_name, questions: [question], databases, rejected: [] };
  const play = async (who: Player, own: number | string, watch: Pick<AskQuestionOptions, "onStart" | "onStep">) => {
    const env = new SQLEnvironment(data, { step_budget, ...rules, judged: false });
    const record = await playEpisode(env, who, {
      question,
      seed: own,
      signal: signal && AbortSignal.any([signal]),
      ...(watch.onStart && { onStart: watch.onStart }),
      ...(watch.onStep && { onStep: watch.onStep }),
    });
    if (record.error === null) return record;
    throw new SqlEnvError("player_failed", { what: "the model failed", value: record.error });
  };
  const find = ({ steps }: EpisodeRecord) => findAnswer(steps, databases.get(question.database_name));
  const record = await play(player, seed, { onStart, onStep });
  const given = find(record);
  onAnswer?.(given);
  let done = 0;
  const sampled = await allOrFirstError(
    Array.from({ length: samples }, async (_, i) => {
      const sample = await play(sampler, `${seed}/${i}`, {});
      onSample?.(++done, samples);
      return sample;
    }),
  );
  const { done_reason, steps } = record;
  const agreement = measureAgreement(given, sampled.map(find));
  return {
    question: question.question_text,
    database: question.database_name,
    answer: given.text,
    sql: given.sql,
    result: given.result,
    support: given.support,
    ...agreement,
    samples,
    unsure: whyUnsure({ ...agreement, given, done_reason, minAgreement }),
    done_reason,
    steps,
  };
}

/** Waits for every promise before it throws the first error, so that none is still at work then. */
async function allOrFirstError<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  const failed = settled.find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
  return settled.map((one) => (one as PromiseFulfilledResult<T>).value);
}

/** The question as a record without a gold. */
function recordOf({ databases, database, question }: AskQuestionOptions): QuestionRecord {
  const { names } = databases;
  if (database === undefined && names.length !== 1)
    throw new UsageError({ what: "which database?", value: names.slice(0, 12).join(", "), remedy: "name one" });
  return {
    question_id: "asked",
    question_text: checkQuestion(question),
    database_name: database ?? names[0]!,
    gold_sql: "",
    gold_answer: "",
    answer_type: "string",
    difficulty: "easy",
    tables_involved: [],
    split: "eval",
  };
}

/** The question without control characters; throws UsageError if it is empty or too long. */
export function checkQuestion(question: string): string {
  if (question.length > MAX_QUESTION_LENGTH)
    throw new UsageError({
      what: `the question is longer than ${MAX_QUESTION_LENGTH} characters`,
      value: `${question.length} characters`,
      remedy: "ask a shorter one",
    });
  const text = question.replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, " ").trim();
  if (text === "") throw new UsageError({ what: "the question is empty", remedy: "ask one in words" });
  return text;
}
