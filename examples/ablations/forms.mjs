// A model's success by question form: on held-out practice worlds, each question played several times.
//
//   node examples/ablations/forms.mjs --model runs/starter/model --tries 8 --forms count,list_both
import { parseArgs } from "node:util";
import { DatabasePool, evaluate, loadModelAndTokenizer, loadSqlite, modelPlayer, practiceWorlds } from "sqlenv";

const { values: options } = parseArgs({
  options: {
    model: { type: "string", default: "starter" },
    device: { type: "string", default: "auto" },
    worlds: { type: "string", default: "60" },
    /** 1: greedy; more: sampled. */
    tries: { type: "string", default: "1" },
    forms: { type: "string" },
    difficulties: { type: "string", default: "easy,medium" },
    "step-budget": { type: "string", default: "8" },
    json: { type: "boolean", default: false },
  },
});
await loadSqlite();
const tries = Number(options.tries);
const formOf = new Map();
const files = new Map();
const questions = [];
for (const { spec, bytes, questions: asked } of practiceWorlds({
  seed: "forms",
  worlds: Number(options.worlds),
  questionsPerWorld: 12,
  difficulties: options.difficulties.split(","),
  forms: options.forms?.split(","),
})) {
  files.set(spec.name, bytes);
  for (const { record, form } of asked) {
    questions.push({ ...record, split: "eval" });
    formOf.set(record.question_id, form);
  }
}
const databases = new DatabasePool({ names: [...files.keys()], read: (name) => files.get(name) });
const data = { name: "practice by form", questions, databases, rejected: [] };
const { engine, turns, tokenizer } = await loadModelAndTokenizer(options.model, {
  device: options.device,
  trains: false,
});
const decode = (ids) => tokenizer.decode(ids, { skipSpecial: true });
const temperature = tries > 1 ? 1 : 0;
const player = modelPlayer({ engine, turns, decode, max_new_tokens: 128, max_context_tokens: 1280, temperature });

/** Per question: attempts, and how many were right. */
const tally = new Map(questions.map(({ question_id }) => [question_id, { episodes: 0, right: 0 }]));
const onEpisode = ({ question_id, correctness }) => {
  const counts = tally.get(question_id);
  counts.episodes++;
  if (correctness === 1) counts.right++;
};
const step_budget = Number(options["step-budget"]);
await evaluate(data, player, { split: "eval", concurrency: 64, step_budget, seed: 1, tries, onEpisode });
await engine.close();

/** Success over some of the questions. */
function row(form, some) {
  const counts = some.map(({ question_id }) => tally.get(question_id));
  const sum = (of) => counts.reduce((total, count) => total + of(count), 0);
  const rate = sum(({ right }) => right) / sum(({ episodes }) => episodes);
  return { form, questions: some.length, rate, in_tries: sum(({ right }) => (right > 0 ? 1 : 0)) / some.length };
}
const isAlone = ({ tables_involved }) => tables_involved.length === 1;
const rows = [...new Set(formOf.values())].map((form) =>
  row(
    form,
    questions.filter(({ question_id }) => formOf.get(question_id) === form),
  ),
);
rows.sort((a, b) => b.rate - a.rate || b.in_tries - a.in_tries);
const several = questions.filter((question) => !isAlone(question));
rows.unshift(row("about one table", questions.filter(isAlone)));
if (several.length > 0) rows.splice(1, 0, row("about several tables", several));
if (options.json) console.log(JSON.stringify(rows));
else {
  const percent = (rate) => `${(100 * rate).toFixed(0)} %`;
  console.log(
    `| form | questions | right |${tries > 1 ? ` in ${tries} tries |` : ""}\n|---|---|---|${tries > 1 ? "---|" : ""}`,
  );
  for (const { form, questions: count, rate, in_tries } of rows)
    console.log(`| ${form} | ${count} | ${percent(rate)} |${tries > 1 ? ` ${percent(in_tries)} |` : ""}`);
}
