// Checks a whole data set: that files are intact and gold answers are as stated. Also counts everything.
import { messageOf } from "../../errors.ts";
import { loadSqlite } from "../sql/index.ts";
import type { DataSet, Rejection, RejectionReason } from "./dataset.ts";
import { yieldToEventLoop } from "./formats/build-questions.ts";
import { checkGold } from "./gold.ts";
import { evalIdsSha256 } from "./ids.ts";
import { ANSWER_TYPES, DIFFICULTIES, type QuestionRecord, questionSchema, type Split } from "./question.ts";

/** Rows of a result that the environment shows a player. */
export const SEEN_ROWS = 20;

export interface DataSetCheck {
  readonly name: string;
  readonly databases: number;
  /** Number of usable training questions. */
  readonly train: number;
  readonly eval: number;
  /** Number of evaluation questions on databases that training also uses; `eval_unseen` counts the others. */
  readonly eval_seen: number;
  readonly eval_unseen: number;
  readonly train_databases: number;
  readonly eval_databases: number;
  /** SHA-256 of the evaluation questions' ids, for results to cite; see `evalIdsSha256`. */
  readonly eval_ids_sha256: string;
  /** Number of usable questions whose answer has more rows than a player is shown. */
  readonly long_golds: Readonly<Record<Split, number>>;
  readonly questions_before: number;
  readonly questions_after: number;
  /**
   * Failures: damaged databases, outdated gold answers, and rejected questions of the native layout, which should have
   * none.
   */
  readonly failed: readonly { readonly id: string; readonly reason: string; readonly detail: string }[];
  /** Number of rejected questions by reason. */
  readonly by_reason: Readonly<Record<Split, Readonly<Partial<Record<RejectionReason, number>>>>>;
  readonly by_difficulty: Readonly<Record<string, number>>;
  readonly by_answer_type: Readonly<Record<string, number>>;
  readonly rejected: readonly Rejection[];
}

/**
 * Opens every database that has questions and runs every gold query again.
 *
 * @example
 * const { train, eval: held, failed } = await checkDataSet(data);
 * if (failed.length > 0) console.error(failed[0]!.detail);
 */
export async function checkDataSet(dataset: DataSet): Promise<DataSetCheck> {
  const { name, questions, databases, rejected, layout = "questions" } = dataset;
  await loadSqlite();
  const failed: { id: string; reason: string; detail: string }[] = [];
  const bad = new Set<string>();
  const used = new Set(questions.map(({ database_name }) => database_name));
  for (const database of used) {
    for (const detail of damage(database)) {
      bad.add(database);
      failed.push({ id: database, reason: "database_bad", detail });
    }
  }
  const ids = new Set<string>();
  const long = { train: 0, eval: 0 };
  let database = "";
  for (const question of questions) {
    if (question.database_name !== database) await yieldToEventLoop();
    database = question.database_name;
    const failure = bad.has(question.database_name) ? undefined : checkQuestion(question, ids);
    if (failure) failed.push({ id: question.question_id, ...failure });
  }
  for (const { question_id, reason, detail } of rejected) {
    const isExpected = layout !== "questions" && reason !== "database_bad";
    if (!isExpected) failed.push({ id: question_id, reason, detail });
  }
  const train = questions.filter(({ split }) => split === "train");
  const evaluation = questions.filter(({ split }) => split === "eval");
  const trained = new Set(train.map(({ database_name }) => database_name));
  const seen = evaluation.filter(({ database_name }) => trained.has(database_name)).length;
  return {
    name,
    databases: databases.names.length,
    train: train.length,
    eval: evaluation.length,
    eval_seen: seen,
    eval_unseen: evaluation.length - seen,
    train_databases: trained.size,
    eval_databases: new Set(evaluation.map(({ database_name }) => database_name)).size,
    eval_ids_sha256: await evalIdsSha256(questions),
    long_golds: long,
    questions_before: questions.length + rejected.length,
    questions_after: questions.length,
    failed,
    by_reason: { train: countReasons("train"), eval: countReasons("eval") },
    by_difficulty: count(
      DIFFICULTIES,
      questions.map(({ difficulty }) => difficulty),
    ),
    by_answer_type: count(
      ANSWER_TYPES,
      questions.map(({ answer_type }) => answer_type),
    ),
    rejected,
  };

  function damage(database: string): string[] {
    try {
      return databases.get(database).integrityErrors();
    } catch (error) {
      return [messageOf(error)];
    }
  }

  function checkQuestion(question: QuestionRecord, known: Set<string>): { reason: string; detail: string } | undefined {
    if (known.has(question.question_id)) return { reason: "duplicate_id", detail: "two questions have this id" };
    known.add(question.question_id);
    const parsed = questionSchema.safeParse(question);
    if (!parsed.success) return { reason: "malformed", detail: parsed.error.issues[0]!.message };
    const database = databases.get(question.database_name);
    const stranger = question.tables_involved.find((table) => !database.table(table));
    if (stranger) return { reason: "malformed", detail: `tables_involved names ${stranger}, which is not there` };
    const gold = checkGold(question, database);
    if (!gold.ok) return { reason: gold.reason, detail: gold.detail };
    if (gold.table.rows.length > SEEN_ROWS) long[question.split]++;
    return undefined;
  }

  function countReasons(split: Split): Partial<Record<RejectionReason, number>> {
    const reasons = rejected.filter((rejection) => rejection.split === split).map(({ reason }) => reason);
    return count([...new Set(reasons)], reasons);
  }
}

function count<T extends string>(keys: readonly T[], values: readonly T[]): Record<T, number> {
  return Object.fromEntries(keys.map((key) => [key, values.filter((value) => value === key).length])) as Record<
    T,
    number
  >;
}
