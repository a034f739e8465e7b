// An episode as a conversation: each turn's action, result and reward.
import type { EpisodeRecord, StepRecord } from "../../../gym/evaluation/index.ts";
import { explainReward, rewardPartText, signed } from "../../../gym/evaluation/transcript.ts";
import type { EpisodeLine, GoldAnswer } from "../../../rl/run/records.ts";
import { isText, verdict } from "../../reports/episode-outcome.ts";
import { count, cut } from "../../reports/format.ts";
import { tableOf } from "../../reports/result-table.ts";
import { highlightedParts } from "../../reports/sql-highlight.ts";
import { type Child, h } from "../../web-shared/dom.ts";

/** Characters shown of an argument, error or result. */
const SHOWN_TEXT = 4000;

export interface ConversationOptions {
  /** Use a narrow layout, for side-by-side columns. @default false */
  readonly compact?: boolean;
  /** The turn to mark as the first that differs from another episode. */
  readonly differsAt?: number | null;
}

/** An episode's turns. */
export function conversation(
  { steps }: Pick<EpisodeRecord, "steps">,
  { compact = false, differsAt = null }: ConversationOptions = {},
): HTMLElement {
  if (steps.length === 0) return h("p", { class: "dim pad" }, "No turn was played.");
  return h(
    "ol",
    { class: compact ? "turns compact" : "turns" },
    steps.map((step, i) => turn(step, i === differsAt)),
  );
}

function turn({ action, text, parse_error, observation }: StepRecord, differs: boolean): HTMLElement {
  const { action_type, argument } = action;
  const { error, error_class, result, reward_breakdown, reward } = observation;
  const shown = cut(argument, SHOWN_TEXT);
  const misread =
    parse_error !== null &&
    h(
      "p",
      { class: "note" },
      "not parsed as an action, run as a query",
      text && text !== argument ? [": ", h("code", {}, cut(text, 300))] : null,
    );
  return h(
    "li",
    { class: differs ? "differs" : undefined },
    differs ? h("p", { class: "note" }, "first difference from the best") : null,
    h(
      "div",
      { class: "said" },
      h("span", { class: `type ${TYPES.has(action_type) ? action_type.toLowerCase() : ""}` }, action_type),
      h("code", {}, action_type === "QUERY" ? sql(shown) : shown),
      misread,
    ),
    h(
      "div",
      { class: "shown" },
      error !== null && h("p", { class: "error" }, cut(error, SHOWN_TEXT)),
      result !== "" && resultOf(result, action_type),
      h(
        "p",
        { class: "earned", title: explainReward({ reward, reward_breakdown, error_class }) },
        reward === null
          ? "not scored"
          : [
              h("b", { class: reward > 0 ? "good" : reward < 0 ? "bad" : "" }, signed(reward)),
              rewardParts(reward_breakdown, error_class),
            ],
      ),
    ),
  );
}

const TYPES = new Set(["DESCRIBE", "SAMPLE", "QUERY", "ANSWER"]);

type RewardBreakdown = StepRecord["reward_breakdown"];

function rewardParts(parts: RewardBreakdown, error_class: string | null | undefined): Child {
  return (Object.keys(parts) as (keyof RewardBreakdown)[])
    .filter((name) => parts[name] !== 0)
    .map((name) => h("span", { class: "part" }, `${signed(parts[name])} ${rewardPartText(name, parts, error_class)}`));
}

/** The expected answer and the gold query. */
export function goldCard({ query, answer }: GoldAnswer): HTMLElement {
  return h(
    "dl",
    { class: "gold" },
    h("dt", {}, "expected answer"),
    h("dd", {}, h("code", {}, cut(answer, SHOWN_TEXT))),
    query === null ? null : [h("dt", {}, "gold query"), h("dd", {}, h("code", {}, sql(query)))],
  );
}

/** Highlighted SQL. */
export function sql(statement: string): Child {
  return highlightedParts(statement).map(({ kind, text }) =>
    kind === "plain" ? text : h("span", { class: `sql-${kind}` }, text),
  );
}

/** A result as a table if it can be parsed as one, otherwise as text. */
function resultOf(result: string, action: string): HTMLElement {
  const table = action === "QUERY" || action === "SAMPLE" ? tableOf(result) : null;
  if (!table) return h("pre", {}, cut(result, SHOWN_TEXT));
  const cells = (row: readonly string[], tag: "td" | "th") =>
    h(
      "tr",
      {},
      row.map((cell) => h(tag, { class: /^-?[\d.,]+$/.test(cell) ? "number" : undefined }, cut(cell, 200))),
    );
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "result" },
    h(
      "table",
      { class: "grid" },
      h("thead", {}, cells(table.head, "th")),
      h(
        "tbody",
        {},
        table.rows.map((row) => cells(row, "td")),
      ),
    ),
    table.notice ? h("p", { class: "note" }, table.notice) : null,
  );
}

/** "right, reward +1.23, 4 steps", colored. The reward of a training episode is the one it was trained with. */
export function verdictTag(
  episode: Parameters<typeof verdict>[0] & Partial<Pick<EpisodeLine, "total_reward">>,
): HTMLElement {
  const { reward, total_reward = reward } = episode;
  const { tone, text } = verdict({ ...episode, reward: total_reward });
  return h("span", { class: `verdict ${tone}` }, `${{ good: "✓", bad: "✗", none: "–" }[tone]} ${text}`);
}

export interface ColumnOptions extends Pick<ConversationOptions, "differsAt"> {
  readonly more?: Child;
}

/** An episode in a column under a heading. */
export function episodeColumn(
  title: Child,
  episode: EpisodeRecord,
  { more = null, differsAt = null }: ColumnOptions = {},
): HTMLElement {
  return h(
    "article",
    { class: "column" },
    h("header", {}, h("h3", {}, title), verdictTag(episode), more),
    conversation(episode, { compact: true, differsAt }),
  );
}

/** "easy, database wines, unseen in training. Tables: …"; for other environments than SQL the task's group and first text. */
export function aboutEpisode(episode: EpisodeRecord): string {
  const { difficulty, database_name, seen, start } = episode;
  if (isText(episode))
    return `${database_name}${start && start.result !== episode.question ? `: ${cut(start.result, 300)}` : ""}`;
  const where = seen ? "seen in training" : "unseen in training";
  return `${difficulty}, database ${database_name}, ${where}.${start ? ` Tables: ${start.schema_info}` : ""}`;
}

export function turnsOf({ step_count }: Pick<EpisodeRecord, "step_count">): string {
  return count(step_count, "step");
}
