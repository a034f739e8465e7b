// A run's report: reads its folder and writes its pages.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readEpisodes, readRunFolder } from "../../rl/run/read-folder.node.ts";
import type { ReportHook } from "../../rl/run/train.node.ts";
import { countActions } from "./action-stats.ts";
import { behaviourChart } from "./behaviour-chart.ts";
import { comparisonHtml, comparisonMarkdown } from "./comparison.ts";
import { headline } from "./evaluation-summary.ts";
import { learningCurve } from "./learning-curve.ts";
import { blogMarkdown, modelCard } from "./model-card.ts";
import { svgToPng } from "./png.node.ts";
import { type RunRecords, runPage, subtitleOf, weightsOf } from "./run-page.ts";

export { RUN_FILES, readConfig, readEpisodes } from "../../rl/run/read-folder.node.ts";

/** All records of a run except its episodes, which are only counted. */
export interface Run extends Required<RunRecords> {
  readonly folder: string;
}

/**
 * Reads a run's folder and counts its episodes' actions; missing files are empty or null.
 *
 * @example
 * const { config, metrics, result } = await readRun("runs/starter");
 * console.log(metrics.at(-1)?.reward, result?.steps);
 */
export async function readRun(folder: string): Promise<Run> {
  return { ...(await readRunFolder(folder)), habits: await countActions(readEpisodes(folder)) };
}

export interface WrittenReport {
  /** Paths of the written files. */
  readonly files: readonly string[];
  /** The result in one line; null before the training ends. */
  readonly headline: string | null;
}

/**
 * Writes learning_curve.svg and .png, behaviour.svg and report.html; comparison.html, comparison.md and summary.md if there are records for them.
 *
 * @example
 * await writeReport("runs/starter"); // learning_curve.svg, report.html …
 */
export async function writeReport(run: string | Run): Promise<WrittenReport> {
  if (typeof run === "string") return writeReport(await readRun(run));
  const { folder, config, metrics, comparison, evaluation, gold, result, habits } = run;
  const curve = learningCurve(metrics, {
    title: run.run,
    subtitle: subtitleOf(run),
    random: result?.random,
    reward_weights: weightsOf(config),
    environment: result?.environment,
  });
  const pages: Record<string, string | Uint8Array> = {
    "report.html": runPage(run),
    ...(habits.length > 0 && !result?.environment && { "behaviour.svg": behaviourChart(habits) }),
    "learning_curve.svg": curve,
    "learning_curve.png": await svgToPng(curve),
    ...(comparison && {
      "comparison.html": comparisonHtml(comparison, { title: `${run.run}: the same questions, side by side`, gold }),
      "comparison.md": comparisonMarkdown(comparison, { gold }),
    }),
    ...(result && { "summary.md": blogMarkdown({ result, comparison, evaluation, gold, config }) }),
  };
  const files = Object.entries(pages).map(([name, content]) => {
    const file = join(folder, name);
    writeFileSync(file, content);
    return file;
  });
  return { files, headline: result ? headline(result) : null };
}

/** Writes the pages of a finished run; pass it to `runTraining` as `report`, as `sqlenv train` does. */
export const trainingReport: ReportHook = {
  modelCard: (result, config) => modelCard({ result, config }),
  write: (run) => writeReport(run),
};
