// `sqlenv compare`: several players on the same questions, their turns side by side in the terminal or as pages.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import type { DataSet, Split } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { DEFAULT_STEP_BUDGET, rulesId } from "../../../gym/env/index.ts";
import {
  type EpisodeRecord,
  type EvaluationReport,
  evaluate,
  formatStep,
  formatTranscript,
  formatVerdict,
} from "../../../gym/evaluation/index.ts";
import type { ComparedQuestion, Comparison } from "../../../rl/run/records.ts";
import { comparisonHtml, comparisonMarkdown } from "../../reports/index.ts";
import { JSON_OUTPUT, STEP_BUDGET } from "../options/common.ts";
import { addPlayerOptions, CONCURRENCY, PLAYER_NAMES, type PlayerFlags, playerNamed } from "../options/player.ts";
import {
  addQuestionOptions,
  checkDatabases,
  checkSplit,
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
import { sideBySide } from "../terminal/wrap.ts";

interface CompareFlags extends QuestionFlags, PlayerFlags, RulesFlags {
  readonly player: string;
  readonly questions: number;
  readonly split: Split;
  readonly seed: number;
  readonly stepBudget: number;
  readonly markdown?: boolean;
  readonly out?: string;
  readonly json?: boolean;
}

/** The `compare` command. */
export function compareCommand(): Command {
  const models: string[] = [];
  const command = new Command("compare")
    .description("show several players on the same questions, side by side")
    .option("--player <list>", `players: ${PLAYER_NAMES.join(", ")}`, "random")
    .option("--questions <number>", "number of questions", countFromOne("--questions"), 5)
    .option("--split <name>", "train or eval", splitNamed, "eval")
    .option("--seed <number>", "seed of the questions drawn and of the players", wholeNumber("--seed"), 7)
    .option("--step-budget <number>", STEP_BUDGET, countFromOne("--step-budget"), DEFAULT_STEP_BUDGET)
    .option("--markdown", "print Markdown")
    .option("--out <folder>", "write comparison.html, .md and .json to this folder")
    .option("--json", JSON_OUTPUT)
    .addHelpText(
      "after",
      "\n--model may be repeated: each chat or model in --player takes the next one,\nand models left over play as well.",
    );
  return addRulesOptions(addPlayerOptions(addQuestionOptions(command)))
    .on("option:model", (model: string) => models.push(model))
    .action((flags: CompareFlags) => run(flags, models));
}

async function run(flags: CompareFlags, models: readonly string[]): Promise<void> {
  const out = output(flags);
  const contestants = await contestantsOf(flags, models);
  const data = await resolveDataSet(flags.data, { dbDir: flags.dbDir });
  checkDatabases(flags.database, data);
  checkSplit(flags.split, data);
  const signal = interruptSignal();
  if (flags.out !== undefined) surviveLostOutput();
  const played: Played[] = [];
  for (const contestant of contestants) {
    if (signal.aborted) break;
    played.push(await play(contestant, flags, data, signal, out)); // one at a time: two models may not fit into memory
  }
  const comparison = compared(played);
  const files = flags.out === undefined ? [] : write(flags.out, comparison);
  if (flags.markdown) out.line(comparisonMarkdown(comparison).trimEnd());
  else draw(comparison, flags, out);
  for (const file of files) out.line(`wrote ${printable(file)}`);
  const { split, seed, stepBudget: step_budget } = flags;
  const reports = played.map(({ report }) => report);
  out.result({
    ...comparison,
    reports,
    data: data.name,
    split,
    seed,
    step_budget,
    rules: rulesId(rulesNamed(flags)),
    files,
  });
  if (signal.aborted) process.exitCode = interruptedCode(signal);
}

interface Contestant {
  readonly name: string;
  readonly model: string | undefined;
}

/**
 * The named players, and a `model` player for each model that no named player uses. Wrong names fail before any
 * episode.
 */
async function contestantsOf(flags: CompareFlags, models: readonly string[]): Promise<Contestant[]> {
  const left = [...models];
  const names = flags.player.split(",").map((name) => name.trim());
  const named = names
    .filter(Boolean)
    .map((name) => ({ name, model: NEEDS_MODEL.includes(name) ? left.shift() : undefined }));
  for (const { name, model } of named) {
    if (!NEEDS_MODEL.includes(name) || model === undefined) await playerNamed(name, withModel(flags, model));
  }
  const contestants = [...named, ...left.map((model) => ({ name: "model", model }))];
  if (contestants.length === 0) throw new UsageError({ what: "no player", remedy: "give --player or --model" });
  return contestants;
}

/** Players that need --model. */
const NEEDS_MODEL = ["chat", "model"];

function withModel({ model: _, ...flags }: CompareFlags, model: string | undefined): PlayerFlags {
  return model === undefined ? flags : { ...flags, model };
}

interface Played {
  readonly report: EvaluationReport;
  readonly episodes: readonly EpisodeRecord[];
}

async function play(
  { name, model }: Contestant,
  flags: CompareFlags,
  data: DataSet,
  signal: AbortSignal,
  out: Output,
): Promise<Played> {
  const player = await playerNamed(name, withModel(flags, model));
  const { split, seed, difficulty, database: databases, questions, stepBudget: step_budget } = flags;
  const episodes: EpisodeRecord[] = [];
  try {
    const report = await evaluate(data, player, {
      split,
      seed,
      difficulty,
      databases,
      step_budget,
      rules: rulesNamed(flags),
      signal,
      episodes: questions,
      concurrency: CONCURRENCY[name] ?? 1,
      onEpisode: (episode) => episodes.push(episode),
      onProgress: ({ done, total }) => out.progress(`${player.name}: ${done} of ${total} questions`),
    });
    return { report, episodes };
  } finally {
    out.endProgress();
    await player.close?.();
  }
}

/** The questions that all players have answered, with their episodes. */
function compared(played: readonly Played[]): Comparison {
  const common = Math.min(...played.map(({ episodes }) => episodes.length));
  const questions = Array.from({ length: common }, (_, i): ComparedQuestion => {
    const { question_id, question, database_name, seen } = played[0]!.episodes[i]!;
    return { question_id, question, database_name, seen, episodes: played.map(({ episodes }) => episodes[i]!) };
  });
  return { players: played.map(({ report }) => report.player), questions };
}

function write(folder: string, comparison: Comparison): string[] {
  const pages = {
    "comparison.html": comparisonHtml(comparison),
    "comparison.md": comparisonMarkdown(comparison),
    "comparison.json": `${JSON.stringify(comparison)}\n`,
  };
  try {
    mkdirSync(folder, { recursive: true });
    return Object.entries(pages).map(([name, text]) => {
      const file = join(folder, name);
      writeFileSync(file, text);
      return file;
    });
  } catch (cause) {
    throw new UsageError({ what: "cannot write --out", value: folder, remedy: "choose a writable folder", cause });
  }
}

const MIN_COLUMN = 34; // characters; in narrower terminals the players are shown one below the other
const SHOWN_LINES = 10; // lines shown per turn

function draw({ players, questions }: Comparison, { stepBudget }: CompareFlags, out: Output): void {
  const column = Math.floor(((process.stdout.columns || 120) - 3 * (players.length - 1)) / players.length);
  for (const { question_id, question, database_name, seen, episodes } of questions) {
    out.line(styled("bold", printable(question)));
    out.line(printable(`${question_id}, ${database_name}, ${seen ? "seen" : "unseen"} database`));
    if (column < MIN_COLUMN) {
      for (const episode of episodes) out.line(`\n${formatTranscript(episode).split("\n").map(printable).join("\n")}`);
    } else {
      const rule = players.map(() => "─".repeat(column)).join("─┼─");
      const turns = Math.max(0, ...episodes.map(({ steps }) => steps.length));
      const rows = [
        players.map((player) => [player]),
        ...Array.from({ length: turns }, (_, turn) =>
          episodes.map(({ steps }) => (steps[turn] ? shortened(formatStep(steps[turn]).split("\n")) : [])),
        ),
        episodes.map((episode) => [formatVerdict(episode)]),
      ];
      for (const row of rows) out.line([rule, ...sideBySide(row, column)].join("\n"));
    }
    out.line();
  }
  const correct = players.map((player, i) => [
    player,
    questions.filter(({ episodes }) => episodes[i]!.correctness === 1).length,
    questions.length,
  ]);
  out.line(drawTable(["", "correct", "of"], correct));
  out.line(styled("dim", `${counted(stepBudget, "action")} per episode`));
}

/** The first lines and the last, which shows the reward. */
function shortened(lines: readonly string[]): string[] {
  if (lines.length <= SHOWN_LINES) return [...lines];
  return [...lines.slice(0, SHOWN_LINES - 2), "   …", lines.at(-1)!];
}
