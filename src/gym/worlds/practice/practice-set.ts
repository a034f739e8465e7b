// Practice worlds as a data set: training questions, held-out questions on the same databases, and held-out databases.
import type { DataSet, QuestionRecord, Split } from "../../data/index.ts";
import { DatabasePool } from "../../sql/index.ts";
import { type PracticeOptions, practiceWorlds } from "./practice.ts";

export interface PracticeSetOptions extends Pick<PracticeOptions, "difficulties" | "forms" | "inventedShare"> {
  /** @default 42 */
  readonly seed?: number | string;
  /** Number of databases with training questions. @default 64 */
  readonly seen?: number;
  /** Number of databases without training questions. @default 48 */
  readonly unseen?: number;
}

/** Forms about one table with at most one condition: a model of a few million parameters can learn them in minutes. */
export const STARTER_FORMS: readonly string[] = [
  ...["count", "count_above", "count_below", "count_at_least", "count_range", "count_category", "count_missing"],
  ...["count_year", "count_month", "count_since", "count_different", "different", "busiest_year", "boundary_date"],
  ...["highest", "lowest", "lowest_and_highest", "average", "total", "look_up", "list_above", "list_year"],
  ...["list_starting", "top", "bottom", "second", "top_few", "top_with_value"],
];

/** Questions per database; the first ones are for evaluation. */
const EVAL_QUESTIONS = 4;
const TRAIN_QUESTIONS = 8;

/** Questions generated per database: more than needed, since questions with equal queries are dropped. */
const DRAWN = 16;

/**
 * Generates train and eval questions on the same databases, and eval questions on databases without train questions.
 * `loadSqlite()` must have been awaited.
 *
 * @example
 * const small = practiceSet({ seed: 1, seen: 16, unseen: 8, forms: STARTER_FORMS });
 */
export function practiceSet({ seed = 42, seen = 64, unseen = 48, ...rest }: PracticeSetOptions = {}): DataSet {
  const questions: QuestionRecord[] = [];
  const files = new Map<string, Uint8Array>();
  const options = { ...rest, seed: `set_${seed}`, worlds: seen + unseen, questionsPerWorld: DRAWN };
  for (const { spec, bytes, index, questions: drawn } of practiceWorlds(options)) {
    files.set(spec.name, bytes);
    const different = [...new Map(drawn.map(({ record }) => [record.gold_sql, record])).values()];
    const wanted = EVAL_QUESTIONS + (index < seen ? TRAIN_QUESTIONS : 0);
    different.slice(0, wanted).forEach((record, i) => {
      const split: Split = i < EVAL_QUESTIONS ? "eval" : "train";
      questions.push({ ...record, question_id: `${spec.name}_${split}_${i}`, split });
    });
  }
  const file = (name: string) => files.get(name)!;
  const databases = new DatabasePool({ names: [...files.keys()], read: file });
  return { name: `practice_${seed}`, questions, databases, rejected: [], file };
}
