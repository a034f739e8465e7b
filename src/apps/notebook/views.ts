// A training's records as notebook output.
import type { QuestionRecord } from "../../gym/data/index.ts";
import { type EpisodeRecord, formatTranscript, formatVerdict } from "../../gym/evaluation/index.ts";
import type { Comparison, GRPOConfig, MetricLine, StageEvaluation } from "../../rl/index.ts";
import { goldAnswers } from "../../rl/run/gold.ts";
import { episodeHtml, goldHtml } from "../reports/episode-html.ts";
import { countBy, evaluatedQuestions, givenAnswer, lastQuery } from "../reports/evaluated-questions.ts";
import { countTable, failuresOf, openFailureHtml } from "../reports/failures.ts";
import { escapeHtml, percent } from "../reports/format.ts";
import { findGold } from "../reports/gold.ts";
import { htmlFragment } from "../reports/html-page.ts";
import {
  behaviourRows,
  behaviourTitle,
  comparisonMarkdown,
  comparisonSection,
  evaluatedRows,
  headline,
  type LearningCurveOptions,
  learningCurve,
  type TrainingEvaluations,
  verdictText,
  withInterval,
} from "../reports/index.ts";
import { Shown } from "./display.ts";

/** Some of the settings, by name. */
export function settingsView(config: GRPOConfig, keys: readonly (keyof GRPOConfig)[]): Shown {
  return tableView(
    ["setting", "value"],
    keys.map((key) => [key, JSON.stringify(config[key])]),
  );
}

/** Episodes, one row each, and their totals. */
export function episodesView(episodes: readonly EpisodeRecord[]): Shown {
  const rows = episodes.map((episode) => [
    episode.question,
    episode.steps.map(({ action }) => action.action_type).join(" "),
    outcome(episode),
  ]);
  const scored = episodes.filter(({ reward }) => reward !== null);
  const right = episodes.filter(({ correctness }) => correctness === 1).length;
  const mean = scored.reduce((sum, { reward }) => sum + reward!, 0) / Math.max(1, scored.length);
  const sum = `${right} of ${episodes.length} right, mean reward ${mean.toFixed(2)}`;
  return tableView(["question", "actions", "outcome"], rows, sum);
}

/** One episode, turn by turn, as text. */
export function transcriptView(episode: EpisodeRecord): Shown {
  return new Shown({ "text/plain": formatTranscript(episode) });
}

export interface EpisodeViewOptions {
  /** @default the player's name */
  readonly title?: string;
  /** The question, to show its gold. */
  readonly question?: QuestionRecord;
}

/** One episode, turn by turn, in colour. */
export function episodeView(episode: EpisodeRecord, { title, question }: EpisodeViewOptions = {}): Shown {
  const gold = question && findGold(goldAnswers([question]), question.question_id);
  const head = `<p><b>${escapeHtml(episode.question)}</b> <span class="dim">${escapeHtml(episode.database_name)}</span></p>`;
  return new Shown({
    "text/html": htmlFragment(`${head}${gold ? goldHtml(gold) : ""}${episodeHtml(episode, title ?? episode.player)}`),
    "text/plain": formatTranscript(episode),
  });
}

/** What still fails: counts by form of the question, and a few failures with the gold query and answer. */
export function failuresView(
  stages: Readonly<Record<"before" | "after", StageEvaluation>>,
  questions: readonly QuestionRecord[],
  { shown = 3 }: { readonly shown?: number } = {},
): Shown {
  const episodes = stages.after.episodes ?? [];
  const evaluated = evaluatedQuestions(
    { before: stages.before.episodes ?? [], after: episodes },
    goldAnswers(questions),
  );
  const failed = failuresOf(evaluated);
  const lead = `${failed.length} of ${evaluated.length} held-out questions are still answered wrong (greedy decoding)`;
  const some = failed.slice(0, shown).map((question) => ({
    question,
    episode: episodes.find(({ question_id }) => question_id === question.question_id)!,
  }));
  const html = some.map(({ question, episode }) => openFailureHtml(question, episode));
  const text = some.map(({ question: { question, gold }, episode }) =>
    [
      question,
      `  expected ${JSON.stringify(gold?.answer)} by ${gold?.query}`,
      `  answered ${JSON.stringify(givenAnswer(episode))} after ${lastQuery(episode)}`,
    ].join("\n"),
  );
  return new Shown({
    "text/html": htmlFragment(
      `<p><b>${escapeHtml(lead)}</b></p>${countTable("form of the question", countBy(evaluated, "form"))}${html.join("")}`,
    ),
    "text/plain": [lead, ...text].join("\n"),
  });
}

/** The same questions answered by several players, side by side; with the gold if `asked` has the questions. */
export function comparisonView(comparison: Comparison, asked: readonly QuestionRecord[] = []): Shown {
  const { players, questions } = comparison;
  const gold = goldAnswers(asked);
  const text = questions.map(({ question, episodes }) =>
    [question, ...episodes.map((episode, i) => `  ${players[i]}: ${outcome(episode)}`)].join("\n"),
  );
  return new Shown({
    "text/html": htmlFragment(comparisonSection(comparison, gold)),
    "text/markdown": comparisonMarkdown(comparison, { gold }),
    "text/plain": text.join("\n"),
  });
}

/** Success of the random baseline, and before and after training, with intervals. */
export function evaluationView(evaluations: TrainingEvaluations): Shown {
  const rows = evaluatedRows(evaluations).map((row) => [
    row.name,
    percent(row.random.success_rate),
    ...[row.before, row.after].map(withInterval),
    verdictText(row),
  ]);
  return tableView(["right answers", "random", "before", "after", ""], rows, headline(evaluations));
}

/** Behaviour on unseen databases (seen ones, if no others were evaluated): of the random baseline, and before and after training. */
export function behaviourView(evaluations: TrainingEvaluations): Shown {
  return tableView([behaviourTitle(evaluations), "random", "before", "after"], behaviourRows(evaluations));
}

/** The first and last rewards, each averaged over a few steps to reduce noise. */
export function trendOf(rewards: readonly { readonly reward: number }[], steps = 3): string {
  const mean = (some: typeof rewards) => (some.reduce((sum, { reward }) => sum + reward, 0) / some.length).toFixed(3);
  if (rewards.length === 0) return "no step yet";
  return `reward ${mean(rewards.slice(0, steps))} at the start, ${mean(rewards.slice(-steps))} at the end`;
}

/** The learning curve. */
export function curveView(metrics: readonly MetricLine[], options: LearningCurveOptions = {}): Shown {
  const rewards = metrics.flatMap(({ reward }) => (reward === undefined ? [] : [{ reward }]));
  return new Shown({ "image/svg+xml": learningCurve(metrics, options), "text/plain": trendOf(rewards) });
}

/** An episode's outcome without the transcript's arrow. */
function outcome(episode: EpisodeRecord): string {
  return formatVerdict(episode).replace(/^=> /, "");
}

function tableView(head: readonly string[], rows: readonly (readonly string[])[], note = ""): Shown {
  const line = (cells: readonly string[], tag: "td" | "th") =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
  const table = `<table><thead>${line(head, "th")}</thead><tbody>${rows.map((row) => line(row, "td")).join("")}</tbody></table>`;
  const text = [...rows.map((row) => row.filter(Boolean).join(": ")), ...(note ? [note] : [])].join("\n");
  return new Shown({
    "text/html": htmlFragment(`${table}${note ? `<p><b>${escapeHtml(note)}</b></p>` : ""}`),
    "text/plain": text,
  });
}
