// The questions of the last evaluation: each with its outcome before and after training, its form and its gold.
import type { EpisodeRecord } from "../../gym/evaluation/index.ts";
import type { EvaluationEpisodes, GoldAnswer, GoldAnswers } from "../../rl/run/records.ts";
import { findGold } from "./gold.ts";
import { questionForm } from "./question-form.ts";

export interface EvaluatedQuestion {
  readonly question_id: string;
  readonly question: string;
  readonly database_name: string;
  readonly seen: boolean;
  readonly difficulty: string;
  readonly form: string;
  readonly gold: GoldAnswer | null;
  /** Greedy; null if the episode was not played or could not be scored. */
  readonly before: 0 | 1 | null;
  readonly after: 0 | 1 | null;
}

/** All questions that were played after training, or before it while there is no "after". */
export function evaluatedQuestions(
  { before, after }: EvaluationEpisodes,
  gold: GoldAnswers | null,
): EvaluatedQuestion[] {
  const outcomes = (episodes: readonly EpisodeRecord[]) =>
    new Map(episodes.map(({ question_id, correctness }) => [question_id, correctness]));
  const [earlier, later] = [outcomes(before), outcomes(after)];
  const played = after.length > 0 ? after : before;
  return played.map(({ question_id, question, database_name, seen, difficulty }) => {
    const right = findGold(gold, question_id);
    return {
      question_id,
      question,
      database_name,
      seen,
      difficulty,
      form: questionForm(right),
      gold: right,
      before: earlier.get(question_id) ?? null,
      after: later.get(question_id) ?? null,
    };
  });
}

export type CountedQuestion = Pick<EvaluatedQuestion, "form" | "difficulty" | "before" | "after">;

export interface FormCount {
  readonly name: string;
  readonly questions: number;
  readonly before: number;
  readonly after: number;
}

/** Right answers before and after by form or difficulty; the most failures first. */
export function countBy(questions: readonly CountedQuestion[], key: "form" | "difficulty"): FormCount[] {
  return [...new Set(questions.map((one) => one[key]))]
    .map((name) => {
      const those = questions.filter((one) => one[key] === name);
      const right = (stage: "before" | "after") => those.filter((one) => one[stage] === 1).length;
      return { name, questions: those.length, before: right("before"), after: right("after") };
    })
    .sort((a, b) => b.questions - b.after - (a.questions - a.after) || b.questions - a.questions);
}

/** The last query that ran without an error; null if there was none. */
export function lastQuery({ steps }: Pick<EpisodeRecord, "steps">): string | null {
  const ran = steps.findLast(({ action, observation }) => action.action_type === "QUERY" && observation.error === null);
  return ran?.action.argument ?? null;
}

/** The answer that was given; null if there was none. */
export function givenAnswer({ steps }: Pick<EpisodeRecord, "steps">): string | null {
  const last = steps.at(-1)?.action;
  const type: string | undefined = last?.action_type;
  return type === "ANSWER" || type === "TEXT" ? last!.argument : null;
}
