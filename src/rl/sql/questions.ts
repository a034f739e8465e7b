// The questions of a training: which ones it asks, and looking them up.
import { QuestionLoadError, UsageError } from "../../errors.ts";
import { type DataSet, filterQuestions, type QuestionRecord } from "../../gym/data/index.ts";
import { rewardedQuestions, type SplitConfig, sftDatabases } from "../run/split.ts";

/** A question to play. */
export interface QuestionPrompt {
  readonly question_id: string;
  readonly text: string;
}

/**
 * The training questions that GRPO asks: those that pass the difficulty filter, on databases that SFT did not use.
 *
 * @example
 * const prompts = loadQuestionPrompts(data, resolveConfig({ difficulty_filter: "easy" }));
 */
export function loadQuestionPrompts(data: DataSet, config: SplitConfig): QuestionPrompt[] {
  const all = filterQuestions(data.questions, { split: "train" });
  const { difficulty_filter: difficulty } = config;
  const chosen = filterQuestions(all, { difficulty });
  if (chosen.length === 0)
    throw new QuestionLoadError({
      what: all.length === 0 ? "no training questions in" : `none of the ${all.length} training questions passes in`,
      value: data.name,
      remedy:
        all.length === 0
          ? "use a data set with a train split: see `sqlenv data check`"
          : `difficulty_filter is ${difficulty.join(", ")}`,
    });
  const asked = rewardedQuestions(data, config);
  if (asked.length === 0)
    throw new UsageError({
      what: `SFT uses all training questions that are ${difficulty.join(" or ")}, on`,
      value: sftDatabases(data, config).join(", "),
      remedy: "lower sft_database_share, or widen difficulty_filter",
    });
  return asked.map(({ question_id, question_text }) => ({ question_id, text: question_text }));
}

interface Lookup {
  readonly byId: ReadonlyMap<string, readonly QuestionRecord[]>;
  readonly byText: ReadonlyMap<string, readonly QuestionRecord[]>;
  /** Databases with training questions. */
  readonly trained: ReadonlySet<string>;
}

/** Cached by data set: every rollout looks up hundreds of questions among thousands. */
const lookups = new WeakMap<readonly QuestionRecord[], Lookup>();

function lookupOf(questions: readonly QuestionRecord[]): Lookup {
  const known = lookups.get(questions) ?? {
    byId: grouped(questions, ({ question_id }) => question_id),
    byText: grouped(questions, ({ question_text }) => question_text),
    trained: new Set(questions.filter(({ split }) => split === "train").map((q) => q.database_name)),
  };
  lookups.set(questions, known);
  return known;
}

function grouped(questions: readonly QuestionRecord[], keyOf: (question: QuestionRecord) => string) {
  const groups = new Map<string, QuestionRecord[]>();
  for (const question of questions) {
    const same = groups.get(keyOf(question));
    if (same) same.push(question);
    else groups.set(keyOf(question), [question]);
  }
  return groups;
}

/** Databases that training has questions on. */
export function trainedDatabases({ questions }: DataSet): ReadonlySet<string> {
  return lookupOf(questions).trained;
}

/** Finds a question by id, or by its text if no other question has the same. */
export function findQuestion(prompt: QuestionPrompt | string, { name, questions }: DataSet): QuestionRecord {
  const { byId, byText } = lookupOf(questions);
  const fits = (typeof prompt === "string" ? byText.get(prompt) : byId.get(prompt.question_id)) ?? [];
  if (fits.length === 1) return fits[0]!;
  throw new UsageError({
    what: fits.length === 0 ? `no such question in ${name}` : `${fits.length} questions of ${name} have this text`,
    value: typeof prompt === "string" ? prompt : prompt.question_id,
    remedy: fits.length === 0 ? "see `sqlenv data show`" : "name it by its question_id",
  });
}
