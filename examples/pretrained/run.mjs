// A pretrained model end to end, with the package's own commands: baseline, SFT, GRPO, and evaluations of each.
//
//   node examples/pretrained/run.mjs --model FOLDER --out runs/pretrained --way full --minutes 9
//
// The number of steps is chosen from the time of the first few, so that everything ends within the given minutes. README.md here says more.
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const FORMER = { "--warmup-steps": "--sft-steps", "--shown": "--player", "--shown-share": "--player-share" };

const { values: options } = parseArgs({
  args: process.argv.slice(2).map((arg) => FORMER[arg] ?? arg),
  options: {
    model: { type: "string" },
    out: { type: "string", default: "runs/pretrained" },
    /** full: all weights are trained; lora: adapters. */
    way: { type: "string", default: "full" },
    minutes: { type: "string", default: "9" },
    /** Steps of SFT and of GRPO per seed; by default what fits into the minutes. */
    "sft-steps": { type: "string" },
    "grpo-steps": { type: "string" },
    device: { type: "string", default: "auto" },
    /** An imported data set with its own evaluation databases, such as spider. */
    data: { type: "string" },
    /** The player that demonstrates on training databases, and the share of its episodes in SFT; the others are on practice worlds. */
    player: { type: "string", default: "teacher" },
    "player-share": { type: "string", default: "0.3" },
    seeds: { type: "string", default: "1,2,3,4,5" },
    /** Threads that play the demonstrations. */
    workers: { type: "string", default: String(Math.max(1, Math.min(13, availableParallelism() - 2))) },
    /** Everything in miniature, to test the script. */
    tiny: { type: "boolean", default: false },
  },
});
const { model, out, way, device, data, tiny } = options;
if (!model || !["full", "lora"].includes(way)) throw new Error("give --model FOLDER, and --way full or lora");
const isLora = way === "lora";
const started = Date.now();
const total = 60 * Number(options.minutes);
const left = () => total - (Date.now() - started) / 1000;
const cli = fileURLToPath(new URL("../../dist/apps/cli/main.js", import.meta.url));
const mixture = fileURLToPath(new URL("mixture.yaml", import.meta.url));
mkdirSync(out, { recursive: true });
const log = (line) => {
  const text = `[${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s] ${line}`;
  console.log(text);
  appendFileSync(join(out, "log.txt"), `${text}\n`);
};

/** Runs a command; returns its JSON, or null if it failed. Its messages go to a file. */
function sqlenv(name, ...args) {
  log(`sqlenv ${args.join(" ")}`);
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args, "--json"], {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
    ...(options["sft-steps"] ? {} : { timeout: Math.round(1000 * Math.max(10, left() + 20)) }),
  });
  writeFileSync(join(out, `${name}.err`), stderr);
  if (status !== 0) {
    log(`${name} ended with ${status}: ${stderr.trim().split("\n").at(-1)}`);
    return null;
  }
  writeFileSync(join(out, `${name}.json`), stdout);
  return JSON.parse(stdout);
}

const percent = (rate) => (rate === null || rate === undefined ? "–" : `${(100 * rate).toFixed(1)} %`);
const interval = ({ success_rate, success_ci }) =>
  `${percent(success_rate)}${success_ci ? ` (${success_ci.map((x) => (100 * x).toFixed(0)).join(" – ")})` : ""}`;
const results = { model, way, evaluations: {}, trainings: [] };
const keep = () => writeFileSync(join(out, "results.json"), JSON.stringify(results, null, 1));

/** Plays evaluation questions, greedily or several times. */
function evaluate(name, folder, { set = "bundled", samples = 1, questions } = {}) {
  const turn = name.startsWith("baseline") ? 64 : 192; // an untrained model rarely stops by itself
  const report = sqlenv(
    name,
    ...["eval", "--player", "model", "--model", folder, "--device", device, "--data", set, "--concurrency", "128"],
    ...["--temperature", samples > 1 ? "1" : "0", "--max-new-tokens", String(turn), "--tries", String(samples)],
    ...(tiny ? ["--questions", "4", "--step-budget", "3"] : []),
    ...(questions && !tiny ? ["--questions", String(questions)] : []),
    ...(samples === 1 ? ["--out", join(out, `${name}.jsonl`)] : []),
  );
  if (!report) return;
  const { seen, unseen, by_difficulty, tries, parse_failure_rate, episodes } = report;
  results.evaluations[name] = { set, tries, seen, unseen, by_difficulty, parse_failure_rate, episodes };
  keep();
  const pass =
    tries > 1 ? `, pass@${tries} seen ${percent(seen.solved_in_tries)}, unseen ${percent(unseen.solved_in_tries)}` : "";
  const hard = Object.entries(by_difficulty).map(([kind, summary]) => `${kind} ${percent(summary.success_rate)}`);
  log(
    `=> ${name}: seen ${interval(seen)}, unseen ${interval(unseen)}; ${hard.join(", ")}; understood ${percent(1 - parse_failure_rate)}${pass}`,
  );
}

/** Episodes of the demonstrating player on all training questions, as transcripts. */
function demonstrations() {
  const file = join(out, "taught.jsonl");
  const parts = ["bundled", ...(data ? [data] : [])].map((set) => {
    const part = join(out, `taught-${set}.jsonl`);
    const limit = tiny ? ["--episodes", "20"] : [];
    sqlenv(
      `taught-${set}`,
      "eval",
      "--player",
      options.player,
      "--data",
      set,
      "--split",
      "train",
      "--out",
      part,
      ...limit,
    );
    return readFileSync(part, "utf8");
  });
  writeFileSync(file, parts.join(""));
  return file;
}

/** SFT on practice worlds and on training databases. */
function sft(name, steps, transcripts) {
  const report = sqlenv(
    name,
    ...["sft", "--model", model, "--out", join(out, name), "--mixture", mixture, "--device", device],
    ...["--workers", tiny ? "1" : options.workers, "--steps", String(steps), "--max-context-tokens", "1536"],
    ...["--batch-tokens", tiny ? "2000" : "16384", "--learning-rate", isLora ? "1e-3" : "5e-4"],
    ...["--transcripts", transcripts, "--transcripts-share", options["player-share"]],
    ...(isLora ? ["--use-peft", "--lora-r", "64", "--lora-alpha", "128"] : []),
  );
  if (report)
    log(`=> ${name}: ${report.tokens} tokens in ${report.seconds.toFixed(0)} s, loss ${report.last_loss.toFixed(4)}`);
  return report;
}

const grpo = (folder, seed) => [
  ...["train", "--preset", "none", "--model-name", folder, "--questions-path", "bundled", "--device", device],
  ...[
    "--difficulty-filter",
    "easy,medium",
    "--reward-weights",
    "1,0.15,1",
    "--seed",
    String(seed),
    "--num-train-epochs",
    "100",
  ],
  ...["--per-device-train-batch-size", tiny ? "8" : "256", "--gradient-accumulation-steps", "1"],
  ...["--num-generations", tiny ? "4" : "8", "--max-new-tokens", "192", "--max-completion-length", "800"],
  ...["--max-context-tokens", "2048", "--learning-rate", isLora ? "4e-4" : "1.5e-4", "--lr-scheduler-type", "linear"],
  ...["--logging-steps", "1", "--eval-steps", "0", "--save-steps", "1000", "--comparison-episodes", "8"],
  ...(isLora ? ["--use-peft", "true", "--lora-r", "64", "--lora-alpha", "128"] : []),
  ...(tiny ? ["--step-budget", "3", "--final-eval-episodes", "2", "--max-new-tokens", "16"] : []),
];

function train(folder, seed, seconds, stepTime) {
  const fits = tiny ? 2 : Math.max(5, Math.min(120, Math.floor(seconds / stepTime)));
  const steps = Number(options["grpo-steps"] ?? fits);
  const run = join(out, `grpo-${seed}`);
  const result = sqlenv(`grpo-${seed}`, ...grpo(folder, seed), "--max-steps", String(steps), "--output-dir", run);
  if (!result) return null;
  const { before, after, random, seconds: spent } = result;
  results.trainings.push({ seed, steps, seconds: spent, random, before, after });
  keep();
  const line = (place) =>
    ["greedy", "sampled"].map((how) => `${how} ${interval(before[place][how])} → ${interval(after[place][how])}`);
  log(
    `=> seed ${seed}, ${steps} steps in ${spent.toFixed(0)} s: seen ${line("seen").join(", ")}; unseen ${line("unseen").join(", ")}`,
  );
  return join(run, "model");
}

log(`${model}, ${way}, ${options.minutes} minutes`);
evaluate("baseline", model);
const transcripts = demonstrations();
/** SFT steps that take a third of the time, extrapolated from a few. */
function fittingSteps() {
  const probe = sft("probe", tiny ? 2 : 100, transcripts);
  if (!probe) process.exit(1);
  const rate = probe.steps / Math.max(1, probe.seconds - 4); // without the seconds of starting
  return tiny ? 3 : Math.floor(rate * 0.33 * total);
}
const steps = Number(options["sft-steps"] ?? fittingSteps());
if (!sft("sft", steps, transcripts)) process.exit(1);
const tuned = join(out, "sft");
evaluate("sft", tuned);
if (data) evaluate("sft-data", tuned, { set: data });

const dry = sqlenv("dry", ...grpo(tuned, 0), "--max-steps", "4", "--dry-run");
const stepTime = (dry?.step_time ?? 5) * 0.8; // the first is slower
const seeds = options.seeds.split(",");
const first = train(tuned, seeds[0], Math.min(0.25 * total, left() - 90), stepTime);
if (first) {
  evaluate("trained", first);
  if (data) evaluate("trained-data", first, { set: data });
  evaluate("trained-8", first, { samples: 8 });
  if (left() > 60 || tiny) evaluate("sft-8", tuned, { samples: 8 });
  if (data && left() > 60) evaluate("trained-data-8", first, { set: data, samples: 8, questions: 300 });
}
for (const seed of seeds.slice(1)) {
  const took = results.trainings.at(-1)?.seconds ?? 100;
  if (tiny || left() < 1.15 * took + 5) break;
  train(tuned, seed, results.trainings[0].steps * stepTime, stepTime);
}
keep();

const table = [
  "| | seen databases | unseen databases | easy | medium | hard | understood |",
  "|---|---|---|---|---|---|---|",
  ...Object.entries(results.evaluations).flatMap(
    ([name, { seen, unseen, by_difficulty: by, parse_failure_rate, tries }]) => [
      `| ${name} | ${interval(seen)} | ${interval(unseen)} | ${percent(by.easy.success_rate)} | ${percent(by.medium.success_rate)} | ${percent(by.hard.success_rate)} | ${percent(1 - parse_failure_rate)} |`,
      ...(tries > 1
        ? [
            `| ${name}, pass@${tries} | ${percent(seen.solved_in_tries)} | ${percent(unseen.solved_in_tries)} | ${percent(by.easy.solved_in_tries)} | ${percent(by.medium.solved_in_tries)} | ${percent(by.hard.solved_in_tries)} | |`,
          ]
        : []),
    ],
  ),
  "",
  "| seed | steps | seconds | seen greedy | seen sampled | unseen greedy | unseen sampled |",
  "|---|---|---|---|---|---|---|",
  ...results.trainings.map(({ seed, steps: n, seconds, before, after }) => {
    const cell = (place, how) => `${percent(before[place][how].success_rate)} → ${interval(after[place][how])}`;
    return `| ${seed} | ${n} | ${seconds.toFixed(0)} | ${cell("seen", "greedy")} | ${cell("seen", "sampled")} | ${cell("unseen", "greedy")} | ${cell("unseen", "sampled")} |`;
  }),
].join("\n");
writeFileSync(join(out, "results.md"), `${table}\n`);
log(`\n${table}`);
if (existsSync(join(out, "trained.jsonl"))) {
  const lines = readFileSync(join(out, "trained.jsonl"), "utf8").trim().split("\n");
  writeFileSync(join(out, "transcripts.jsonl"), `${lines.slice(0, 24).join("\n")}\n`); // some to read
}
