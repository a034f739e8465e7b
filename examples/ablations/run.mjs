// Ablations: the default training with one setting changed at a time, several seeds each, some in parallel.
//
//   node examples/ablations/run.mjs --device cuda --lanes 5 --seeds 1,2,3      (20 s per training on an H200, minutes on a CPU)
//   node examples/ablations/run.mjs --only rewards --max-steps 24
//
// results.md has the table, results.json the numbers, NAME-SEED/ the runs. README.md here describes the results.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: {
    out: { type: "string", default: "runs/ablations" },
    device: { type: "string", default: "auto" },
    seeds: { type: "string", default: "1,2,3" },
    /** Concurrent trainings. */
    lanes: { type: "string", default: "1" },
    /** Only these families, by name. */
    only: { type: "string" },
    "max-steps": { type: "string" },
    /** Steps of each training. */
    threads: { type: "string" },
    /** More flags for all of them, such as "--scale-rewards group". */
    with: { type: "string", default: "" },
    "eval-episodes": { type: "string", default: "192" },
    /** No training starts after this many seconds. */
    seconds: { type: "string", default: "1000000" },
  },
});
const stepCost = fileURLToPath(new URL("step-cost.mjs", import.meta.url));
const cli = fileURLToPath(new URL("../../dist/apps/cli/main.js", import.meta.url));

/** Families of settings; all of them have 64 episodes per step. */
const FAMILIES = {
  preset: { preset: [] },
  rewards: {
    "correctness only": ["--reward-weights", "1,0,0"],
    "correctness and progress": ["--reward-weights", "1,0.15,0"],
    "each action costs 0.5": ["--reward-funcs", stepCost, "--reward-weights", "1,0.15,1,1"],
  },
  generations: {
    "groups of 2": ["--num-generations", "2"],
    "groups of 4": ["--num-generations", "4"],
    "groups of 16": ["--num-generations", "16"],
  },
  losses: {
    grpo: ["--loss-type", "grpo"],
    "dr_grpo, unscaled": ["--loss-type", "dr_grpo", "--scale-rewards", "none"],
    "dapo, scaled by the group": ["--scale-rewards", "group"],
    bnpo: ["--loss-type", "bnpo"],
    cispo: ["--loss-type", "cispo", "--epsilon-high", "5"],
    "sequence ratios (GSPO)": ["--importance-sampling-level", "sequence"],
    "KL term 0.04": ["--beta", "0.04"],
  },
};

/** Results of other kinds are left alone. */
const kind = `${options["max-steps"] ?? "all"} steps ${options.with}`.trim();
const started = Date.now();
const passed = () => (Date.now() - started) / 1000;
mkdirSync(options.out, { recursive: true });
const families = Object.entries(FAMILIES).filter(([name]) => !options.only || options.only.split(",").includes(name));
// Seed by seed, so that an interrupted run has results for every setting.
const jobs = options.seeds
  .split(",")
  .flatMap((seed) =>
    families.flatMap(([family, settings]) =>
      Object.entries(settings).map(([name, flags]) => ({ family, name, seed, flags })),
    ),
  );

/** Runs one training; its output goes to files next to its folder. */
function train({ name, seed, flags }) {
  const folder = join(options.out, `${name.toLowerCase().replaceAll(/[^a-z0-9_]+/g, "-")}-${seed}`);
  const args = [
    ...["train", "--seed", seed, "--output-dir", folder, "--device", options.device, "--json"],
    ...["--eval-steps", "0", "--save-steps", "1000", "--comparison-episodes", "4"],
    ...["--final-eval-episodes", options["eval-episodes"]],
    ...(options.threads ? ["--threads", options.threads] : []),
    ...(options["max-steps"] ? ["--max-steps", options["max-steps"]] : []),
    ...options.with.split(" ").filter(Boolean),
    ...flags,
  ];
  return new Promise((resolve) => {
    rmSync(folder, { recursive: true, force: true }); // what an interrupted training left
    const child = spawn(process.execPath, [cli, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let [out, errors] = ["", ""];
    child.stdout.on("data", (text) => {
      out += text;
    });
    child.stderr.on("data", (text) => {
      errors += text;
    });
    child.on("close", (status) => {
      if (status !== 0) {
        writeFileSync(`${folder}.err`, errors);
        console.error(`${name}, seed ${seed}: ended with ${status}: ${errors.trim().split("\n").at(-1)}`);
        return resolve(null);
      }
      resolve(summary(JSON.parse(out), folder));
    });
  });
}

/** The summary of a training: success on unseen databases, and the rise of the reward. */
function summary({ before, after, seconds }, folder) {
  const metrics = readFileSync(join(folder, "metrics.jsonl"), "utf8").trim().split("\n").map(JSON.parse);
  return {
    seconds,
    before: { greedy: before.unseen.greedy.success_rate, sampled: before.unseen.sampled.success_rate },
    after: { greedy: after.unseen.greedy.success_rate, sampled: after.unseen.sampled.success_rate },
    right: metrics.flatMap((row) => row["rewards/reward_correctness/mean"] ?? []),
  };
}

const results = existsSync(join(options.out, "results.json"))
  ? JSON.parse(readFileSync(join(options.out, "results.json"), "utf8"))
  : [];
const percent = (rate) => `${(100 * rate).toFixed(1)} %`;

function keep() {
  writeFileSync(join(options.out, "results.json"), `${JSON.stringify(results, null, 1)}\n`);
  const rows = families.flatMap(([, settings]) =>
    Object.keys(settings).flatMap((name) => {
      const runs = results.filter((run) => run.name === name && run.kind === kind);
      if (runs.length === 0) return [];
      const mean = (of) => runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
      const all = (of) => `${percent(mean(of))} (${runs.map((run) => (100 * of(run)).toFixed(0)).join(", ")})`;
      return `| ${name} | ${all((run) => run.after.greedy)} | ${all((run) => run.after.sampled)} |`;
    }),
  );
  const head = "| setting | unseen, greedy: mean (each seed) | unseen, sampled |\n|---|---|---|\n";
  writeFileSync(join(options.out, "results.md"), `${head}${rows.join("\n")}\n`);
}

async function lane() {
  for (let job = jobs.shift(); job && passed() < Number(options.seconds); job = jobs.shift()) {
    const { family, name, seed } = job;
    if (results.some((run) => run.name === name && run.seed === seed && run.kind === kind)) continue; // done before
    const result = await train(job);
    if (!result) continue;
    results.push({ family, name, seed, kind, ...result });
    keep();
    const { greedy, sampled } = result.after;
    console.log(
      `[${passed().toFixed(0)} s] ${name}, seed ${seed}: greedy ${percent(greedy)}, sampled ${percent(sampled)}`,
    );
  }
}

await Promise.all(Array.from({ length: Number(options.lanes) }, lane));
if (existsSync(join(options.out, "results.md"))) console.log(readFileSync(join(options.out, "results.md"), "utf8"));
