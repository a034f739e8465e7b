// Makes the default training once and, from that one run, everything the documents show of it: docs/results/starter.json
// (figures, wrong answers), the table of wrong answers in docs/results.md, the learning curve, the behaviour chart, the film, an episode and a group. `npm run screenshots` takes the pages' pictures of it.
//   npm run -s build && node scripts/kept-run.mjs [--from RUN]      --from draws again from a run made this way
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundledDataSet, evaluate, loadSqlite, presetNamed, runTraining } from "sqlenv";
import { behaviourChart, readEpisodes, readRun, trainingReport } from "sqlenv/apps/reports/node";
import { resolveConfig, sqlPlayer } from "sqlenv/rl";
import { withFailures, wrongAnswers } from "./failures.mjs";
import { episodeStrip } from "./pictures/episode.mjs";
import { film } from "./pictures/film.mjs";
import { groupPicture } from "./pictures/group.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const docs = (file) => join(root, "docs", file);

/** A group with right and wrong episodes whose question has plain words. */
const SHOWN_GROUP = { step: 6, group: 7 };

/** Steps at which the model also plays real-word questions, for the film. */
const PROBED = [0, 3, 6, 10, 40];

const { values } = parseArgs({ options: { from: { type: "string" } } });
const run = values.from ?? join(root, "runs/starter");
if (!values.from) await train();
await draw();

async function train() {
  if (existsSync(run)) rmSync(run, { recursive: true }); // this run is replaced on purpose
  await loadSqlite();
  const data = bundledDataSet();
  const preset = presetNamed("starter");
  const config = resolveConfig(preset);
  const trained = new Set(data.questions.filter(({ split }) => split === "train").map((q) => q.database_name));
  const unseen = [...new Set(data.questions.map((q) => q.database_name))].filter((name) => !trained.has(name));
  const probes = [];
  let model;
  const probe = async ({ state: { step } }) => {
    if (!PROBED.includes(step)) return;
    const episodes = [];
    await evaluate(data, sqlPlayer(model, "greedy", config), {
      databases: unseen,
      difficulty: ["easy"],
      step_budget: config.step_budget,
      concurrency: 64,
      onEpisode: (record) => episodes.push(record),
    });
    probes.push({ step, episodes });
    console.log(
      `step ${step}: ${episodes.filter(({ correctness }) => correctness === 1).length} of ${episodes.length} bundled questions right`,
    );
  };
  await runTraining({
    config: { ...preset, output_dir: run },
    report: trainingReport,
    onModel: (loaded) => {
      model = loaded;
    },
    callbacks: [{ on_train_begin: probe, on_step_end: probe }],
  });
  writeFileSync(join(run, "probes.json"), JSON.stringify(probes));
}

async function draw() {
  const { metrics, habits, result, evaluation: played, gold } = await readRun(run);
  const probes = JSON.parse(readFileSync(join(run, "probes.json"), "utf8"));
  const cell = ({ episodes, success_rate, success_ci, mean_steps, behaviour }) => ({
    episodes,
    success_rate,
    success_ci,
    mean_steps,
    behaviour,
  });
  const evaluation = ({ unseen, seen }) => ({
    unseen: { greedy: cell(unseen.greedy), sampled: cell(unseen.sampled) },
    seen: { greedy: cell(seen.greedy), sampled: cell(seen.sampled) },
  });
  const kept = {
    format: "sqlenv-starter-1",
    command: "npm run train",
    machine: `${cpus().length} cores, ${cpus()[0].model}`,
    seconds: Math.round(result.seconds),
    steps: result.steps,
    episodes: result.episodes,
    tokens: result.tokens,
    random: evaluation(result.random),
    before: evaluation(result.before),
    after: evaluation(result.after),
    paired: result.paired.filter(({ mark }) => mark === "answer"),
    evaluations: metrics
      .filter((line) => line["eval_unseen/greedy/success_rate"] !== undefined)
      .map((line) => ({
        step: line.step,
        questions: line["eval_unseen/greedy/episodes"],
        unseen: line["eval_unseen/greedy/success_rate"],
      })),
    behaviour: [habits[0], habits.at(-1)],
    probes: probes.map(({ step, episodes }) => ({
      step,
      questions: episodes.length,
      right: episodes.filter(({ correctness }) => correctness === 1).length,
    })),
    failures: wrongAnswers(played.after, gold),
  };
  writeFileSync(docs("results/starter.json"), `${JSON.stringify(kept, null, 1)}\n`);
  writeFileSync(docs("results.md"), withFailures(readFileSync(docs("results.md"), "utf8"), kept.failures));
  writeFileSync(docs("learning_curve.svg"), readFileSync(join(run, "learning_curve.svg")));
  writeFileSync(docs("images/behaviour.svg"), behaviourChart(habits, { title: "What the model does while it learns" }));
  writeFileSync(docs("images/film.svg"), film(probes, kept.evaluations, habits));
  const group = [];
  for await (const episode of readEpisodes(run))
    if (episode.step === SHOWN_GROUP.step && episode.group === SHOWN_GROUP.group) group.push(episode);
  writeFileSync(docs("images/group.svg"), groupPicture(group));
  const shown = probes.at(-1).episodes.find(({ correctness, steps }) => correctness === 1 && steps.length === 3);
  writeFileSync(docs("images/episode.svg"), episodeStrip(shown));
}
