// Writes docs/reference.md from the schemas, the limits and the command line's own help. Run by `npm run docs`.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { programFor } from "../dist/apps/cli/program.js";
import * as questions from "../dist/gym/data/index.js";
import * as env from "../dist/gym/env/index.js";
import * as sql from "../dist/gym/sql/index.js";
import * as training from "../dist/rl/index.js";

const root = fileURLToPath(new URL("..", import.meta.url));

const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows]
    .map((row) => `| ${row.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");

function typeOf(schema) {
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(", ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.type === "object" ? "record" : [schema.type].flat().join(" or ");
}

function fields(schema) {
  const { properties } = z.toJSONSchema(schema, { io: "input" });
  return Object.entries(properties).map(([name, field]) => [
    `\`${name}\``,
    typeOf(field),
    field.default ?? "",
    field.description ?? "",
  ]);
}

const record = (schema) =>
  table(
    ["field", "type", "meaning"],
    fields(schema).map(([name, type, , meaning]) => [name, type, meaning]),
  );
const config = (schema) =>
  table(
    ["key", "default", "meaning"],
    fields(schema).map(([name, , value, meaning]) => [name, value, meaning]),
  );

/** Comments after the items of an `as const` list, or before constants, read from the source. */
const comments = (file, pattern) =>
  [...readFileSync(`${root}src/${file}`, "utf8").matchAll(pattern)].map((match) =>
    match.slice(1).map((part) => part?.trim() ?? ""),
  );

const LIMIT = /\/\*\* (.+?) \*\/\nexport const (MAX_\w+|INSTRUCTIONS_PER_CHECK|SAMPLE_ROWS|PAGE_CACHE_KIB) = ([^;]+);/g;
const limits = comments("gym/sql/limits.ts", LIMIT).map(([why, name]) => [
  `\`${name}\``,
  Reflect.get(sql, name).toLocaleString("en-US"),
  why,
]);

/** The leaf commands in the order of the help: groups such as `data` are replaced by their sub-commands. */
const leaves = (command) => (command.commands.length ? command.commands.flatMap(leaves) : [command]);

function helpOf(command) {
  let text = "";
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 80 }).outputHelp();
  const name = text.match(/^Usage: (.+?) \[/)[1];
  return `### ${name}\n\n\`\`\`text\n${text.trimEnd()}\n\`\`\``;
}

/** Every setting of a training, next to its default in the first design and in TRL 1.13. */
const settings = Object.entries(z.toJSONSchema(training.configSchema, { io: "input" }).properties).map(
  ([name, { default: ours, design, trl, description }]) => [
    `\`${name}\``,
    name === "reward" ? "see [rewards](#rewards)" : shown(ours),
    shown(design),
    shown(trl),
    description,
  ],
);

function shown(value) {
  if (value === undefined) return "";
  return typeof value === "string" ? value : `\`${JSON.stringify(value)}\``;
}

const presets = training.PRESET_NAMES.map((name) => [
  `\`${name}\``,
  Object.entries(training.presetNamed(name))
    .map(([key, value]) => `${key} ${JSON.stringify(value)}`)
    .join(", "),
  training.PRESET_NOTES[name],
]);

/** Presets of known models on kinds of GPUs, as the estimator sees them. */
const gigabytes = (bytes) => `${(bytes / 1e9).toFixed(1)} GB`;
const cards = training
  .presetTable()
  .map(({ preset, plan }) => [
    `\`${preset}\``,
    plan.gpu,
    plan.precision,
    gigabytes(plan.least),
    plan.refused ? "does not fit" : gigabytes(plan.memory.total),
    plan.refused
      ? ""
      : `about ${plan.step_seconds < 10 ? plan.step_seconds.toFixed(1) : plan.step_seconds.toFixed(0)} s`,
  ]);

const CLASS = /^ {2}"(\w+)",(?: \/\/ (.*))?$/gm;
const errors = [...comments("gym/sql/sql-error.ts", CLASS), ...comments("gym/env/observation.ts", CLASS)].map(
  ([name, meaning]) => [`\`${name}\``, meaning],
);

/** Sub-paths of the package, each with what its index file says of itself and the older names that lead to the same file. */
const { exports: entries } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
const targets = Object.entries(entries).flatMap(([path, { default: file }]) =>
  file ? [[`\`${path.replace(".", "sqlenv")}\``, file]] : [],
);
const subPaths = [...new Set(targets.map(([, file]) => file))].map((file) => {
  const [name, ...older] = targets.filter(([, target]) => target === file).map(([path]) => path);
  const source = file.replace(/^\.\/dist/, `${root}src`).replace(/js$/, "ts");
  return [name, readFileSync(source, "utf8").match(/^\/\/ (.+)/)[1], older.join(", ")];
});

export const reference = `# Reference

Made by \`npm run docs\` from the schemas, the limits and the commands' own help; a test fails when it is out of date.

## Action

${record(env.actionSchema)}

A model writes it as \`ACTION_TYPE: argument\`. Reading is forgiving: letter case, code fences, a \`<think>\` block, several lines of SQL, JSON. What cannot be read becomes a QUERY with the raw text, and is counted.

## Observation

${record(env.observationSchema)}

### reward_breakdown

${record(env.rewardBreakdownSchema)}

### error_class

${table(["class", "meaning"], errors)}

## Rewards

The defaults, each of which \`new SQLEnvironment(data, { rewards: { … } })\` can change:

${config(env.rewardSchema)}

A right answer also pays what is left of \`looking_cap\` (as exec_ok) and of \`progress\`, so that every right episode earns the same before costs. For training, three rewards an episode: correctness (0 or 1), progress (the final Φ, 0 to 1) and operational (exec_ok + new_info + repeat).

## Question

One JSON array a file; \`question_text\`, \`database_name\` and \`gold_sql\` are needed, the rest is derived where it is missing.

${record(questions.questionSchema)}

## Training

Every setting is a key of the YAML file, a flag of \`sqlenv train\` (\`--learning-rate 1e-5\`) and a field of \`resolveConfig({ … })\`. Beside our default stand those of the design the project
was asked from, and of TRL 1.13.

${table(["setting", "default", "first design", "TRL", "meaning"], settings)}

### Presets

${table(["preset", "settings that differ", "what they were tried on"], presets)}

The presets of pretrained models on kinds of GPUs: what they need at least, what they use where there is more (longer batches, more contexts kept), and a step's time. All of it is estimated, memory by
\`sqlenv bench memory\`'s formulas, time from the makers' figures and good to a factor of two; \`--dry-run\` measures a step.

${table(["preset", "card", "precision", "needs", "uses", "a step"], cards)}

### Metrics

Lines of metrics.jsonl; means over the steps since the line before. Reward functions may log more.

${table(
  ["metric", "meaning"],
  Object.entries(training.METRIC_MEANINGS).map(([name, meaning]) => [`\`${name}\``, meaning]),
)}

## Limits

What one statement may use up. Each is an exported constant of \`sqlenv/gym/sql\`.

${table(["constant", "value", "why"], limits)}

A player sees ${env.SHOWN_ROWS} rows of a result and ${env.SHOWN_CELL} characters of a cell, with a notice of what was cut.

Functions a statement may call: ${[...sql.ALLOWED_FUNCTIONS]
  .sort()
  .map((name) => `\`${name}\``)
  .join(", ")}. Date functions refuse \`now\` and time zones.

## Package

\`import … from "sqlenv"\` has the names most programs need. The sub-paths follow the layers and have more; \`/node\` also has what needs Node. Bundlers for browsers get the part of \`sqlenv\` that runs there.

${table(["sub-path", "contents", "older names"], subPaths)}

## Commands

Every command takes \`--json\` where it has a result: one object on stdout, everything else on stderr. Exit codes: 0 done, 1 failed, 2 wrong use, 128 + the number of the signal that interrupted it (130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP).

${leaves(await programFor(["--help"]))
  .map(helpOf)
  .join("\n\n")}
`;

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(`${root}docs/reference.md`, reference);
