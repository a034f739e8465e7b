// A run as one page to read and to send: what improved, how it went, what it warns of, what it plays like, its settings.
import type { Comparison, MetricLine, TimingLine, TrainingResult, Warning } from "../../rl/run/records.ts";
import type { Habits } from "./action-stats.ts";
import { comparisonSection } from "./comparison.ts";
import { behaviourRows, reachText, type StandingRow, standingRows, withInterval } from "./evaluation-summary.ts";
import { count, duration, escapeHtml, isNumber, percent, percentRange, settingText, shortNumber } from "./format.ts";
import { htmlPage } from "./html-page.ts";
import { learningCurve } from "./learning-curve.ts";
import { trainingCharts } from "./metric-charts.ts";
import { accuracyNote, accuracyTable, PAIRED_NOTE, pairedTable, recipeLines, type StageTable } from "./stages.ts";

/** What is known of a run; one that goes on, or was stopped, has no result yet. */
export interface RunRecords {
  /** Its name, such as the folder's. */
  readonly run: string;
  readonly config: Readonly<Record<string, unknown>> | null;
  readonly metrics: readonly MetricLine[];
  readonly timings?: readonly TimingLine[];
  readonly warnings?: readonly Warning[];
  readonly result?: TrainingResult | null;
  readonly comparison?: Comparison | null;
  readonly habits?: readonly Habits[];
}

/** The whole page, self-contained. */
export function runPage(records: RunRecords): string {
  const { run, config, metrics, timings = [], warnings = [], result, comparison, habits = [] } = records;
  const curve = learningCurve(metrics, { random: result?.random, inline: true });
  const charts = trainingCharts(metrics, timings, habits);
  const sections = [
    `<h1>${escapeHtml(run)}</h1><p class="dim">${escapeHtml(subtitleOf(records))}</p>`,
    result ? standingHtml(result) : `<p class="card">${escapeHtml(progressOf(metrics))}</p>`,
    warnings.length > 0 ? `<h2>Warnings</h2>${warningsHtml(warnings)}` : "",
    `<h2>Learning curve</h2><div class="card chart curve">${curve}</div>`,
    comparison && comparison.questions.length > 0 ? `<h2>What it plays like</h2>${comparisonSection(comparison)}` : "",
    charts.length > 0
      ? `<h2>How the training went</h2><div class="charts">${charts.map((chart) => `<div class="card chart">${chart}</div>`).join("")}</div>`
      : "",
    timings.length > 0 ? `<h2>Where the time went</h2>${timeHtml(timings)}` : "",
    config ? `<h2>Settings</h2>${configHtml(config)}` : "",
    `<footer>Made by sqlenv from the files of the run's folder; <code>sqlenv report</code> makes it again.</footer>`,
  ];
  return htmlPage(`${run} · SQLEnv`, sections.filter(Boolean).join("\n"));
}

/** "starter, 300 steps, 19,200 episodes, 7 min 12 s" */
export function subtitleOf({ config, metrics, timings = [], result }: RunRecords): string {
  const model = result?.model_name ?? (typeof config?.model_name === "string" ? config.model_name : undefined);
  const steps = result?.steps ?? lastStep(metrics);
  const seconds = result?.seconds ?? timings.at(-1)?.elapsed;
  return [
    ...(model ? [model] : []),
    count(steps, "step"),
    ...(result ? [count(result.episodes, "episode")] : []),
    ...(isNumber(seconds) ? [duration(seconds)] : []),
  ].join(", ");
}

function lastStep(metrics: readonly MetricLine[]): number {
  return metrics.reduce((most, { step }) => Math.max(most, isNumber(step) ? step : 0), 0);
}

function progressOf(metrics: readonly MetricLine[]): string {
  const step = lastStep(metrics);
  return step === 0
    ? "The training has not finished a step yet."
    : `The training is not finished: step ${step} is the last one logged. The comparison of before and after comes at its end.`;
}

function standingHtml(result: TrainingResult): string {
  const rows = standingRows(result);
  const table = rows.map(
    (row) =>
      `<tr><td>${escapeHtml(row.name)}</td><td>${withInterval(row.random)}</td><td>${withInterval(row.before)}</td><td>${withInterval(row.after)}</td><td><span class="tag ${row.verdict === "not told apart" ? "" : row.verdict}">${row.verdict}</span></td><td>${numbers(row)}</td></tr>`,
  );
  const clustered = rows.some(({ after }) => after.ci_method === "cluster_t_by_database")
    ? " On unseen databases they count databases, not questions."
    : "";
  return `<div class="headline">${rows.map(standingCard).join("")}</div>
<div class="card"><div class="scroll standing"><table><thead><tr><th>success on</th><th>random</th><th>before</th><th>after</th><th></th><th>steps, before and after</th></tr></thead><tbody>${table.join("")}</tbody></table></div>
<p class="note">Held-out questions. In brackets: 95 % intervals; before and after are called better or worse only where theirs do not overlap.${clustered} Greedy takes the likeliest action each time, sampled draws as in training.</p>${reachHtml(result)}</div>${accuracyHtml(result)}${behaviourHtml(result)}`;
}

function reachHtml({ reach }: TrainingResult): string {
  if (!reach) return "";
  const text = reachText(reach);
  return `<p class="note">${escapeHtml(text[0]!.toUpperCase() + text.slice(1))}.</p>`;
}

/** Right answers and queries by stage, the paired tests between stages, and what SFT and GRPO had. */
function accuracyHtml(result: TrainingResult): string {
  const [accuracy, paired] = [accuracyTable(result), pairedTable(result)];
  if (!accuracy) return "";
  const note = (text: string) => `<p class="note">${escapeHtml(text)}</p>`;
  const recipe = recipeLines(result).map((line) => note(`${line[0]!.toUpperCase()}${line.slice(1)}.`));
  const tests = paired ? `${tableHtml(paired)}${note(PAIRED_NOTE)}` : "";
  return `<div class="card">${tableHtml(accuracy)}${note(accuracyNote(result))}${tests}${recipe.join("")}</div>`;
}

function tableHtml({ head, rows }: StageTable): string {
  const cells = (tag: string, row: readonly string[]) =>
    row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("");
  const body = rows.map((row) => `<tr>${cells("td", row)}</tr>`).join("");
  return `<div class="scroll standing"><table><thead><tr>${cells("th", head)}</tr></thead><tbody>${body}</tbody></table></div>`;
}

function behaviourHtml(result: TrainingResult): string {
  const rows = behaviourRows(result).map(
    ([name, ...values]) => `<tr><td>${name}</td>${values.map((value) => `<td>${value}</td>`).join("")}</tr>`,
  );
  if (rows.length === 0) return "";
  return `<div class="card"><div class="scroll standing"><table><thead><tr><th>how it plays unseen databases, greedy</th><th>random</th><th>before</th><th>after</th></tr></thead><tbody>${rows.join("")}</tbody></table></div></div>`;
}

function numbers({ before, after }: StandingRow): string {
  const steps = (value: number | null) => value?.toFixed(1) ?? "–";
  return `${steps(before.mean_steps)} · ${steps(after.mean_steps)}`;
}

/** Before and after as large numbers, and as marks with their intervals on a scale from 0 to 100 %. */
function standingCard({ name, random, before, after, verdict }: StandingRow): string {
  const mark = (summary: typeof before, kind: string) => {
    const at = (rate: number) => (100 * Math.max(0, Math.min(1, rate))).toFixed(1);
    if (summary.success_rate === null || !summary.success_ci) return "";
    const [low, high] = summary.success_ci;
    return `<i class="${kind}" style="left:${at(low)}%;width:${at(high - low)}%"></i><b class="${kind}" style="left:${at(summary.success_rate)}%"></b>`;
  };
  const tone = verdict === "worse" ? "fell" : "is";
  return `<div class="card"><div class="name">${escapeHtml(name)}</div><div class="change">${percent(before.success_rate)} <span class="arrow">→</span> <span class="${verdict === "not told apart" ? "" : verdict}">${percent(after.success_rate)}</span></div><div class="bar" role="img" aria-label="0 to 100 %">${mark(before, "was")}${mark(after, tone)}</div><div class="ci">${percentRange(before.success_ci)} → ${percentRange(after.success_ci)}</div><div class="ci">random ${percent(random.success_rate)}</div></div>`;
}

/** Each kind of warning once, with its first and last step. */
function warningsHtml(warnings: readonly Warning[]): string {
  const kinds = [...new Set(warnings.map(({ code }) => code))];
  return kinds
    .map((code) => {
      const those = warnings.filter((warning) => warning.code === code);
      const last = those.at(-1)!;
      const when =
        those.length === 1 ? `step ${last.step}` : `${those.length} times, steps ${those[0]!.step} to ${last.step}`;
      return `<div class="warning"><b>${escapeHtml(last.message)}</b> <span class="dim">(${escapeHtml(when)})</span><br>${escapeHtml(last.remedy)}</div>`;
    })
    .join("");
}

const SPENT = ["sampling", "training", "environment", "rewards"] as const;

function timeHtml(timings: readonly TimingLine[]): string {
  const sum = (key: keyof TimingLine) =>
    timings.reduce((total, line) => total + (isNumber(line[key]) ? line[key] : 0), 0);
  const all = sum("step_time");
  const rows: [string, number][] = [
    ...SPENT.map((key): [string, number] => [key, sum(key)]),
    ["other", Math.max(0, all - SPENT.reduce((total, key) => total + sum(key), 0))],
    ["all steps", all],
  ];
  const elapsed = timings.at(-1)!.elapsed;
  if (isNumber(elapsed) && elapsed > all) rows.push(["with evaluations and saving", elapsed]);
  return `<div class="card scroll"><table><thead><tr><th></th><th>time</th><th>of the steps</th><th>a step</th></tr></thead><tbody>${rows
    .map(
      ([name, seconds]) =>
        `<tr><td>${name}</td><td class="number">${duration(seconds)}</td><td class="number">${percent(all === 0 ? null : seconds / all)}</td><td class="number">${shortNumber(seconds / timings.length)} s</td></tr>`,
    )
    .join("")}</tbody></table></div>`;
}

function configHtml(config: Readonly<Record<string, unknown>>): string {
  const rows = Object.entries(config).map(
    ([key, value]) => `<tr><td>${escapeHtml(key)}</td><td>${escapeHtml(settingText(value))}</td></tr>`,
  );
  return `<div class="card config"><table><tbody>${rows.join("")}</tbody></table></div>`;
}
