// The questions of a run's last evaluation, as a list and one by one; the same for a server and an exported page.
import type { EpisodeRecord } from "../../../gym/evaluation/index.ts";
import type { Comparison, EvaluationEpisodes, GoldAnswers } from "../../../rl/run/records.ts";
import { evaluatedQuestions } from "../../reports/evaluated-questions.ts";
import { findGold } from "../../reports/gold.ts";
import { questionForm } from "../../reports/question-form.ts";
import type { QuestionDetail, QuestionRow } from "./schemas.ts";

export interface QuestionRecords {
  readonly comparison: Comparison;
  /** Null in runs of older versions, which stored only the compared questions. */
  readonly evaluation: EvaluationEpisodes | null;
  readonly gold: GoldAnswers | null;
}

/** Every evaluated question with its outcomes. */
export function listQuestions({ comparison, evaluation, gold }: QuestionRecords): QuestionRow[] {
  const episodes = evaluation ?? { before: episodesBy(comparison, "before"), after: episodesBy(comparison, "after") };
  return evaluatedQuestions(episodes, gold).map(({ gold: _, ...row }) => row);
}

/** A question's episodes by each player that has played it, the random one first; null for an unknown question. */
export function findQuestion(
  { comparison, evaluation, gold }: QuestionRecords,
  question_id: string,
): QuestionDetail | null {
  const compared = comparison.questions.find((question) => question.question_id === question_id);
  const others = (evaluation ? [evaluation.before, evaluation.after] : []).flatMap(
    (episodes) => episodes.find((episode) => episode.question_id === question_id) ?? [],
  );
  const known = compared?.episodes.map((episode, i) => ({
    ...episode,
    player: comparison.players[i] ?? episode.player,
  }));
  const episodes: EpisodeRecord[] = [...(known ?? [])];
  for (const episode of others) if (!episodes.some(({ player }) => player === episode.player)) episodes.push(episode);
  const [first] = episodes;
  if (!first) return null;
  const right = findGold(gold, question_id);
  return { question_id, question: first.question, gold: right, form: questionForm(right), episodes };
}

function episodesBy({ players, questions }: Comparison, player: string): EpisodeRecord[] {
  const at = players.indexOf(player);
  return at < 0 ? [] : questions.flatMap(({ episodes }) => episodes[at] ?? []);
}
