// `sqlenv eval`: a player's success rate over many questions with confidence intervals, on seen and unseen databases.
import { closeSync, openSync, writeFileSync } from "node:fs";
import { Command } from "commander";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import { SQLEnvClient } from "../../../gym/client/index.ts";
import { ANSWER_TYPES, type AnswerType, evalIdsSha256, type Split } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { DEFAULT_STEP_BUDGET, rulesId } from "../../../gym/env/index.ts";
import { type EpisodeRecord, evaluate, formatTranscript, type Progress } from "../../../gym/evaluation/index.ts";
import { environmentsFor } from "../environments.ts";
import { JSON_OUTPUT, STEP_BUDGET } from "../options/common.ts";
import { addPlayerOptions, CONCURRENCY, PLAYER_NAMES, type PlayerFlags, playerNamed } from "../options/player.ts";
import {
  addQuestionOptions,
  checkDatabases,
  checkSplit,
  listOf,
  type QuestionFlags,
  splitNamed,
} from "../options/questions.ts";
import { addRulesOptions, type RulesFlags, rulesNamed } from "../options/rules.ts";
import { interruptedCode, interruptSignal } from "../terminal/interrupt.ts";
import { surviveLostOutput } from "../terminal/lost-output.ts";
import { counted, countFromOne, output, printable, styled, wholeNumber } from "../terminal/output.ts";
import { checkWritable } from "../terminal/writable.ts";
import { checkRunFlags, evaluateRunFolder } from "./eval-run.ts";
import { drawNotes, drawReport } from "./eval-table.ts";

interface EvalFlags extends QuestionFlags, PlayerFlags, RulesFlags {
  readonly player?: string;
  readonly run?: string;
  readonly split: Split;
  readonly episodes?: number;
  readonly tries?: number;
  readonly questions?: number;
  readonly seed: number;
  readonly answerType?: AnswerType[];
  readonly stepBudget: number;
  readonly concurrency?: number;
  readonly server?: string;
  readonly out?: string;
  readonly show: number;
  readonly json?: boolean;
}

/** The `eval` command. */
export function evalCommand(): Command {
  const command = new Command("eval")
    .description("measure a player's success rate on many questions")
    .option("--player <name>", `player: ${PLAYER_NAMES.join(", ")}`)
    .option("--run <folder>", "repeat a run's last evaluation: its trained model, questions, prompt, rules and limits")
    .option("--episodes <number>", "number of episodes (default: one per question)", countFromOne("--episodes"))
    .option("--questions <number>", "number of questions to draw (default: all)", countFromOne("--questions"))
    .option("--tries <number>", "attempts per question (pass@k)", countFromOne("--tries"))
    .option("--split <name>", "train or eval", splitNamed, "eval")
    .option("--seed <number>", "seed of the questions drawn and of the player", wholeNumber("--seed"), 7)
    .option("--step-budget <number>", STEP_BUDGET, countFromOne("--step-budget"), DEFAULT_STEP_BUDGET)
    .option("--answer-type <list>", `only these answer types: ${ANSWER_TYPES.join(",")}`, (text: string) =>
      listOf("--answer-type", text, ANSWER_TYPES),
    )
    .option(
      "--concurrency <number>",
      `concurrent episodes (default: 1, chat ${CONCURRENCY.chat}, model ${CONCURRENCY.model})`,
      countFromOne("--concurrency"),
    )
    .option(
      "--server <url>",
      "play on a `sqlenv serve` with the same data; its step budget and rules apply. With --run: where the run's OpenEnv server is now",
    )
    .option("--out <file>", "write every episode to this file, one JSON object per line")
    .option("--show <number>", "print the first n transcripts", wholeNumber("--show"), 0)
    .option("--json", JSON_OUTPUT);
  return addRulesOptions(addPlayerOptions(addQuestionOptions(command))).action(run);
}

async function run(flags: EvalFlags, command: Command): Promise<void> {
  if (flags.run !== undefined) {
    checkRunFlags(command);
    return evaluateRunFolder(flags.run, flags);
  }
  const { player: name } = flags;
  if (name === undefined)
    throw new UsageError({
      what: "nothing to evaluate",
      remedy: `give --player (${PLAYER_NAMES.join(", ")}), or --run with a training's folder`,
    });
  const out = output(flags);
  const player = await playerNamed(name, flags);
  const { split, seed, episodes, tries, questions, difficulty, answerType: answerTypes, database: databases } = flags;
  const { stepBudget: step_budget, concurrency = CONCURRENCY[name] ?? 1 } = flags;
  const rules = rulesNamed(flags, player.trainedRules);
  const data = await resolveDataSet(flags.data, { dbDir: flags.dbDir });
  checkDatabases(databases, data);
  checkSplit(split, data);
  const signal = interruptSignal();
  const file = flags.out === undefined ? undefined : openFile(flags.out);
  if (file !== undefined) surviveLostOutput();
  let shown = 0;
  const onEpisode = (record: EpisodeRecord) => {
    if (file !== undefined) writeFileSync(file, `${JSON.stringify(record)}\n`);
    if (shown++ < flags.show) out.line(`${formatTranscript(record).split("\n").map(printable).join("\n")}\n`);
  };
  const onProgress = (progress: Progress) => out.progress(progressLine(player.name, progress));
  const { server } = flags;
  const environments = await environmentsFor(server ? {} : player, data, out);
  const environment = server
    ? () => new SQLEnvClient(server, { apiKey: process.env.SQLENV_API_KEY })
    : () => environments.open({ step_budget, ...rules });
  const options = {
    split,
    seed,
    episodes,
    tries,
    questions,
    difficulty,
    answerTypes,
    databases,
    step_budget,
    rules,
    concurrency,
    environment,
  };
  const report = await evaluate(data, player, { ...options, onEpisode, onProgress, signal }).finally(async () => {
    out.endProgress();
    await Promise.all([player.close?.(), environments.close()]);
    if (file !== undefined) closeSync(file);
  });

  out.line(
    `${styled("bold", printable(player.name))}${report.prompt ? ` (prompt ${printable(report.prompt)})` : ""} on ${printable(data.name)}, ${split} split, seed ${seed}, ${server ? `on ${printable(server)}` : `${counted(step_budget, "action")} per episode`}, rules ${report.rules ?? rulesId(rules)}`,
  );
  if (report.scored > 0) drawReport(report, out);
  if (report.errors < report.episodes || report.interrupted) drawNotes(report, out);
  const eval_ids_sha256 = await evalIdsSha256(data.questions);
  out.result({
    ...report,
    data: data.name,
    eval_ids_sha256,
    split,
    seed,
    step_budget,
  });
  if (report.interrupted) process.exitCode = interruptedCode(signal);
  else if (report.errors === report.episodes) {
    throw new SqlEnvError("all_failed", {
      what: "every episode failed; the first error",
      value: report.first_error ?? "",
    });
  }
}

function openFile(path: string): number {
  checkWritable("--out", path);
  return openSync(path, "w");
}

function progressLine(name: string, { done, total, correct, errors }: Progress): string {
  const failed = errors > 0 ? `, ${errors} failed` : "";
  return `${name}: ${done} of ${total} episodes, ${correct} correct (${Math.round((100 * correct) / Math.max(1, done - errors))} %)${failed}`;
}
