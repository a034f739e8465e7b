// Reduces a finished run to one small JSON file for docs/results: its command, stages, paired tests, curve and every
// question's outcome, and no text of the data set.
//   node scripts/keep-result.mjs RUN OUT.json --model "SmolLM2-135M-Instruct (Q4_1)" --device "NVIDIA H200" --command "sqlenv train …"
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const STEPS_PER_POINT = 20;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { model: { type: "string" }, device: { type: "string" }, command: { type: "string" } },
});
const [run, out] = positionals;
if (!run || !out || !values.model || !values.device || !values.command) {
  console.error("usage: keep-result.mjs RUN OUT.json --model NAME --device NAME --command TEXT");
  process.exit(2);
}

const json = (file) => JSON.parse(readFileSync(join(run, file), "utf8"));
const lines = (file) =>
  readFileSync(join(run, file), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const rounded = (value, digits = 4) => (typeof value === "number" ? Number(value.toFixed(digits)) : value);

const result = json("results.json");
const { model_name: _, data: __, ...outcomes } = json("outcomes.json");
const metrics = lines("metrics.jsonl");
const steps = metrics.filter((line) => line["rewards/reward_correctness/mean"] !== undefined);

/** Means of `STEPS_PER_POINT` steps: sampled training episodes, by the last step. */
const curve = Array.from({ length: Math.floor(steps.length / STEPS_PER_POINT) }, (_, i) => {
  const some = steps.slice(i * STEPS_PER_POINT, (i + 1) * STEPS_PER_POINT);
  const mean = (name) => rounded(some.reduce((sum, line) => sum + (line[name] ?? 0), 0) / some.length);
  return {
    step: some.at(-1).step,
    right: mean("rewards/reward_correctness/mean"),
    reward: mean("reward"),
    entropy: mean("entropy"),
    zero_std: mean("frac_reward_zero_std"),
    actions: mean("actions/per_episode"),
  };
});
const evaluations = metrics.flatMap((line) =>
  line["eval_unseen/greedy/success_rate"] === undefined
    ? []
    : [
        {
          step: line.step,
          questions: line["eval_unseen/greedy/episodes"],
          greedy: rounded(line["eval_unseen/greedy/success_rate"]),
        },
      ],
);
const unseen = ([stage, { unseen }]) => {
  const score = ({ right, rate, ci }) => ({ right, rate: rounded(rate), ci: ci.map((bound) => rounded(bound)) });
  return [
    stage,
    {
      questions: unseen.questions,
      answer: score(unseen.answer),
      spider: score(unseen.spider),
      bird: score(unseen.bird),
      steps: rounded(result[stage].unseen.greedy.mean_steps, 2),
      repeats: rounded(result[stage].unseen.greedy.behaviour.repeats, 2),
    },
  ];
};
const part = ({ databases, questions, ids_sha256 }) => ({ databases: databases.length, questions, ids_sha256 });

const kept = {
  format: "sqlenv-result-1",
  command: values.command,
  model: values.model,
  device: values.device,
  seed: outcomes.seed,
  seconds: Math.round(result.seconds),
  steps: result.steps,
  episodes: result.episodes,
  tokens: result.tokens,
  sft: result.sft && {
    steps: result.sft.steps,
    tokens: result.sft.tokens,
    episodes: result.sft.transcripts,
    last_loss: rounded(result.sft.last_loss),
    seconds: Math.round(result.sft.seconds),
  },
  split: { sft: part(result.split.sft), grpo: part(result.split.grpo), eval: part(result.split.eval) },
  pass_at_k: result.pass_at_k ?? result.reach ?? null,
  accuracy: Object.fromEntries(Object.entries(result.accuracy).map(unseen)),
  paired: result.paired.filter(({ place }) => place === "unseen"),
  curve,
  evaluations,
  outcomes,
};
writeFileSync(out, `${JSON.stringify(kept)}\n`);
console.log(`wrote ${out}`);
