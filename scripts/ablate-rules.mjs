// The effect of each environment rule on a player: the same `sqlenv eval` with each rule alone, with none and with all.
//   node scripts/ablate-rules.mjs --player model --model M --data D --split train --questions 300 … (flags of `eval`)
// Prints a Markdown table; --out PREFIX saves PREFIX-ID.json and PREFIX-ID.jsonl of each evaluation.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const RULES = [
  [],
  ["--error-hints"],
  ["--end-after-failures", "3"],
  ["--answer-last"],
  ["--describe-many"],
  ["--guided"],
];
const cli = fileURLToPath(new URL("../dist/apps/cli/main.js", import.meta.url));
const args = process.argv.slice(2);
const at = args.indexOf("--out");
const [prefix] = at < 0 ? [undefined] : args.splice(at, 2).slice(1);

const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
console.log("| rules | episodes | right | 95 % | no answer | stuck | steps | failed actions | repeats |");
console.log("|---|---|---|---|---|---|---|---|---|");
for (const rules of RULES) {
  const name = rules.join("").replace(/^--/, "") || "none";
  const files = prefix === undefined ? [] : ["--out", `${prefix}-${name}.jsonl`];
  const run = spawnSync(process.execPath, [cli, "eval", ...args, ...rules, ...files, "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1e9,
  });
  if (run.status !== 0) process.exit(run.status ?? 1);
  if (prefix !== undefined) writeFileSync(`${prefix}-${name}.json`, run.stdout);
  const report = JSON.parse(run.stdout.toString());
  const { scored, success_rate, success_ci, done_reasons, mean_steps, invalid_rate, repeat_rate } = report;
  const silent = (done_reasons.budget + done_reasons.none) / scored;
  const interval = success_ci ? success_ci.map((end) => (100 * end).toFixed(1)).join(" – ") : "–";
  const cells = [`\`${report.rules}\``, scored, percent(success_rate), interval, percent(silent)];
  const more = [
    percent(done_reasons.stuck / scored),
    mean_steps?.toFixed(1),
    percent(invalid_rate),
    percent(repeat_rate),
  ];
  console.log(`| ${[...cells, ...more].join(" | ")} |`);
}
