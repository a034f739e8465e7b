// `sqlenv bench spider` and `bench bird`: execution accuracy as published, on databases unseen in training.
import { accessSync, constants, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Command, Option } from "commander";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import { withQuestionsFrom } from "../../../gym/data/index.node.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import {
  DEFAULT_RULES,
  DEFAULT_STEP_BUDGET,
  type EnvironmentRules,
  GUIDED_RULES,
  rulesId,
} from "../../../gym/env/index.ts";
import { MAX_TWIN_SEEDS, TWINS_VERSION } from "../../../gym/evaluation/index.ts";
import { givenPromptId } from "../../../gym/players/index.ts";
import { writeFileWhole } from "../../../io/atomic-write.node.ts";
import { packageInfo } from "../../../io/package-info.node.ts";
import { readModelMetadata } from "../../../rl/run/model-metadata.node.ts";
import { type AttemptOptions, type Attempts, playAttempts } from "../../bench/text-to-sql/attempts.ts";
import { judgeAttempts } from "../../bench/text-to-sql/outcomes.ts";
import { askedData, type BenchResult, type Protocol, resultOf } from "../../bench/text-to-sql/result.ts";
import { writeAttempts } from "../../bench/text-to-sql/schema-given.ts";
import { environmentsFor } from "../environments.ts";
import { addAlias } from "../options/alias.ts";
import { DATA, JSON_OUTPUT, STEP_BUDGET } from "../options/common.ts";
import {
  addPlayerOptions,
  CONCURRENCY,
  PLAYER_NAMES,
  type PlayerFlags,
  playerNamed,
  turnTokens,
} from "../options/player.ts";
import type { PromptFlags } from "../options/prompt.ts";
import { addFilterOptions, checkDatabases, checkSplit, type QuestionFlags } from "../options/questions.ts";
import { writerNamed } from "../query-writer.ts";
import { interruptedCode, interruptSignal } from "../terminal/interrupt.ts";
import { countFromOne, type Output, output, printable, wholeNumber } from "../terminal/output.ts";
import { weightsSha256 } from "../weights-hash.ts";
import { drawBench } from "./bench-sql-table.ts";

interface BenchSqlFlags extends QuestionFlags, PlayerFlags {
  readonly player?: string;
  readonly questionsFrom?: string;
  readonly evidence?: boolean;
  readonly questions?: number;
  readonly schema: Protocol["schema"];
  readonly sampleRows: number;
  readonly votes: number;
  readonly twins: number;
  readonly guided: boolean;
  readonly seed: number;
  readonly stepBudget: number;
  readonly concurrency?: number;
  readonly out?: string;
  readonly show: number;
  readonly json?: boolean;
}

/** The command of one benchmark. */
export function benchSqlCommand(benchmark: "spider" | "bird"): Command {
  const published = benchmark === "spider" ? "Spider" : "BIRD";
  const command = new Command(benchmark)
    .description(`execution accuracy of a model on ${published}'s evaluation questions`)
    .option("--data <name>", DATA, benchmark)
    .option("--questions-from <file>", "use the questions of this JSON file, such as Spider-DK or Spider-Syn")
    .option("--player <name>", `player: ${PLAYER_NAMES.join(", ")} (default: model; with --base-url chat)`)
    .option("--questions <number>", "number of questions to draw (default: all)", countFromOne("--questions"))
    .addOption(
      new Option("--schema <how>", "unknown: explored by actions; given: in the prompt, for one query, as published")
        .choices(["unknown", "given"])
        .default("unknown"),
    )
    .option("--sample-rows <number>", "given: sample rows per table", wholeNumber("--sample-rows"), 0)
    .option("--votes <number>", "attempts per question, decided by majority (voted@k)", wholeNumber("--votes"), 1)
    .option("--twins <number>", "perturbed copies of each database a query must pass too", wholeNumber("--twins"), 2)
    .option("--no-guided", "default rules of the environment instead of the guided ones")
    .option("--seed <number>", "seed of sampling and of the questions drawn", wholeNumber("--seed"), 7)
    .option("--step-budget <number>", STEP_BUDGET, countFromOne("--step-budget"), DEFAULT_STEP_BUDGET)
    .option(
      "--concurrency <number>",
      `concurrent questions (default: 1, chat ${CONCURRENCY.chat}, model ${CONCURRENCY.model})`,
      countFromOne("--concurrency"),
    )
    .option("--out <file>", "write the result to this file, for bench compare")
    .option("--show <number>", "print the first n transcripts", wholeNumber("--show"), 0)
    .option("--json", JSON_OUTPUT);
  if (benchmark === "bird") command.option("--no-evidence", "omit the evidence from the questions");
  addFilterOptions(addAlias(command, "--unguided", "--no-guided"));
  return addPlayerOptions(command).action((flags: BenchSqlFlags) => {
    checkFlags(flags, (name) => command.getOptionValueSource(name) === "cli");
    return run(benchmark, flags);
  });
}

/** Flags without effect, by schema. */
const UNUSED: Readonly<Record<Protocol["schema"], Readonly<Record<string, string>>>> = {
  given: {
    prompt: "--prompt",
    shots: "--shots",
    promptFile: "--prompt-file",
    guided: "--no-guided",
    stepBudget: "--step-budget",
  },
  unknown: { sampleRows: "--sample-rows" },
};

/** Refuses flags without effect, and votes that would all be equal. */
function checkFlags({ schema, votes, temperature }: BenchSqlFlags, isTyped: (name: string) => boolean): void {
  const unused = Object.entries(UNUSED[schema]).find(([name]) => isTyped(name));
  if (unused) throw new UsageError({ what: `${unused[1]} has no effect with --schema ${schema}`, remedy: "omit it" });
  if (votes > 1 && temperature === 0 && isTyped("temperature"))
    throw new UsageError({
      what: "--votes with --temperature 0 would sample the same attempt each time",
      value: votes,
      remedy: `omit --temperature for ${VOTE_TEMPERATURE}, or raise it`,
    });
}

async function run(benchmark: "spider" | "bird", flags: BenchSqlFlags): Promise<void> {
  const out = output(flags);
  const name = playerOf(flags);
  const { votes, twins, seed, difficulty, schema, sampleRows } = flags;
  const temperature = votes > 1 && flags.temperature === 0 ? VOTE_TEMPERATURE : flags.temperature;
  if (twins > MAX_TWINS)
    throw new UsageError({
      what: `--twins cannot be more than ${MAX_TWINS}`,
      value: twins,
      remedy: "2 find most errors",
    });
  if (votes < 1) throw new UsageError({ what: "--votes must be at least 1", value: votes });
  if (flags.out !== undefined) checkWritable(flags.out);
  const data = await dataFor(flags);
  checkDatabases(flags.database, data);
  const databases = unseenDatabases(data, flags.database);
  const subject = await (schema === "given" ? givenSchema : unknownSchema)(name, { ...flags, temperature }, data, out);
  const signal = interruptSignal();
  const started = performance.now();
  try {
    const attempts = await subject.attempts({
      seed,
      difficulty,
      databases,
      signal,
      tries: votes,
      questions: flags.questions,
      concurrency: flags.concurrency ?? CONCURRENCY[name] ?? 1,
      onProgress: ({ done, total }) => out.progress(`${subject.name}: ${done} of ${total} attempts`),
    });
    const seconds = (performance.now() - started) / 1000;
    const outcomes =
      attempts &&
      (await judgeAttempts(data, attempts, {
        twins,
        signal,
        onProgress: (done, total) => out.progress(`judged ${done} of ${total} questions`),
      }));
    out.endProgress();
    if (!outcomes || signal.aborted) {
      out.line("interrupted: nothing was written");
      process.exitCode = interruptedCode(signal);
      return;
    }
    for (const { id } of outcomes.slice(0, flags.show))
      out.line(`${printableLines(attempts.get(id)![0]?.shown ?? id)}\n`);
    const protocol: Protocol = {
      benchmark,
      schema,
      votes,
      temperature,
      max_tokens: turnTokens(name, flags),
      evidence: benchmark === "bird" ? (flags.evidence ?? true) : null,
      twins: twins > 0 ? `${TWINS_VERSION}x${twins}` : null,
      ...(schema === "given"
        ? { rules: null, prompt: givenPromptId(sampleRows), step_budget: null }
        : { rules: rulesId(rulesFor(flags)), prompt: subject.prompt_id ?? null, step_budget: flags.stepBudget }),
    };
    const result = resultOf(outcomes, {
      sqlenv: packageInfo().version,
      command: commandLine(),
      protocol,
      seed,
      seconds,
      data: await askedData(data, outcomes),
      model: { player: name, name: flags.model ?? subject.name, weights_sha256: await weightsOf(name, flags) },
    });
    report(result, flags, out);
  } finally {
    await subject.close?.();
  }
}

/** What is measured: a player that explores, or a model that writes one query. */
interface Subject {
  readonly name: string;
  readonly prompt_id?: string | undefined;
  attempts(options: AttemptOptions): Promise<Attempts | undefined>;
  close?: (() => Promise<void>) | undefined;
}

async function unknownSchema(name: string, flags: BenchSqlFlags, data: DataSet, out: Output): Promise<Subject> {
  const player = await playerNamed(name, { ...flags, ...(await defaultPrompt(name, flags)) });
  const environments = await environmentsFor(player, data, out);
  const [step_budget, rules] = [flags.stepBudget, rulesFor(flags)];
  const environment = () => environments.open({ step_budget, ...rules });
  return {
    name: player.name,
    prompt_id: player.prompt_id,
    attempts: (options) => playAttempts(data, player, { ...options, step_budget, rules, environment }),
    close: async () => {
      await Promise.all([player.close?.(), environments.close()]);
    },
  };
}

/** The prompt a model was trained with if its folder records one, otherwise `instruct` with three examples. */
async function defaultPrompt(name: string, { prompt, shots, promptFile, model }: BenchSqlFlags): Promise<PromptFlags> {
  if (model === undefined || promptFile !== undefined) return {};
  const asked = { prompt: "instruct", shots: shots ?? 3 } as const;
  if (prompt !== undefined) return prompt === "instruct" ? asked : {};
  if (name === "chat") return asked;
  const { resolveModel } = await import("../../../lm/model/formats/hub.node.ts");
  const folder = await resolveModel(model);
  return readModelMetadata(folder) ? {} : asked;
}

function rulesFor({ guided }: BenchSqlFlags): EnvironmentRules {
  return guided ? GUIDED_RULES : DEFAULT_RULES;
}

async function givenSchema(name: string, flags: BenchSqlFlags, data: DataSet): Promise<Subject> {
  const writer = await writerNamed(name, flags, data);
  return {
    name: writer.name,
    attempts: (options) => writeAttempts(data, writer, { ...options, sample_rows: flags.sampleRows }),
    close: writer.close,
  };
}

/** Default sampling temperature of votes; greedy attempts would all be the same. */
const VOTE_TEMPERATURE = 0.8;

/** Twins are drawn from this many seeds. */
const MAX_TWINS = MAX_TWIN_SEEDS;

function report(result: BenchResult, flags: BenchSqlFlags, out: ReturnType<typeof output>): void {
  const { questions, errors, first_error } = result;
  if (errors === questions.length)
    throw new SqlEnvError("all_failed", { what: "every episode failed; the first error", value: first_error ?? "" });
  drawBench(result, out); // first, so that a failed write does not lose the result
  if (flags.out !== undefined) {
    writeFileWhole(flags.out, `${JSON.stringify(result)}\n`);
    out.line(`wrote ${flags.out}`);
  }
  out.result(result);
}

function playerOf({ player, model, baseUrl }: BenchSqlFlags): string {
  if (player !== undefined) return player;
  if (model === undefined)
    throw new UsageError({
      what: "no model to measure",
      remedy: "give --model, or --player oracle to check the gold queries",
    });
  return baseUrl === undefined ? "model" : "chat";
}

async function dataFor({ data: name, questionsFrom, evidence }: BenchSqlFlags): Promise<DataSet> {
  const data = await resolveDataSet(name, { evidence });
  return questionsFrom === undefined ? data : withQuestionsFrom(data, questionsFrom, { evidence });
}

/** Databases with evaluation questions but no training questions. */
function unseenDatabases(data: DataSet, wanted: readonly string[] | undefined): string[] {
  checkSplit("eval", data);
  const trained = new Set(data.questions.filter(({ split }) => split === "train").map((q) => q.database_name));
  const asked = data.questions.filter(({ split }) => split === "eval").map(({ database_name }) => database_name);
  const unseen = [...new Set(asked)].filter((name) => !trained.has(name) && (wanted?.includes(name) ?? true));
  if (unseen.length > 0) return unseen;
  throw new UsageError({
    what: "the data set has no evaluation questions on unseen databases",
    value: data.name,
    remedy: "split it by database, or choose another with --data",
  });
}

function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** The command line, without passwords in URLs. */
function commandLine(): string {
  return ["sqlenv", ...process.argv.slice(2)].join(" ").replace(/:\/\/[^/\s@]*@/g, "://");
}

function checkWritable(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError({ what: "--out is a folder", value: path, remedy: "choose a file" });
  try {
    accessSync(dirname(resolve(path)), constants.W_OK);
  } catch (cause) {
    const remedy = "choose a file in an existing folder";
    throw new UsageError({ what: "cannot write --out", value: path, remedy, cause });
  }
}

async function weightsOf(player: string, { model }: PlayerFlags): Promise<string | null> {
  if (player !== "model" || model === undefined) return null;
  const { resolveModel } = await import("../../../lm/model/formats/hub.node.ts");
  return weightsSha256(await resolveModel(model));
}
