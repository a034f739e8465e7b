// Filters questions by difficulty, type, database or split, and splits them without leaking queries or databases.
import { random } from "../../random.ts";
import { normalizeSql } from "../sql/index.ts";
import type { AnswerType, Difficulty, QuestionRecord, Split } from "./question.ts";

/** Each list names the values to keep; an absent or empty list keeps everything. */
export interface QuestionFilter {
  readonly difficulty?: readonly Difficulty[] | undefined;
  readonly answer_type?: readonly AnswerType[] | undefined;
  readonly database?: readonly string[] | undefined;
  readonly split?: Split | undefined;
}

/**
 * Returns the matching questions in their original order.
 *
 * @example
 * const easy = filterQuestions(data.questions, { split: "train", difficulty: ["easy"] });
 */
export function filterQuestions(questions: readonly QuestionRecord[], filter: QuestionFilter): QuestionRecord[] {
  const { difficulty, answer_type, database, split } = filter;
  const passes = <T>(allowed: readonly T[] | undefined, value: T) => !allowed?.length || allowed.includes(value);
  return questions.filter(
    (question) =>
      passes(difficulty, question.difficulty) &&
      passes(answer_type, question.answer_type) &&
      passes(database, question.database_name) &&
      (split === undefined || question.split === split),
  );
}

/** Marks whole databases as "eval" until about `share` of the questions are; marks all others as "train". */
export function splitByDatabase(questions: readonly QuestionRecord[], share: number, seed: number): QuestionRecord[] {
  const sizes = countBy(questions, ({ database_name }) => database_name);
  const chosen = fill(sizes, Math.round(questions.length * share), seed);
  // If there are at least two databases, each side gets one, whatever the share.
  const order = random("split-by-database", seed).shuffle([...sizes.keys()].sort());
  if (chosen.size === 0 && share > 0 && sizes.size > 1) chosen.add(order[0]!);
  if (chosen.size === sizes.size && share < 1 && sizes.size > 1) chosen.delete(order[0]!);
  return questions.map((question) => ({ ...question, split: chosen.has(question.database_name) ? "eval" : "train" }));
}

interface Asked {
  readonly database_name: string;
  readonly gold_sql: string;
}

/**
 * Marks `evalCount` questions as "eval" and the others as "train" so that questions with the same gold query are on
 * one side: Spider asks most queries twice in different words, and training on one would leak the other's answer. The
 * exact count is reached if the group sizes allow it.
 */
export function splitByQuery<T extends Asked>(
  questions: readonly T[],
  evalCount: number,
  seed: number,
): (T & { split: Split })[] {
  const groupOf = (question: Asked) => `${question.database_name}\n${normalizeSql(question.gold_sql)}`;
  const chosen = fill(countBy(questions, groupOf), evalCount, seed);
  return questions.map((question) => ({ ...question, split: chosen.has(groupOf(question)) ? "eval" : "train" }));
}

/** Share of the questions that is held out for evaluation if a data set marks none. */
const HELD_OUT = 0.1;

/**
 * Holds a tenth of the questions out for evaluation, drawn by seed, if none is marked "eval"; questions with the same
 * gold query stay on one side, and only difficulties of the filter are drawn. A data set with evaluation questions, or
 * with a single question, is returned as it is.
 */
export function holdOut(
  questions: readonly QuestionRecord[],
  { difficulty, seed }: { readonly difficulty: readonly Difficulty[]; readonly seed: number },
): readonly QuestionRecord[] {
  if (questions.some(({ split }) => split === "eval")) return questions;
  const drawn = filterQuestions(questions, { difficulty });
  if (drawn.length < 2) return questions;
  const count = Math.max(1, Math.round(HELD_OUT * drawn.length));
  const held = new Set(
    splitByQuery(drawn, count, seed)
      .filter(({ split }) => split === "eval")
      .map(({ question_id }) => question_id),
  );
  return questions.map((question) => (held.has(question.question_id) ? { ...question, split: "eval" } : question));
}

function countBy<T>(items: readonly T[], key: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1);
  return counts;
}

/** Picks groups in a random order that depends only on names and seed, skipping any that would exceed the count. */
function fill(sizes: ReadonlyMap<string, number>, wanted: number, seed: number): Set<string> {
  const chosen = new Set<string>();
  let left = wanted;
  for (const group of random("fill", seed).shuffle([...sizes.keys()].sort())) {
    const size = sizes.get(group)!;
    if (size > left) continue;
    chosen.add(group);
    left -= size;
  }
  return chosen;
}
