// A run in Markdown: the saved model's model card, and a summary for a blog post.
import type { Comparison, EvaluationEpisodes, GoldAnswers, TrainingResult } from "../../rl/run/records.ts";
import { questionMarkdown } from "./comparison.ts";
import {
  behaviourRows,
  behaviourTitle,
  evaluatedRows,
  headline,
  passAtKText,
  verdictText,
  withInterval,
} from "./evaluation-summary.ts";
import { exampleQuestion } from "./example-question.ts";
import { failuresMarkdown } from "./failures.ts";
import { codeSpan, count, duration, escapeMarkdown, settingText } from "./format.ts";
import { inventedNames } from "./invented-names.ts";
import { splitLabel } from "./split-label.ts";
import { accuracyNote, accuracyTable, pairedNote, pairedTable, recipeLines, type StageTable } from "./stages.ts";
import { resultVerdict, verdictLine } from "./verdict-sentence.ts";

export interface ModelCardOptions {
  readonly result: TrainingResult;
  readonly config?: Readonly<Record<string, unknown>> | null;
  /** The model's name in the heading. @default that of the run's folder */
  readonly name?: string;
  /** The base model's name on the Hub. @default model_name if it looks like `org/model` */
  readonly base_model?: string | undefined;
  /** License identifier as on the Hub; omitted unless known. */
  readonly license?: string | undefined;
}

// The settings readers look for first; the rest is in config.yaml.
const SHOWN_SETTINGS = [
  "prompt",
  "shots",
  "questions_path",
  "difficulty_filter",
  "sft_learning_rate",
  "sft_database_share",
  "learning_rate",
  "num_generations",
  "loss_type",
  "beta",
  "temperature",
  "reward_weights",
  "step_budget",
  "error_hints",
  "end_after_failures",
  "answer_last",
  "describe_many",
  "max_new_tokens",
  "max_context_tokens",
  "seed",
];

/**
 * README.md of the saved model, with the Hub's front matter.
 *
 * @example
 * const { result, config } = await readRun("runs/starter");
 * if (result) console.log(modelCard({ result, config, license: "apache-2.0" }));
 */
export function modelCard({
  result,
  config = null,
  name = folderName(result.run),
  base_model,
  license,
}: ModelCardOptions): string {
  const isHubName = /^[\w.-]+\/[\w.-]+$/.test(result.model_name) && !/\.gguf$/i.test(result.model_name);
  const base = base_model ?? (isHubName ? result.model_name : undefined);
  const front = [
    "library_name: transformers",
    "pipeline_tag: text-generation",
    ...(base ? [`base_model: ${JSON.stringify(base)}`] : []),
    ...(license ? [`license: ${JSON.stringify(license)}`] : []),
    "tags:",
    ...["sqlenv", "grpo", "reinforcement-learning", ...(result.environment ? [] : ["text-to-sql"])].map(
      (tag) => `  - ${tag}`,
    ),
  ];
  return `---
${front.join("\n")}
---

# ${escapeMarkdown(name)}

${purpose(result)} Trained from ${codeSpan(result.model_name) || "a fresh model"} with ${methods(result)}reinforcement learning
(GRPO) in SQLEnv: ${count(result.steps, "step")}, ${count(result.episodes, "episode")}, ${duration(result.seconds)}.

## Results

${evaluationTable(result)}

${paragraphs(accuracyMarkdown(result), behaviourTable(result))}${result.pass_at_k ? `\n\nOf the model ${passAtKText(result.pass_at_k)}.` : ""}

## Training

${settingsTable(config)}

${result.environment ? "The reward is the environment's own." : SQL_REWARDS}

## Use
${result.environment ? "" : SQL_USE}
The folder has the layout of Hugging Face transformers:

\`\`\`python
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained(".")
tokenizer = AutoTokenizer.from_pretrained(".")
\`\`\`

It expects the environment's system prompt and observations, one chat turn each, with thinking off${result.prompt ? ` (prompt \`${result.prompt}\`)` : ""}.
`;
}

const SQL_REWARDS =
  "Three rewards per episode: correctness of the answer, progress of the queries toward it, and an operational reward for how it explored.";

const SQL_USE = `
\`\`\`sh
npx sqlenv play --player model --model .    # watch it answer a question
npx sqlenv eval --player model --model .    # measure success, with intervals
\`\`\`
`;

function purpose({ environment }: TrainingResult): string {
  if (environment) return `A language model trained in the environment ${codeSpan(environment.name)}.`;
  return `A language model that answers questions about SQL databases by exploring them: it writes one action per turn, \`DESCRIBE: table\`,
\`SAMPLE: table\`, \`QUERY: select …\`, and ends with \`ANSWER: value\`.`;
}

/**
 * Success of the random baseline, and before and after training, with intervals, as a Markdown table with a line that
 * explains it.
 */
export function evaluationTable(result: TrainingResult): string {
  const evaluated = evaluatedRows(result);
  const rows = evaluated.map(
    (row) =>
      `| ${row.name} | ${[row.random, row.before, row.after].map(withInterval).join(" | ")} | ${verdictText(row)} |`,
  );
  const { environment } = result;
  const isClustered = evaluated.some(({ after }) => after.ci_method === "cluster_t_by_database");
  const unit = environment ? "group" : "database";
  const clustered = isClustered ? ` (on ${splitLabel("unseen", environment)} clustered by ${unit})` : "";
  const explained = environment
    ? "The tasks were not in the training."
    : "Unseen databases were not in the training data at all; seen ones were, with other questions.";
  return [
    "| success on | random | before | after | |",
    "|---|---|---|---|---|",
    ...rows,
    "",
    `Held-out ${environment ? "tasks" : "questions"}; in brackets 95 % intervals${clustered}. ${explained}`,
  ].join("\n");
}

/** Accuracy by stage and the paired tests as Markdown tables, and the data of each stage; empty for results without. */
function accuracyMarkdown(result: TrainingResult): string {
  const [accuracy, paired] = [accuracyTable(result), pairedTable(result, true)];
  if (!accuracy) return "";
  return [
    tableMarkdown(accuracy),
    accuracyNote(result),
    ...(paired ? [tableMarkdown(paired), pairedNote(result)] : []),
    ...(result.sft || result.self_taught
      ? [
          recipeLines(result)
            .map((line) => `- ${line}`)
            .join("\n"),
        ]
      : []),
  ].join("\n\n");
}

function tableMarkdown({ head, rows }: StageTable): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [row(head), row(head.map(() => "---")), ...rows.map(row)].join("\n");
}

/** How the model's behaviour changed, as a Markdown table. */
export function behaviourTable(result: TrainingResult): string {
  const rows = behaviourRows(result);
  if (rows.length === 0) return "";
  const lines = rows.map((cells) => `| ${cells.join(" | ")} |`);
  return [`| ${behaviourTitle(result)}, greedy | random | before | after |`, "|---|---|---|---|", ...lines].join("\n");
}

function settingsTable(config: Readonly<Record<string, unknown>> | null): string {
  const isOff = (value: unknown) => value === undefined || value === null || value === false;
  const isSft = (key: string) => key.startsWith("sft_");
  const known = SHOWN_SETTINGS.filter((key) => !isOff(config?.[key]) && (config?.sft_steps || !isSft(key)));
  if (known.length === 0) return "The settings were not recorded.";
  return [
    "| setting | value |",
    "|---|---|",
    ...known.map((key) => `| ${key} | ${escapeMarkdown(settingText(config![key]))} |`),
  ].join("\n");
}

export interface BlogOptions {
  readonly result: TrainingResult;
  readonly comparison?: Comparison | null;
  /** The last evaluation's episodes, for the list of failures. */
  readonly evaluation?: EvaluationEpisodes | null;
  readonly gold?: GoldAnswers | null;
  /** The run's settings. */
  readonly config?: Readonly<Record<string, unknown>> | null;
  /** Path of the picture as linked in the post. @default "learning_curve.png" */
  readonly picture?: string;
}

/** The skeleton of a post: claim, picture, numbers, an example question, and what still fails. */
export function blogMarkdown({
  result,
  comparison,
  evaluation,
  gold = null,
  config = null,
  picture = "learning_curve.png",
}: BlogOptions): string {
  const example = comparison && exampleQuestion(comparison);
  return [
    `# ${escapeMarkdown(folderName(result.run))}`,
    `**${escapeMarkdown(verdictLine(resultVerdict(result)))}**`,
    sentence(headline(result)),
    `![Reward and success over training steps](${encodeURI(picture)})`,
    evaluationTable(result),
    accuracyMarkdown(result),
    behaviourTable(result),
    `Trained with ${methods(result)}GRPO in SQLEnv from ${codeSpan(result.model_name) || "a fresh model"}: ${count(result.steps, "step")}, ${count(result.episodes, "episode")}, ${duration(result.seconds)}.`,
    ...(example
      ? ["## One question, turn by turn", inventedNames(config), questionMarkdown(example, comparison.players, 3, gold)]
      : []),
    ...(evaluation ? [failuresMarkdown(evaluation, gold)] : []),
  ]
    .filter(Boolean)
    .join("\n\n")
    .concat("\n");
}

/** "SFT, then ": the stages before GRPO. */
function methods({ sft, self_taught = [] }: TrainingResult): string {
  const stages = [
    ...(sft ? ["supervised fine-tuning (SFT)"] : []),
    ...(self_taught.length > 0 ? [count(self_taught.length, "self-taught round")] : []),
  ];
  return stages.map((stage) => `${stage}, then `).join("");
}

function paragraphs(...texts: readonly string[]): string {
  return texts.filter(Boolean).join("\n\n");
}

function folderName(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).at(-1) ?? path;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
