// An episode on the page: its turns with their SQL, what they showed and what they earned, and how it ended.
import type { RewardBreakdown } from "../../../gym/env/index.ts";
import type { EpisodeRecord, StepRecord } from "../../../gym/evaluation/index.ts";
import { explainReward, signed } from "../../../gym/evaluation/transcript.ts";
import { tableOf } from "../../reports/result-table.ts";
import { verdict } from "../../reports/verdict.ts";
import { cut } from "../../reports/words.ts";
import { h } from "./dom.ts";
import { sqlNodes } from "./editor.ts";
import type { Gold } from "./protocol.ts";

const SHOWN_TEXT = 4000; // characters of one argument or result; more makes a page slow and tells nobody anything

/** One turn: the action, what came back, what it earned. */
export function turnNode({ action, text, parse_error, observation }: StepRecord): HTMLLIElement {
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
    parse_error === null ? null : h("p", { class: "note" }, "not understood, taken as a query"),
    said === null ? null : h("p", { class: "note" }, "as written: ", h("code", {}, cut(said, 500))),
    error === null ? null : h("p", { class: "error" }, cut(error, SHOWN_TEXT)),
    result === "" ? null : resultNode(result, action.action_type),
    rewardNode(observation),
  );
}

/** What a step earned, part by part. */
function rewardNode(observation: StepRecord["observation"]): HTMLElement {
  const told = explainReward(observation);
  const [sum, parts] = told.includes(": ") ? told.split(": ", 2) : [null, told];
  return h(
    "p",
    { class: "reward" },
    sum === null ? null : h("b", {}, sum!),
    ...parts!.split(", ").map((part) => h("span", { class: `part ${part.startsWith("−") ? "minus" : ""}` }, part)),
  );
}

/** A result as a grid where it is one, as plain text otherwise. */
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
  ["progress", "coming nearer"],
  ["exec_ok", "actions that worked"],
  ["new_info", "new information"],
  ["repeat", "doing the same again"],
  ["step_cost", "steps taken"],
];

/** How an episode ended, its account, and the gold where it is known. */
export function verdictNode(record: EpisodeRecord, gold: Gold | null): HTMLElement {
  const { tone, text } = verdict(record);
  const sums = PARTS.map(([part, words]) => ({
    words,
    sum: record.steps.reduce((total, step) => total + (step.reward_breakdown[part] ?? 0), 0),
  })).filter(({ sum }) => Math.abs(sum) > 1e-9);
  const rows = sums.map(({ words, sum }) =>
    h("tr", {}, h("td", {}, words), h("td", { class: "number" }, signed(Math.round(sum * 1e9) / 1e9))),
  );
  return h(
    "div",
    { class: `verdict ${tone}` },
    h("p", { class: "result" }, text),
    rows.length === 0 ? null : h("table", { class: "account" }, h("tbody", {}, ...rows)),
    gold && goldNode(gold),
  );
}

/** The query behind the question, and its answer. */
export function goldNode({ sql, answer }: Gold): HTMLElement {
  return h(
    "dl",
    { class: "gold" },
    h("dt", {}, "Gold query"),
    h("dd", {}, h("code", {}, ...sqlNodes(sql))),
    h("dt", {}, "Gold answer"),
    h("dd", {}, h("code", { class: "answer" }, cut(answer, SHOWN_TEXT))),
  );
}

/** A whole episode, small: for before and after. */
export function episodeNode(record: EpisodeRecord, title: string): HTMLElement {
  const { tone, text } = verdict(record);
  return h(
    "article",
    { class: "episode" },
    h("header", {}, h("h4", {}, title), h("span", { class: `tag ${tone}` }, text)),
    h("ol", { class: "turns" }, ...record.steps.map(turnNode)),
  );
}
