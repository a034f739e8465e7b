// An episode as HTML: each turn's action, result and reward, and the outcome.
import { type EpisodeRecord, explainReward, type StepRecord } from "../../gym/evaluation/index.ts";
import type { GoldAnswer } from "../../rl/run/records.ts";
import { verdict } from "./episode-outcome.ts";
import { count, cut, escapeHtml } from "./format.ts";
import { tableOf } from "./result-table.ts";
import { highlightSql } from "./sql-html.ts";

const SHOWN_ROWS = 8;
const SHOWN_TEXT = 2000; // characters of an argument, error or non-table result

/** The gold query and answer. */
export function goldHtml({ query, answer }: GoldAnswer): string {
  const shown = query === null ? "" : `<code>${highlightSql(cut(query, SHOWN_TEXT))}</code>`;
  return `<p class="gold"><b>Expected answer</b> <code>${escapeHtml(cut(answer, 400))}</code>${shown && `<br><b>Gold query</b> ${shown}`}</p>`;
}

/** The episode, titled with the player's name. */
export function episodeHtml(record: EpisodeRecord, player: string): string {
  const { tone, text } = verdict(record);
  const turns = record.steps.map(turnHtml).join("");
  return `<article class="episode"><header><h4>${escapeHtml(player)}</h4><span class="verdict ${tone}">${escapeHtml(text)}</span></header>${
    turns === "" ? `<p class="dim">No turn was played.</p>` : `<ol class="turns">${turns}</ol>`
  }</article>`;
}

function turnHtml({ action, text, parse_error, observation }: StepRecord): string {
  const { error, result } = observation;
  const type = escapeHtml(action.action_type);
  const argument = cut(action.argument, SHOWN_TEXT);
  const misread =
    parse_error === null
      ? ""
      : `<p class="note">not parsed as an action, run as a query${text !== null && text !== action.argument ? `: <code>${escapeHtml(cut(text, 300))}</code>` : ""}</p>`;
  return [
    `<li class="turn"><div class="action"><span class="type ${escapeHtml(action.action_type.toLowerCase())}">${type}</span> `,
    `<code>${action.action_type === "QUERY" ? highlightSql(argument) : escapeHtml(argument)}</code></div>`,
    misread,
    error === null ? "" : `<p class="error">${escapeHtml(cut(error, SHOWN_TEXT))}</p>`,
    result === "" ? "" : resultHtml(result, action.action_type),
    `<p class="reward">${escapeHtml(explainReward(observation))}</p></li>`,
  ].join("");
}

/** A result as a table if it can be parsed as one, otherwise as plain text. */
function resultHtml(result: string, action: string): string {
  const table = action === "QUERY" || action === "SAMPLE" ? tableOf(result) : null;
  if (!table) return `<pre>${escapeHtml(firstLines(cut(result, SHOWN_TEXT), 12))}</pre>`;
  const cells = (row: readonly string[], tag: "td" | "th") =>
    `<tr>${row.map((cell) => `<${tag}${/^-?[\d.,]+$/.test(cell) ? ' class="number"' : ""}>${escapeHtml(cut(cell, 80))}</${tag}>`).join("")}</tr>`;
  const hidden = table.rows.length - SHOWN_ROWS;
  const notice = [table.notice, hidden > 0 ? `${count(hidden, "row")} not shown here` : ""].filter(Boolean).join(" ");
  return `<div class="scroll"><table><thead>${cells(table.head, "th")}</thead><tbody>${table.rows
    .slice(0, SHOWN_ROWS)
    .map((row) => cells(row, "td"))
    .join("")}</tbody></table></div>${notice ? `<p class="note">${escapeHtml(notice)}</p>` : ""}`;
}

function firstLines(text: string, max: number): string {
  const lines = text.split("\n");
  return lines.length <= max
    ? text
    : [...lines.slice(0, max), `… ${count(lines.length - max, "more line")}`].join("\n");
}
