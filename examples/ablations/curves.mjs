// Several trainings in one chart: success during training, and on unseen databases.
//
//   node examples/ablations/curves.mjs --out seeds.svg --title "Five seeds" runs/seed-1 runs/seed-2 …
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { pointsOf } from "../../dist/apps/reports/learning-curve.js";
import { drawPanel, LINE_COLOURS, svgDocument } from "../../dist/apps/reports/svg-chart.js";

const { values, positionals: runs } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: "string", default: "curves.svg" },
    title: { type: "string", default: "Learning curves" },
  },
});
if (runs.length === 0) throw new Error("give the folders of some runs");
const lines = runs.map((run) => ({
  label: basename(run).replaceAll("-", " "),
  metrics: readFileSync(join(run, "metrics.jsonl"), "utf8").trim().split("\n").map(JSON.parse),
}));

/** One line per run. */
const series = (key, smoothed) =>
  lines.map(({ label, metrics }, i) => ({
    label,
    colour: LINE_COLOURS[i % LINE_COLOURS.length],
    smoothed,
    points: pointsOf(metrics, key),
  }));
const last = Math.max(...lines.flatMap(({ metrics }) => metrics.map(({ step }) => step)));
const panel = (title, note, key, smoothed, y) =>
  drawPanel(
    {
      title,
      note,
      x: [0, last],
      y: [0, 1],
      format: (rate) => `${Math.round(100 * rate)} %`,
      series: series(key, smoothed),
    },
    { x: 20, y, width: 860, height: 230 },
  );
const title = values.title.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const head = `<text class="sc-fill-ink" x="20" y="32" font-size="18" font-weight="700">${title}</text>`;
const body = [
  head,
  panel("Right answers in training", "dots as logged, lines smoothed", "rewards/reward_correctness/mean", true, 50),
  panel(
    "Right answers on databases never seen, greedy",
    "at the evaluations",
    "eval_unseen/greedy/success_rate",
    false,
    300,
  ),
];
writeFileSync(values.out, svgDocument({ width: 900, height: 550, title: values.title, inline: false }, body.join("")));
console.log(values.out);
