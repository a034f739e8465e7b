// `sqlenv compare`: several players answer the same questions; their turns side by side, for the terminal or as pages.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import type { DataSet, Split } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { rulesId } from "../../../gym/env/index.ts";
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
import { addPlayerOptions, CONCURRENCY, PLAYER_NAMES, type PlayerFlags, playerNamed } from "../options/player.ts";
import { addQuestionOptions, checkDatabases, type QuestionFlags, splitNamed } from "../options/questions.ts";
import { addRulesOptions, type RulesFlags, rulesNamed } from "../options/rules.ts";
import { interruptedCode, interruptSignal } from "../terminal/interrupt.ts";
import { surviveLostOutput } from "../terminal/lost-output.ts";
import { drawTable, type Output, output, printable, styled, wholeNumber } from "../terminal/output.ts";
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
    .description("let players answer the same questions, and see their turns side by side")
    .option("--player <list>", `some of ${PLAYER_NAMES.join(",")}; models follow them`, "random")
    .option("--questions <number>", "how many", wholeNumber("--questions"), 5)
    .option("--split <name>", "train or eval", splitNamed, "eval")
    .option("--seed <number>", "draws the questions and the players' chances", wholeNumber("--seed"), 7)
    .option("--step-budget <number>", "actions an episode may take", wholeNumber("--step-budget"), 10)
    .option("--markdown", "print Markdown")
    .option("--out <folder>", "write comparison.html, comparison.md and comparison.json there")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\n--model may be given several times: a name in --player that needs one takes the next, the others play too.",
    );
  return addRulesOptions(addPlayerOptions(addQuestionOptions(command)))
    .on("option:model", (model: string) => models.push(model))
    .action((flags: CompareFlags) => run(flags, models));
}

async function run(flags: CompareFlags, models: readonly string[]): Promise<void> {
  const out = output(flags);
  const seats = await seatsOf(flags, models);
  const data = await resolveDataSet(flags.data);
  checkDatabases(flags.database, data);
  const signal = interruptSignal();
  if (flags.out !== undefined) surviveLostOutput();
  const played: Played[] = [];
  for (const seat of seats) {
    if (signal.aborted) break;
    played.push(await play(seat, flags, data, signal, out)); // one after the other: two models need not fit the memory
  }
  const comparison = compared(played);
  const files = flags.out === undefined ? [] : write(flags.out, comparison);
  if (flags.markdown) out.line(comparisonMarkdown(comparison).trimEnd());
  else draw(comparison, out);
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

interface Seat {
  readonly name: string;
  readonly model: string | undefined;
}

/** Who plays: each name, and each model no name has taken. A wrong one is told before anybody has played. */
async function seatsOf(flags: CompareFlags, models: readonly string[]): Promise<Seat[]> {
  const left = [...models];
  const names = flags.player.split(",").map((name) => name.trim());
  const named = names
    .filter(Boolean)
    .map((name) => ({ name, model: SPEAKING.includes(name) ? left.shift() : undefined }));
  for (const { name, model } of named) {
    if (!SPEAKING.includes(name) || model === undefined) await playerNamed(name, withModel(flags, model));
  }
  const seats = [...named, ...left.map((model) => ({ name: "model", model }))];
  if (seats.length === 0) throw new UsageError({ what: "nobody plays", remedy: "give --player or --model" });
  return seats;
}

/** Players that need a model's name. */
const SPEAKING = ["chat", "model"];

function withModel({ model: _, ...flags }: CompareFlags, model: string | undefined): PlayerFlags {
  return model === undefined ? flags : { ...flags, model };
}

interface Played {
  readonly report: EvaluationReport;
  readonly episodes: readonly EpisodeRecord[];
}

async function play(
  { name, model }: Seat,
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
      ...{ split, seed, difficulty, databases, step_budget, rules: rulesNamed(flags), signal },
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

/** Questions all have answered, each with everyone's episode. */
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
    throw new UsageError({ what: "--out cannot be written", value: folder, remedy: "name a folder of yours", cause });
  }
}

const MIN_COLUMN = 34; // characters; narrower columns are hard to read, and the players stand one below the other
const SHOWN_LINES = 10; // of one turn

function draw({ players, questions }: Comparison, out: Output): void {
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
  const right = players.map((player, i) => [
    player,
    questions.filter(({ episodes }) => episodes[i]!.correctness === 1).length,
    questions.length,
  ]);
  out.line(drawTable(["", "right", "of"], right));
}

/** The first lines and the last, which tells the reward. */
function shortened(lines: readonly string[]): string[] {
  if (lines.length <= SHOWN_LINES) return [...lines];
  return [...lines.slice(0, SHOWN_LINES - 2), "   …", lines.at(-1)!];
}
