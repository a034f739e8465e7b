// gold.json: the gold query and answer of each question, so that a run's pages can show the right answers.
import type { QuestionRecord } from "../../gym/data/index.ts";
import type { GoldAnswer, GoldAnswers } from "./records.ts";
import { hasGoldSql } from "./split.ts";
import type { RunStore } from "./store.ts";

export const GOLD_FILE = "gold.json";

/** Characters kept of an answer: a long table helps no reader, and a data set may have thousands. */
const MAX_ANSWER = 2000;

/** Writes gold.json; a resumed run writes it again, for folders of versions that had none. */
export function keepGold(store: RunStore, answers: GoldAnswers): void {
  store.write(GOLD_FILE, `${JSON.stringify(answers)}\n`);
}

/** The gold query and answer of each question, by its id. */
export function goldAnswers(questions: readonly QuestionRecord[]): GoldAnswers {
  return Object.fromEntries(questions.map((question) => [question.question_id, goldOf(question)]));
}

function goldOf(question: QuestionRecord): GoldAnswer {
  const answer = question.gold_answer;
  return {
    query: hasGoldSql(question) ? question.gold_sql : null,
    answer: answer.length > MAX_ANSWER ? `${answer.slice(0, MAX_ANSWER)}…` : answer,
  };
}
