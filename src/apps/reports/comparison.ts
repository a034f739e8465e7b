// The same questions answered by several players, side by side and turn by turn, as a page, a section of a page, and
// Markdown.
import { type EpisodeRecord, explainReward, type StepRecord } from "../../gym/evaluation/index.ts";
import type { ComparedQuestion, Comparison, GoldAnswer, GoldAnswers } from "../../rl/run/records.ts";
import { episodeHtml, goldHtml } from "./episode-html.ts";
import { isText, verdict } from "./episode-outcome.ts";
import { exampleQuestion } from "./example-question.ts";
import { codeSpan, count, cut, escapeHtml, escapeMarkdown } from "./format.ts";
import { findGold } from "./gold.ts";
import { htmlPage } from "./html-page.ts";

export interface ComparisonOptions {
  /** @default "The same questions, side by side" */
  readonly title?: string;
  /** Shown with each question. @default none */
  readonly gold?: GoldAnswers | null;
}

const TITLE = "The same questions, side by side";

/** A self-contained page. */
export function comparisonHtml(comparison: Comparison, { title = TITLE, gold }: ComparisonOptions = {}): string {
  return htmlPage(title, `<h1>${escapeHtml(title)}</h1>${comparisonSection(comparison, gold)}`);
}

/** The questions as markup for a page of `htmlPage`; the example question is open. */
export function comparisonSection(comparison: Comparison, gold: GoldAnswers | null = null): string {
  const { players, questions } = comparison;
  const example = exampleQuestion(comparison);
  if (questions.length === 0) return `<p class="dim">No question was played.</p>`;
  const score = players.map((player, i) => {
    const right = questions.filter(({ episodes }) => episodes[i]?.correctness === 1).length;
    return `${escapeHtml(player)} ${right}`;
  });
  const lead = `<p class="dim">Right of ${count(questions.length, "question")}: ${score.join(", ")}. Each turn shows the action, its result and its reward.</p>`;
  return lead + questions.map((question) => questionHtml(question, players, gold, question === example)).join("\n");
}

function questionHtml(
  question: ComparedQuestion,
  players: readonly string[],
  gold: GoldAnswers | null,
  open: boolean,
): string {
  const right = findGold(gold, question.question_id);
  const marks = question.episodes.map((episode, i) => {
    const { tone } = verdict(episode);
    const sign = { good: "✓", bad: "✗", none: "–" }[tone];
    return `<span class="tag ${tone}" title="${escapeHtml(verdict(episode).text)}">${sign} ${escapeHtml(players[i] ?? episode.player)}</span>`;
  });
  const episodes = question.episodes.map((episode, i) => episodeHtml(episode, players[i] ?? episode.player));
  const columns = Math.max(1, question.episodes.length);
  return `<details class="question card"${open ? " open" : ""}><summary><h3>${escapeHtml(question.question)}</h3> <span class="marks">${marks.join("")}</span></summary>
<p class="note">${escapeHtml(aboutOf(question))}</p>${right ? goldHtml(right) : ""}<div class="players" style="--players:${columns}">${episodes.join("\n")}</div></details>`;
}

function aboutOf({ question_id, database_name, seen, episodes }: ComparedQuestion): string {
  const [first] = episodes;
  if (first && isText(first)) return `${question_id}: ${database_name}, held out of the training.`;
  const tables = first?.start ? ` Tables: ${first.start.schema_info}` : "";
  const level = first ? `${first.difficulty}, ` : "";
  return `${question_id}: ${level}database ${database_name}, ${seen ? "seen in training with other questions" : "never seen in training"}.${tables}`;
}

/**
 * For a README, a blog or an issue: one table per question, one row per turn, one column per player.
 *
 * @example
 * const { comparison } = await readRun("runs/starter");
 * if (comparison) console.log(comparisonMarkdown(comparison));
 */
export function comparisonMarkdown(comparison: Comparison, { title = TITLE, gold }: ComparisonOptions = {}): string {
  return [
    `# ${escapeMarkdown(title)}`,
    ...comparison.questions.map((question) => questionMarkdown(question, comparison.players, 2, gold)),
  ]
    .join("\n\n")
    .concat("\n");
}

/** One question as Markdown, with a heading of this level. */
export function questionMarkdown(
  question: ComparedQuestion,
  players: readonly string[],
  level = 2,
  gold: GoldAnswers | null = null,
): string {
  const right = findGold(gold, question.question_id);
  const { episodes } = question;
  const turns = Math.max(0, ...episodes.map(({ steps }) => steps.length));
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    `${"#".repeat(level)} ${escapeMarkdown(question.question)}`,
    "",
    escapeMarkdown(aboutOf(question)),
    "",
    ...(right ? [goldMarkdown(right), ""] : []),
    row(["turn", ...episodes.map((episode, i) => escapeMarkdown(players[i] ?? episode.player))]),
    row(["---", ...episodes.map(() => "---")]),
    ...Array.from({ length: turns }, (_, turn) =>
      row([String(turn + 1), ...episodes.map(({ steps }) => (steps[turn] ? turnMarkdown(steps[turn]) : ""))]),
    ),
    row(["", ...episodes.map(verdictMarkdown)]),
  ].join("\n");
}

/** "Expected answer: `12`; gold query: `SELECT …`." */
export function goldMarkdown({ query, answer }: GoldAnswer): string {
  const asked = query === null ? "" : `; gold query: ${codeSpan(cut(query, 600))}`;
  return `Expected answer: ${codeSpan(cut(answer, 200)) || "an empty text"}${asked}.`;
}

const SHOWN_LINES = 4;

function turnMarkdown({ action, parse_error, observation }: StepRecord): string {
  const { result, error } = observation;
  const lines = result === "" ? [] : result.split("\n");
  const shown = lines.slice(0, SHOWN_LINES).map((line) => codeSpan(cut(line, 80)));
  const more = lines.length > SHOWN_LINES ? [`… ${count(lines.length - SHOWN_LINES, "more line")}`] : [];
  return [
    `**${escapeMarkdown(action.action_type)}** ${codeSpan(cut(action.argument, 300))}`.trimEnd(),
    ...(parse_error === null ? [] : ["(not parsed as an action, run as a query)"]),
    ...(error === null ? [] : [`error: ${escapeMarkdown(cut(error, 200))}`]),
    ...shown,
    ...more,
    `_${escapeMarkdown(explainReward(observation))}_`,
  ]
    .filter((line) => line !== "")
    .join("<br>");
}

function verdictMarkdown(episode: EpisodeRecord): string {
  const { tone, text } = verdict(episode);
  return `**${{ good: "✓", bad: "✗", none: "–" }[tone]} ${escapeMarkdown(text)}**`;
}
