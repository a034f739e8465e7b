// `sqlenv ask`: answers questions about a database of one's own with a model, and says when it is unsure. Nothing is
// written.
import { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import { type AskedAnswer, askQuestion, checkQuestion, MIN_AGREEMENT } from "../../../gym/ask/index.ts";
import { rulesId } from "../../../gym/env/index.ts";
import { MODEL_SOURCES } from "../options/common.ts";
import { addPlayerOptions } from "../options/player.ts";
import { addRulesOptions } from "../options/rules.ts";
import { FAILED } from "../terminal/error-line.ts";
import { untilInterrupted } from "../terminal/interrupt.ts";
import { countFromOne, type Output, output, printable, wholeNumber } from "../terminal/output.ts";
import { chooseModels } from "./ask-choice.ts";
import { type AskedDatabase, openAskedDatabase } from "./ask-data.ts";
import { askLines } from "./ask-lines.ts";
import { ASK_PLAYERS, type AskModel, type AskModelFlags, loadAskModel } from "./ask-model.ts";
import { drawAnswer, drawStep, drawTrust } from "./ask-screen.ts";

interface AskFlags extends AskModelFlags {
  readonly data: string;
  readonly dbDir?: string;
  readonly database?: string;
  readonly minAgreement: number;
  readonly seed: number;
  readonly json?: boolean;
}

/** The `ask` command. */
export function askCommand(): Command {
  const command = new Command("ask")
    .description("answer questions about your database with a model, and show the SQL of each answer")
    .argument(
      "[question...]",
      "the question; without one, questions are read from the terminal or from stdin, one per line",
    )
    .requiredOption(
      "--data <source>",
      "a SQLite file, a CSV file or a folder of them, or any data set; it is only read",
    )
    .option("--db-dir <folder>", "databases of a question file (default: databases/ near it)")
    .option("--database <name>", "database to ask about, if the data has several")
    .option("--player <name>", `player: ${ASK_PLAYERS.join(", ")} (default: model; with --base-url: chat)`)
    .option(
      "--samples <number>",
      "sampled episodes, whose answers are compared with the greedy one's (default: 5; scripted players: 0)",
      sampleCount,
    )
    .option(
      "--min-agreement <share>",
      "minimum share of samples that agree; with fewer, the answer is unsure",
      share,
      MIN_AGREEMENT,
    )
    .option(
      "--step-budget <number>",
      "actions per question (default: as the model was trained, else 10)",
      countFromOne("--step-budget"),
    )
    .option("--seed <number>", "seed of the samples", wholeNumber("--seed"), 0)
    .option("--json", "print one JSON object per question");
  addPlayerOptions(command, {
    model: `a run's folder, ${MODEL_SOURCES} (default: the newest run in runs/ that was trained on this database, else a pretrained model in the Hub's cache)`,
    temperature: {
      description: "temperature of the samples (default: the training's, else 0.7); the answer is greedy",
    },
    prompt: "instruct with 3 examples",
  });
  return addRulesOptions(command).action(run);
}

function share(value: string): number {
  const number = Number(value);
  if (value.trim() !== "" && number >= 0 && number <= 1) return number;
  throw new UsageError({ what: "--min-agreement takes a share from 0 to 1", value, remedy: "for example 0.6" });
}

async function run(words: readonly string[], flags: AskFlags): Promise<void> {
  const out = output(flags);
  if (words.length > 0) checkQuestion(words.join(" "));
  out.progress(`reading ${flags.data}`);
  const asked = await openAskedDatabase(flags).finally(() => out.endProgress());
  try {
    out.progress("loading the model");
    const { choice, ...model } = await loadAskModel(flags, () => chooseModels(asked)).finally(() => out.endProgress());
    if (choice) process.stderr.write(`model: ${printable(`${choice.model} (${choice.reason})`)}\n`);
    try {
      const ask = (question: string, signal: AbortSignal) => askOne(question, asked, model, flags, out, signal);
      if (words.length > 0) await untilInterrupted((signal) => ask(words.join(" "), signal));
      else await askLines(ask, asked, model, out);
    } finally {
      await model.close();
    }
  } finally {
    asked.databases.close();
  }
}

const MAX_SAMPLES = 32; // they are played at the same time

function sampleCount(value: string): number {
  const number = wholeNumber("--samples")(value);
  if (number <= MAX_SAMPLES) return number;
  throw new UsageError({ what: `--samples takes at most ${MAX_SAMPLES}`, value });
}

/** Asks one question and prints everything about it; without an answer, the process will exit with FAILED. */
async function askOne(
  question: string,
  { databases, name }: AskedDatabase,
  { player, sampler, ...model }: AskModel,
  { seed, minAgreement }: AskFlags,
  out: Output,
  signal: AbortSignal,
): Promise<void> {
  const { samples, rules, step_budget } = model;
  const sampling = (done: number) =>
    samples > 0 && out.progress(`asking ${samples} more ${samples === 1 ? "time" : "times"}, to compare: ${done} done`);
  const asking = { databases, database: name, player, sampler, samples, minAgreement, step_budget, rules, seed };
  const told = await askQuestion({
    ...asking,
    question,
    signal,
    onStart: () => out.progress("thinking"),
    onStep: (step) => {
      const { action, observation } = step;
      const isAnswer = action.action_type === "ANSWER" && observation.done && observation.error === null;
      if (!isAnswer) out.data(drawStep(step));
      if (!observation.done) out.progress("thinking");
    },
    onAnswer: (given) => {
      out.data(`\n${drawAnswer(given)}`);
      sampling(0);
    },
    onSample: sampling,
  }).finally(() => out.endProgress());
  const trust = drawTrust(told);
  if (trust !== "") out.data(trust);
  out.result(recordOf(told, model, player.prompt_id));
  if (told.answer === null) process.exitCode = FAILED;
}

/** The answer as --json prints it. */
function recordOf(
  { steps, result, ...told }: AskedAnswer,
  { name, rules, step_budget }: Pick<AskModel, "name" | "rules" | "step_budget">,
  prompt: string | undefined,
) {
  const { question, database, answer, sql, unsure, agreement, samples, answers, support, done_reason } = told;
  const plain = (cell: unknown) =>
    typeof cell === "bigint" || cell === Infinity || cell === -Infinity ? String(cell) : cell;
  return {
    question,
    database,
    answer,
    sql,
    result: result && {
      columns: result.columns,
      rows: result.rows.map((row) => row.map(plain)),
      truncated: result.truncated,
    },
    unsure,
    agreement,
    samples,
    answers,
    support,
    done_reason,
    steps: steps.map(({ action, text, parse_error, observation: { result, error, error_class } }) => ({
      ...{ action_type: action.action_type, argument: action.argument, text, parse_error, result, error, error_class },
    })),
    ...{ model: name, prompt: prompt ?? null, rules: rulesId(rules), step_budget },
  };
}
