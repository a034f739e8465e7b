// An episode as DOM nodes: each turn's action, result and reward, and the outcome.
import type { RewardBreakdown } from "../../../gym/env/index.ts";
import type { EpisodeRecord, StepRecord } from "../../../gym/evaluation/index.ts";
import { explainReward, signed } from "../../../gym/evaluation/transcript.ts";
import { verdict } from "../../reports/episode-outcome.ts";
import { cut } from "../../reports/format.ts";
import { tableOf } from "../../reports/result-table.ts";
import { h } from "../../web-shared/dom.ts";
import { sqlNodes } from "./sql-editor.ts";
import type { Gold } from "./worker-protocol.ts";

const SHOWN_TEXT = 4000; // characters per argument or result; longer ones slow the page down

/** One turn: action, result and, unless `rewards` is false, reward. */
export function turnNode(
  { action, text, parse_error, observation }: StepRecord,
  { rewards = true }: { readonly rewards?: boolean } = {},
): HTMLLIElement {
  const { error, result } = observation;
  const argument = cut(action.argument, SHOWN_TEXT);
  const type = h("span", { class: `type ${action.action_type === "ANSWER" ? "answer" : ""}` }, action.action_type);
  const said = text !== null && text.trim() !== `${action.action_type}: ${action.argument}`.trim() ? text : null;
  return h(
    "li",
    { class: "turn" },
    h(
      "div",
      { class: "action" },
      type,
      " ",
      h("code", {}, ...(action.action_type === "QUERY" ? sqlNodes(argument) : [argument])),
    ),
    parse_error === null ? null : h("p", { class: "note" }, "not parsed as an action, run as a query"),
    said === null ? null : h("p", { class: "note" }, "as written: ", h("code", {}, cut(said, 500))),
    error === null ? null : h("p", { class: "error" }, cut(error, SHOWN_TEXT)),
    result === "" ? null : resultNode(result, action.action_type),
    rewards && rewardNode(observation),
  );
}

/** A step's reward and its components. */
function rewardNode(observation: StepRecord["observation"]): HTMLElement {
  const text = explainReward(observation);
  const [sum, parts] = text.includes(": ") ? text.split(": ", 2) : [null, text];
  return h(
    "p",
    { class: "reward" },
    sum === null ? null : h("b", {}, sum!),
    ...parts!.split(", ").map((part) => h("span", { class: `part ${part.startsWith("−") ? "minus" : ""}` }, part)),
  );
}

/** A result as a table if it can be parsed as one, otherwise as plain text. */
export function resultNode(result: string, action: string): HTMLElement {
  const table = action === "QUERY" || action === "SAMPLE" ? tableOf(result) : null;
  if (!table) return h("pre", { tabindex: 0 }, cut(result, SHOWN_TEXT));
  const numeric = table.head.map((_, i) => table.rows.every((row) => /^-?[\d.,]+$|^NULL$/.test(row[i]!)));
  return h(
    "div",
    { class: "scroll", tabindex: 0 },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...table.head.map((name, i) => h("th", { class: numeric[i] ? "number" : "" }, name)))),
      h(
        "tbody",
        {},
        ...table.rows.map((row) =>
          h(
            "tr",
            {},
            ...row.map((cell, i) =>
              h("td", { class: `${numeric[i] ? "number" : ""} ${cell === "NULL" ? "null" : ""}` }, cell),
            ),
          ),
        ),
      ),
    ),
    table.notice === "" ? null : h("p", { class: "note" }, table.notice),
  );
}

const PARTS: readonly (readonly [keyof RewardBreakdown, string])[] = [
  ["correctness", "the right answer"],
  ["progress", "progress toward the answer"],
  ["exec_ok", "actions without error"],
  ["new_info", "new information"],
  ["repeat", "repeated actions"],
  ["step_cost", "steps taken"],
];

const MARKS = { good: "✓ ", bad: "✗ ", none: "" } as const;

/** An episode's outcome, its reward by component, and the gold if known. */
export function verdictNode(record: EpisodeRecord, gold: Gold | null): HTMLElement {
  const { tone, text } = verdict(record);
  const sums = PARTS.map(([part, label]) => ({
    label,
    sum: record.steps.reduce((total, step) => total + (step.reward_breakdown[part] ?? 0), 0),
  })).filter(({ sum }) => Math.abs(sum) > 1e-9);
  const rows = sums.map(({ label, sum }) =>
    h("tr", {}, h("td", {}, label), h("td", { class: "number" }, signed(Math.round(sum * 1e9) / 1e9))),
  );
  const account = h("table", { class: "account" }, h("tbody", {}, ...rows));
  return h(
    "div",
    { class: `verdict ${tone}` },
    h("p", { class: "result" }, `${MARKS[tone]}${text[0]!.toUpperCase()}${text.slice(1)}`),
    gold && goldNode(gold),
    rows.length === 0 ? null : h("details", {}, h("summary", { class: "note" }, "how the reward adds up"), account),
  );
}

/** The gold answer and its query. */
export function goldNode({ sql, answer }: Gold): HTMLElement {
  return h(
    "dl",
    { class: "gold" },
    h("dt", {}, "Right answer"),
    h("dd", {}, h("code", { class: "answer" }, cut(answer, SHOWN_TEXT))),
    h("dt", {}, "A query that gives it"),
    h("dd", {}, h("code", {}, ...sqlNodes(sql))),
  );
}

/** A whole episode, compact, for the comparison before and after training. */
export function episodeNode(record: EpisodeRecord, title: string): HTMLElement {
  const { tone, text } = verdict(record);
  return h(
    "article",
    { class: "episode" },
    h("header", {}, h("h4", {}, title), h("span", { class: `tag ${tone}` }, text)),
    h("ol", { class: "turns" }, ...record.steps.map((step) => turnNode(step))),
  );
}
