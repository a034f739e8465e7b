// What the starter preset is trained and judged on: simple worlds, questions on the same databases kept for judging, and databases kept.
import type { DataSet, QuestionRecord, Split } from "../questions/index.ts";
import { DatabaseShelf } from "../sql/index.ts";
import { type PracticeOptions, practiceWorlds } from "./practice.ts";

/** The kind of worlds and questions; warm-up uses the same kind, from other seeds. */
export const STARTER_WORLDS = {
  simple: { words: 24, rows: [10, 30] },
  difficulties: ["easy", "medium"],
  forms: ["count_category", "count_above", "highest", "lowest", "look_up", "top", "bottom", "top_category"],
} as const satisfies Partial<PracticeOptions>;

/** Actions an episode may take, in warm-up and in training. */
export const STARTER_STEP_BUDGET = 6;

export interface StarterOptions {
  /** @default 0 */
  readonly seed?: number | string;
  /** Databases that training has questions on. @default 64 */
  readonly seen?: number;
  /** Databases that it has none on. @default 48 */
  readonly unseen?: number;
}

/** Questions of a database: those it is judged by come first. */
const EVAL_QUESTIONS = 4;
const TRAIN_QUESTIONS = 6;

/** Drawn more than needed: two questions of a database never have the same query. */
const DRAWN = 16;

/** Train and eval questions on the same databases, and eval questions on databases without train questions. `loadSqlite()` must have been awaited. */
export function starterDataSet({ seed = 0, seen = 64, unseen = 48 }: StarterOptions = {}): DataSet {
  const questions: QuestionRecord[] = [];
  const files = new Map<string, Uint8Array>();
  const options = { ...STARTER_WORLDS, seed: `starter_${seed}`, worlds: seen + unseen, questionsPerWorld: DRAWN };
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
  const databases = new DatabaseShelf({ names: [...files.keys()], read: file });
  return { name: `starter_${seed}`, questions, databases, rejected: [], file };
}
