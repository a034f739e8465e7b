// The tables of `sqlenv eval`.
import { ANSWER_TYPES, DIFFICULTIES } from "../../../gym/data/index.ts";
import type { EvaluationReport, Summary } from "../../../gym/evaluation/index.ts";
import { percent } from "../../reports/format.ts";
import { counted, drawTable, type Output, printable, styled } from "../terminal/output.ts";

/** With more databases than this, the table leaves them out. */
const LISTED_DATABASES = 24;

/** Prints success by split, difficulty, answer type and database, and what the player did. */
export function drawReport(report: EvaluationReport, out: Output): void {
  const databases = Object.entries(report.by_database);
  const isListed = databases.length <= LISTED_DATABASES;
  const groups: [string, Summary][] = [
    ["all", report],
    ["seen databases", report.seen],
    ["unseen databases", report.unseen],
    ...DIFFICULTIES.map((name): [string, Summary] => [name, report.by_difficulty[name]]),
    ...ANSWER_TYPES.map((name): [string, Summary] => [`answer: ${name}`, report.by_answer_type[name]]),
    ...(isListed ? databases : []),
  ];
  const rows = groups.filter(([, { episodes }]) => episodes > 0).map(([name, summary]) => [name, ...cells(summary)]);
  out.line(drawTable(["", "episodes", "success", "95 % interval", "reward", "steps"], rows));
  if (!isListed) out.line(`--json lists each of the ${databases.length} databases`);
  out.line();
  if (report.tries > 1) {
    const parts = [
      ["seen", report.seen],
      ["unseen", report.unseen],
    ] as const;
    const shown = parts.filter(([, { episodes }]) => episodes > 0);
    const rates = shown.map(([split, { solved_in_tries }]) => `${split} databases ${percent(solved_in_tries)}`);
    out.line(`pass@${report.tries}: ${percent(report.solved_in_tries)} of the questions (${rates.join(", ")})`);
  }
  const { described_first, answers_seen } = report.behaviour;
  out.line(
    `tables described before they were queried: ${percent(described_first)}; answers with values seen before: ${percent(answers_seen)}`,
  );
  if (report.unseen.ci_method !== "wilson")
    out.line("the interval on unseen databases treats databases, not questions, as independent");
  out.line(
    `actions: ${percent(report.parse_failure_rate)} unparsable, ${percent(report.repeat_rate)} repeated, ${percent(report.invalid_rate)} failed`,
  );
}

/** Episodes that do not count, and why. */
export function drawNotes(report: EvaluationReport, out: Output): void {
  const unscored = report.episodes - report.scored - report.errors;
  if (unscored > 0) out.line(styled("yellow", `${counted(unscored, "episode")} could not be scored and do not count`));
  if (report.errors > 0) {
    const first = printable(report.first_error ?? "");
    out.line(styled("yellow", `${counted(report.errors, "episode")} failed and do not count; the first: ${first}`));
  }
  if (report.interrupted) out.line(styled("yellow", `interrupted after ${counted(report.episodes, "episode")}`));
}

function cells({ episodes, scored, success_rate, success_ci, mean_reward, mean_steps }: Summary): string[] {
  const count = scored === episodes ? String(episodes) : `${scored} of ${episodes}`;
  const interval = success_ci ? `${(100 * success_ci[0]).toFixed(1)} – ${percent(success_ci[1])}` : "–";
  return [
    count.padStart(8),
    percent(success_rate).padStart(7),
    interval.padStart(13),
    (mean_reward?.toFixed(3) ?? "–").padStart(6),
    (mean_steps?.toFixed(1) ?? "–").padStart(5),
  ];
}
