// The metric charts of a run's page, as SVGs.
import type { MetricLine, TimingLine } from "../../rl/run/records.ts";
import type { ActionStats } from "./action-stats.ts";
import { pointsOf } from "./learning-curve.ts";
import { PANELS, type PanelSource } from "./metric-panels.ts";
import { drawPanel, type Panel, svgDocument } from "./svg-chart.ts";

const BOX = { x: 4, y: 4, width: 412, height: 196 };

/** Every chart with data, as SVGs for a page of `htmlPage`. */
export function trainingCharts(
  metrics: readonly MetricLine[],
  timings: readonly TimingLine[] = [],
  habits: readonly ActionStats[] = [],
): string[] {
  const logs: Readonly<Record<PanelSource, readonly MetricLine[]>> = {
    metrics,
    timings: asMetrics(timings),
    habits: asMetrics(habits),
  };
  return PANELS.map(({ from, lines, ...panel }): Panel => {
    const series = lines.map(({ key, colour, label = "", smoothed = true }) => ({
      label,
      colour,
      smoothed,
      points: pointsOf(logs[from], key),
    }));
    return { ...panel, series };
  })
    .filter(hasData)
    .map(drawSinglePanel);
}

/** One panel as a separate SVG. */
export function drawSinglePanel(panel: Panel): string {
  const [width, height] = [BOX.width + 8, BOX.height + 8];
  return svgDocument({ width, height, title: panel.title, inline: true }, drawPanel(panel, BOX));
}

/** False for panels without data or with zeros only. */
function hasData({ series }: Panel): boolean {
  return series.some(({ points }) => points.some(({ y }) => y !== 0));
}

function asMetrics(lines: readonly (TimingLine | ActionStats)[]): MetricLine[] {
  return lines.map((line) => ({ ...line }));
}
