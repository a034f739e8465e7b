// A training's records as notebook output.
import { type EpisodeRecord, formatTranscript, formatVerdict } from "../../gym/evaluation/index.ts";
import type { Comparison, GRPOConfig, MetricLine } from "../../rl/index.ts";
import { escapeHtml, percent } from "../reports/format.ts";
import { htmlFragment } from "../reports/html-page.ts";
import {
  behaviourRows,
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

/** The same questions by several players, side by side. */
export function comparisonView(comparison: Comparison): Shown {
  const { players, questions } = comparison;
  const text = questions.map(({ question, episodes }) =>
    [question, ...episodes.map((episode, i) => `  ${players[i]}: ${outcome(episode)}`)].join("\n"),
  );
  return new Shown({
    "text/html": htmlFragment(comparisonSection(comparison)),
    "text/markdown": comparisonMarkdown(comparison),
    "text/plain": text.join("\n"),
  });
}

/** Success of random, before and after, with intervals. */
export function evaluationView(evaluations: TrainingEvaluations): Shown {
  const rows = evaluatedRows(evaluations).map((row) => [
    row.name,
    percent(row.random.success_rate),
    ...[row.before, row.after].map(withInterval),
    verdictText(row),
  ]);
  return tableView(["right answers", "random", "before", "after", ""], rows, headline(evaluations));
}

/** Behaviour of the three on unseen databases. */
export function behaviourView(evaluations: TrainingEvaluations): Shown {
  return tableView(["behaviour on unseen databases", "random", "before", "after"], behaviourRows(evaluations));
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
