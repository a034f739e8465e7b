// What still fails after training: counts by form and difficulty, and each wrong answer beside the expected one.
import type { EpisodeRecord } from "../../gym/evaluation/index.ts";
import type { EvaluationEpisodes, GoldAnswers } from "../../rl/run/records.ts";
import { goldMarkdown } from "./comparison.ts";
import { episodeHtml, goldHtml } from "./episode-html.ts";
import { isText } from "./episode-outcome.ts";
import {
  countBy,
  type EvaluatedQuestion,
  evaluatedQuestions,
  type FormCount,
  givenAnswer,
  lastQuery,
} from "./evaluated-questions.ts";
import { codeSpan, count, cut, escapeHtml, escapeMarkdown } from "./format.ts";
import { highlightSql } from "./sql-html.ts";

/** Maximum number of failures shown in full, so that the page of a large evaluation stays small. */
const SHOWN_IN_PAGE = 60;
const SHOWN_IN_SUMMARY = 5;

/** The section of a run's page: counts by form and difficulty, and the failures, grouped by form. */
export function failuresHtml(evaluation: EvaluationEpisodes, gold: GoldAnswers | null): string {
  const questions = evaluatedQuestions(evaluation, gold);
  const failed = failuresOf(questions);
  const episodes = new Map(evaluation.after.map((episode) => [episode.question_id, episode]));
  const forms = countBy(questions, "form");
  const shown = forms.flatMap(({ name }) => failed.filter(({ form }) => form === name)).slice(0, SHOWN_IN_PAGE);
  const more = failed.length - shown.length;
  const lead =
    failed.length === 0
      ? `All ${count(questions.length, "question")} of the last evaluation were answered right.`
      : `${failed.length} of ${count(questions.length, "question")} of the last evaluation were answered wrong (greedy decoding).`;
  return `<div class="card"><p>${escapeHtml(lead)}</p><div class="pair">${countTable("by form of the question", forms)}${countTable("by difficulty", countBy(questions, "difficulty"))}</div></div>
${shown.map((question) => failureHtml(question, episodes.get(question.question_id)!)).join("\n")}${more > 0 ? `<p class="note">${count(more, "more failure")} in evaluation-after.jsonl and in the dashboard.</p>` : ""}`;
}

export function countTable(title: string, counts: readonly FormCount[]): string {
  const rows = counts.map(
    ({ name, questions, before, after }) =>
      `<tr><td>${escapeHtml(name)}</td><td class="number">${questions}</td><td class="number">${before}</td><td class="number">${after}</td><td class="number${after < questions ? " bad" : ""}">${questions - after}</td></tr>`,
  );
  return `<div class="scroll"><table><thead><tr><th>${escapeHtml(title)}</th><th class="number">questions</th><th class="number">right before</th><th class="number">right after</th><th class="number">still wrong</th></tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
}

function failureHtml(
  { question_id, question, form, difficulty, database_name, seen, gold, before }: EvaluatedQuestion,
  episode: EpisodeRecord,
): string {
  const about = isText(episode)
    ? `${question_id}: ${database_name}`
    : `${form}, ${difficulty}; database ${database_name}, ${seen ? "seen" : "unseen"} in training`;
  return `<details class="question card"><summary><h3>${escapeHtml(question)}</h3> <span class="marks"><span class="tag">${escapeHtml(form)}</span>${before === 1 ? `<span class="tag bad">right before training</span>` : ""}</span></summary>
<p class="note">${escapeHtml(about)}</p>${gold ? goldHtml(gold) : ""}<p class="gold"><b>Given answer</b> ${answerHtml(episode)}</p>${episodeHtml(episode, "after training")}</details>`;
}

/** A failure in short, with the model's last query instead of the whole episode; for a notebook, which shows a few. */
export function openFailureHtml(
  { question, form, database_name, gold }: EvaluatedQuestion,
  episode: EpisodeRecord,
): string {
  const query = lastQuery(episode);
  const own = query === null ? "" : `<br><b>Its query</b> <code>${highlightSql(query)}</code>`;
  return `<article class="card" style="margin-top:12px"><p><b>${escapeHtml(question)}</b> <span class="dim">${escapeHtml(`${form}, ${database_name}`)}</span></p>${gold ? goldHtml(gold) : ""}<p class="gold"><b>Given answer</b> ${answerHtml(episode)}${own}</p></article>`;
}

function answerHtml(episode: EpisodeRecord): string {
  const answer = givenAnswer(episode);
  return answer === null ? "none" : `<code class="bad">${escapeHtml(cut(answer, 400))}</code>`;
}

/** The failures in Markdown, for a summary: a table by form, and the first few failures. Empty if nothing failed. */
export function failuresMarkdown(evaluation: EvaluationEpisodes, gold: GoldAnswers | null): string {
  const questions = evaluatedQuestions(evaluation, gold);
  const failed = failuresOf(questions);
  const episodes = new Map(evaluation.after.map((episode) => [episode.question_id, episode]));
  if (failed.length === 0) return "";
  const rows = countBy(questions, "form").map(
    ({ name, questions: all, before, after }) => `| ${name} | ${all} | ${before} | ${after} | ${all - after} |`,
  );
  const examples = failed.slice(0, SHOWN_IN_SUMMARY).map((question) => {
    const episode = episodes.get(question.question_id)!;
    const query = lastQuery(episode);
    const given = givenAnswer(episode);
    const answered = `Answered ${given === null ? "nothing" : codeSpan(cut(given, 200)) || "an empty text"}${query === null ? "" : ` after ${codeSpan(cut(query, 600))}`}.`;
    return `- ${escapeMarkdown(question.question)} ${answered}${question.gold ? ` ${goldMarkdown(question.gold)}` : ""}`;
  });
  return [
    "## What still fails",
    [
      "| form of the question | questions | right before | right after | still wrong |",
      "|---|---|---|---|---|",
      ...rows,
    ].join("\n"),
    examples.join("\n"),
  ].join("\n\n");
}

/** Questions not answered right; first those that were right before training. */
export function failuresOf(questions: readonly EvaluatedQuestion[]): EvaluatedQuestion[] {
  const failed = questions.filter(({ after }) => after !== 1);
  return [...failed.filter(({ before }) => before === 1), ...failed.filter(({ before }) => before !== 1)];
}
