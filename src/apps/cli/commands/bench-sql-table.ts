// A text-to-SQL benchmark's result as tables that fit 80 columns.
import type { Measure } from "../../bench/text-to-sql/outcomes.ts";
import type { BenchResult } from "../../bench/text-to-sql/result.ts";
import { TOO_LONG } from "../../bench/text-to-sql/schema-given.ts";
import type { GroupScores, Score } from "../../bench/text-to-sql/scores.ts";
import { percent } from "../../reports/format.ts";
import { drawTable, formatNumber, type Output, printable, styled } from "../terminal/output.ts";
import { wrapLine } from "../terminal/wrap.ts";

const COLUMNS = 80;

/** With more databases than this, only --json lists them. */
const LISTED_DATABASES = 24;

const HEADS: Readonly<Record<Measure, string>> = { answer: "answer", spider: "spider", bird: "bird", twins: "twins" };

/** Prints the setup, the scores by group and the cost per question. */
export function drawBench(result: BenchResult, out: Output): void {
  const { scores, data, protocol, model, per_question, errors, first_error, stopped } = result;
  const { votes } = protocol;
  out.line(
    `${styled("bold", printable(shortName(model.name)))} on ${printable(data.name)}: ${formatNumber(data.questions)} questions, ${data.databases} unseen databases`,
  );
  for (const line of wrapLine(describe(result), COLUMNS)) out.line(line);
  out.line();
  const measures = (Object.keys(HEADS) as Measure[]).filter((measure) => scores.all[measure] !== null);
  const databases = Object.entries(scores.by_database);
  const joins = Object.entries(scores.by_joins).map(([n, group]): [string, GroupScores] => [
    n === "0" ? "no join" : n === "1" ? "1 join" : `${n} joins`,
    group,
  ]);
  const groups: [string, GroupScores][] = [
    [votes > 1 ? `voted@${votes}` : "all", scores.all],
    ...(scores.any ? [[`pass@${votes}`, scores.any] as [string, GroupScores]] : []),
    ...Object.entries(scores.by_difficulty),
    ...joins,
    ...(databases.length <= LISTED_DATABASES ? databases : []),
  ];
  const width = 7;
  const cells = (group: GroupScores, show: (score: Score) => string, count: string) => [
    count.padStart(9),
    ...measures.map((measure) => (group[measure] ? show(group[measure]) : "–").padStart(width)),
  ];
  const rows = groups.flatMap(([name, group], i) => [
    [name, ...cells(group, ({ rate }) => percent(rate), formatNumber(group.questions))],
    ...(i === 0 ? [["95 %, from", ...cells(group, ({ ci }) => percent(ci[0]), "")]] : []),
    ...(i === 0 ? [["      to", ...cells(group, ({ ci }) => percent(ci[1]), "")]] : []),
  ]);
  out.line(drawTable(["", "questions", ...measures.map((m) => HEADS[m].padStart(width))], rows, { maxCell: 34 }));
  if (databases.length > LISTED_DATABASES) out.line(`--json lists each of the ${databases.length} databases`);
  out.line();
  const { tokens, prompt_tokens, seconds } = per_question;
  const counted =
    tokens === null ? "" : `${Math.round(tokens)} new and ${Math.round(prompt_tokens ?? 0)} prompt tokens, `;
  out.line(`per question: ${counted}${seconds.toFixed(3)} s; intervals over databases`);
  for (const line of [...twinsLine(result), ...consistency(result), ...tooLong(result)]) out.line(line);
  if (stopped > 0) {
    const text = `statements of ${stopped} of ${data.questions} questions hit the time limit: a faster machine may score them differently`;
    for (const line of wrapLine(text, COLUMNS)) out.line(styled("yellow", line));
  }
  if (errors > 0) {
    const text = `${errors} of ${data.questions} questions failed and count as wrong; the first: ${first_error ?? ""}`;
    for (const line of wrapLine(text, COLUMNS)) out.line(styled("yellow", line));
  }
}

/** The last part of a path. */
export function shortName(name: string): string {
  return name.split(/[/\\]/).findLast((part) => part !== "") ?? name;
}

function describe({ protocol }: BenchResult): string {
  const { schema, rules, prompt, step_budget, votes, temperature } = protocol;
  return [
    `schema ${schema}`,
    ...(rules === null ? [] : [`rules ${rules}`]),
    ...(prompt === null ? [] : [`prompt ${prompt}`]),
    ...(step_budget === null ? [] : [`budget ${step_budget}`]),
    votes > 1
      ? `${votes} votes at temperature ${temperature}`
      : temperature === 0
        ? "greedy"
        : `temperature ${temperature}`,
  ].join(", ");
}

/** How many queries with the right result the twins reject. */
function twinsLine({ twins }: BenchResult): string[] {
  if (!twins) return [];
  const { right_looking, rejected, without } = twins;
  const share = right_looking === 0 ? "" : ` (${percent(rejected / right_looking)})`;
  const none = without > 0 ? `; ${without} questions have no twin` : "";
  return [`twins reject ${rejected} of ${right_looking} matching queries${share}${none}`];
}

/** Players that know the gold query: each question they fail is listed. */
const KNOWING = new Set(["oracle", "teacher"]);

/** Maximum number of failed questions listed. */
const LISTED = 20;

/** Where answer and query disagree, and, for players that know the gold query, each failed question. */
function consistency({ questions, model }: BenchResult): string[] {
  const lucky = questions.filter(({ answer, spider }) => answer === true && !spider);
  const lost = questions.filter(({ answer, spider }) => answer === false && spider);
  const answered = questions.some(({ answer }) => answer !== null);
  const wrong = KNOWING.has(model.player)
    ? questions.filter(({ spider, bird, twins }) => !spider || !bird || twins === false)
    : [];
  return [
    ...(answered
      ? [`answer right, last query wrong (spider): ${lucky.length}; answer wrong, last query right: ${lost.length}`]
      : []),
    ...wrong.slice(0, LISTED).map(({ id, reason }) => `  ${id}: ${reason ?? "another result on a twin"}`),
    ...(wrong.length > LISTED ? [`  and ${wrong.length - LISTED} more; --json lists all`] : []),
  ];
}

/** Questions whose schema is longer than the model's context. */
function tooLong({ questions }: BenchResult): string[] {
  const left = questions.filter(({ reason }) => reason === TOO_LONG);
  if (left.length === 0) return [];
  const databases = [...new Set(left.map(({ database }) => database))].join(", ");
  return [`${left.length} questions count as wrong: the schema is longer than the context (${printable(databases)})`];
}
