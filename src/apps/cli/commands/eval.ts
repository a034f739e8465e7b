// `sqlenv eval`: a player's success rate over many questions with confidence intervals, on seen and unseen databases.
import { closeSync, openSync, writeFileSync } from "node:fs";
import { Command } from "commander";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import { SQLEnvClient } from "../../../gym/client/index.ts";
import { ANSWER_TYPES, type AnswerType, DIFFICULTIES, evalIdsSha256, type Split } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { DEFAULT_STEP_BUDGET, rulesId } from "../../../gym/env/index.ts";
import {
  type EpisodeRecord,
  type EvaluationReport,
  evaluate,
  formatTranscript,
  type Progress,
  type Summary,
} from "../../../gym/evaluation/index.ts";
import { percent } from "../../reports/format.ts";
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
import {
  counted,
  countFromOne,
  drawTable,
  type Output,
  output,
  printable,
  styled,
  wholeNumber,
} from "../terminal/output.ts";

interface EvalFlags extends QuestionFlags, PlayerFlags, RulesFlags {
  readonly player: string;
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
    .requiredOption("--player <name>", `player: ${PLAYER_NAMES.join(", ")}`)
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
    .option("--server <url>", "play on a `sqlenv serve` with the same data; its step budget and rules apply")
    .option("--out <file>", "write every episode to this file, one JSON object per line")
    .option("--show <number>", "print the first n transcripts", wholeNumber("--show"), 0)
    .option("--json", JSON_OUTPUT);
  return addRulesOptions(addPlayerOptions(addQuestionOptions(command))).action(run);
}

async function run(flags: EvalFlags): Promise<void> {
  const out = output(flags);
  const player = await playerNamed(flags.player, flags);
  const { split, seed, episodes, tries, questions, difficulty, answerType: answerTypes, database: databases } = flags;
  const { stepBudget: step_budget, concurrency = CONCURRENCY[flags.player] ?? 1 } = flags;
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
  if (report.scored > 0) draw(report, out);
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
  try {
    return openSync(path, "w");
  } catch (cause) {
    throw new UsageError({
      what: "cannot write --out",
      value: path,
      remedy: "name a file in a folder that exists and can be written",
      cause,
    });
  }
}

function progressLine(name: string, { done, total, correct, errors }: Progress): string {
  const failed = errors > 0 ? `, ${errors} failed` : "";
  return `${name}: ${done} of ${total} episodes, ${correct} correct (${Math.round((100 * correct) / Math.max(1, done - errors))} %)${failed}`;
}

/** With more databases than this, the table leaves them out. */
const LISTED_DATABASES = 24;

function draw(report: EvaluationReport, out: Output): void {
  const databases = Object.entries(report.by_database);
  const isListed = databases.length <= LISTED_DATABASES;
  const groups: [string, Summary][] = [
    ["all", report],
    ["seen databases", report.seen],
    ["unseen databases", report.unseen],
    ...DIFFICULTIES.map((name): [string, Summary] => [name, report.by_difficulty[name]]),
    ...ANSWER_TYPES.map((name): [string, Summary] => [`answer: ${name}`, report.by_answer_type[name]]),
    ...(isListed ? databases : []),
  ];
  const rows = groups.filter(([, { episodes }]) => episodes > 0).map(([name, summary]) => [name, ...cells(summary)]);
  out.line(drawTable(["", "episodes", "success", "95 % interval", "reward", "steps"], rows));
  if (!isListed) out.line(`--json lists each of the ${databases.length} databases`);
  out.line();
  if (report.tries > 1) {
    const parts = [
      ["seen", report.seen],
      ["unseen", report.unseen],
    ] as const;
    const shown = parts.filter(([, { episodes }]) => episodes > 0);
    const rates = shown.map(([split, { solved_in_tries }]) => `${split} databases ${percent(solved_in_tries)}`);
    out.line(`pass@${report.tries}: ${percent(report.solved_in_tries)} of the questions (${rates.join(", ")})`);
  }
  const { described_first, answers_seen } = report.behaviour;
  out.line(
    `tables described before they were queried: ${percent(described_first)}; answers with values seen before: ${percent(answers_seen)}`,
  );
  if (report.unseen.ci_method !== "wilson")
    out.line("the interval on unseen databases treats databases, not questions, as independent");
  out.line(
    `actions: ${percent(report.parse_failure_rate)} unparsable, ${percent(report.repeat_rate)} repeated, ${percent(report.invalid_rate)} failed`,
  );
}

/** Episodes that do not count, and why. */
function drawNotes(report: EvaluationReport, out: Output): void {
  const unscored = report.episodes - report.scored - report.errors;
  if (unscored > 0) out.line(styled("yellow", `${counted(unscored, "episode")} could not be scored and do not count`));
  if (report.errors > 0) {
    const first = printable(report.first_error ?? "");
    out.line(styled("yellow", `${counted(report.errors, "episode")} failed and do not count; the first: ${first}`));
  }
  if (report.interrupted) out.line(styled("yellow", `interrupted after ${counted(report.episodes, "episode")}`));
}

function cells({ episodes, scored, success_rate, success_ci, mean_reward, mean_steps }: Summary): string[] {
  const count = scored === episodes ? String(episodes) : `${scored} of ${episodes}`;
  const interval = success_ci ? `${(100 * success_ci[0]).toFixed(1)} – ${percent(success_ci[1])}` : "–";
  return [
    count.padStart(8),
    percent(success_rate).padStart(7),
    interval.padStart(13),
    (mean_reward?.toFixed(3) ?? "–").padStart(6),
    (mean_steps?.toFixed(1) ?? "–").padStart(5),
  ];
}
