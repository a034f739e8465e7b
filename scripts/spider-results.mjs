// Writes the tables of docs/spider.md and its picture from the results in docs/results/spider:
//   npm run -s build && node scripts/spider-results.mjs
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { pValue } from "../dist/apps/reports/format.js";
import { drawPanel, svgDocument } from "../dist/apps/reports/svg-chart.js";

const path = (file) => fileURLToPath(new URL(`../docs/${file}`, import.meta.url));
const COLOURS = { "spider-smollm2": "blue", "spider-smollm2-nosql": "orange" };

const results = readdirSync(path("results/spider"))
  .sort()
  .map((file) => ({ file, ...JSON.parse(readFileSync(path(`results/spider/${file}`), "utf8")) }))
  .map((result) => ({ ...result, preset: /--preset (\S+)/.exec(result.command)[1] }))
  .sort((a, b) => a.preset.localeCompare(b.preset) || a.seed - b.seed);

const percent = (rate) => (100 * rate).toFixed(1);
const score = ({ rate, ci }) => `${percent(rate)} (${ci.map(percent).join("–")})`;
const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
const points = (value) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(1)}`;
const grpo = ({ paired }, wanted) => paired.find(({ to, mark }) => to === "after" && mark === wanted);
const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

const stages = table(
  ["preset, seed", "untrained", "after SFT", "after GRPO", "GRPO adds", "p by database", "GRPO steps", "min in all"],
  results.map((result) => {
    const { preset, seed, file, accuracy, steps, seconds } = result;
    const pair = grpo(result, "answer");
    return [
      `[\`${preset}\`, ${seed}](results/spider/${file})`,
      percent(accuracy.base.answer.rate),
      score(accuracy.before.answer),
      `**${score(accuracy.after.answer)}**`,
      points(pair.difference),
      pValue(pair.permutation_p),
      String(steps),
      minutes(seconds),
    ];
  }),
);
const execution = table(
  ["preset, seed", "Spider's rule: after SFT", "after GRPO", "BIRD's rule: after SFT", "after GRPO"],
  results.map(({ preset, seed, accuracy: { before, after } }) => [
    `\`${preset}\`, ${seed}`,
    score(before.spider),
    score(after.spider),
    score(before.bird),
    score(after.bird),
  ]),
);
const behaviour = table(
  [
    "preset, seed",
    "actions per episode, SFT → GRPO",
    "repeated actions per episode",
    "pass@8 after SFT",
    "last SFT loss",
  ],
  results.map(({ preset, seed, accuracy: { before, after }, pass_at_k, sft }) => [
    `\`${preset}\`, ${seed}`,
    `${before.steps} → ${after.steps}`,
    `${before.repeats} → ${after.repeats}`,
    pass_at_k ? `${percent(pass_at_k.solved_in_tries)} % of ${pass_at_k.questions}` : "–",
    sft.last_loss.toFixed(3),
  ]),
);

const last = Math.max(...results.map(({ steps }) => steps));
const panel = {
  title: "Right answers of sampled training episodes",
  note: "means of 20 steps; databases that SFT did not use",
  x: [0, last],
  y: [0, 0.8],
  format: (rate) => `${Math.round(100 * rate)} %`,
  series: results.map(({ preset, seed, curve }) => ({
    label: `${preset.replace("spider-smollm2", "").replace("-", "") || "SQL in SFT"}, seed ${seed}`.replace(
      "nosql",
      "no SQL",
    ),
    colour: COLOURS[preset] ?? "green",
    points: curve.map(({ step, right }) => ({ x: step, y: right })),
  })),
};
const unseen = {
  title: "Right answers on 19 unseen databases, greedy",
  note: "917 questions at the first and last point, 128 between",
  x: [0, last],
  y: [0, 0.8],
  format: panel.format,
  series: results.map(({ preset, evaluations, accuracy, steps }, i) => ({
    label: panel.series[i].label,
    colour: COLOURS[preset] ?? "green",
    points: [
      { x: 0, y: accuracy.before.answer.rate },
      ...evaluations.filter(({ step }) => step > 0 && step < steps).map(({ step, greedy }) => ({ x: step, y: greedy })),
      { x: steps, y: accuracy.after.answer.rate },
    ],
  })),
};
const title = "SmolLM2-135M learns by reward on Spider";
export const picture = svgDocument(
  { width: 900, height: 550, title },
  `<text class="sc-fill-ink" x="20" y="32" font-size="18" font-weight="700">${title}</text>${drawPanel(unseen, { x: 20, y: 50, width: 860, height: 230 })}${drawPanel(panel, { x: 20, y: 300, width: 860, height: 230 })}`,
);

/** The page with its tables replaced. */
export function withTables(page) {
  return Object.entries({ stages, execution, behaviour }).reduce((text, [name, rows]) => {
    const marks = new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- /${name} -->)`);
    if (!marks.test(text)) throw new Error(`docs/spider.md has no place for the table "${name}"`);
    return text.replace(marks, (_, from, to) => `${from}\n${rows}\n\n${to}`);
  }, page);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(path("spider.md"), withTables(readFileSync(path("spider.md"), "utf8")));
  writeFileSync(path("images/spider-smollm2.svg"), picture);
}
