// `sqlenv play`: play in the terminal, watch a player, or connect a program over stdin and stdout.
import { Command } from "commander";
import { nearest, UsageError } from "../../../errors.ts";
import { type DataSet, filterQuestions, type QuestionRecord } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { DEFAULT_STEP_BUDGET, SQLEnvironment } from "../../../gym/env/index.ts";
import { random } from "../../../random.ts";
import { STEP_BUDGET } from "../options/common.ts";
import { addPlayerOptions, PLAYER_NAMES, type PlayerFlags, playerNamed } from "../options/player.ts";
import { addQuestionOptions, checkDatabases, type QuestionFlags, splitNamed } from "../options/questions.ts";
import { addRulesOptions, type RulesFlags, rulesNamed } from "../options/rules.ts";
import { interruptSignal } from "../terminal/interrupt.ts";
import { countFromOne, output, wholeNumber } from "../terminal/output.ts";
import { playPerson } from "./play-person.ts";
import { playStdio } from "./play-stdio.ts";
import { watch } from "./play-watch.ts";

interface PlayFlags extends QuestionFlags, PlayerFlags, RulesFlags {
  readonly question?: string;
  readonly seed?: number;
  readonly stepBudget: number;
  readonly player?: string;
  readonly delay?: number;
  readonly stdio?: boolean;
  readonly json?: boolean;
}

/** The `play` command. */
export function playCommand(): Command {
  const command = new Command("play")
    .description("answer questions yourself, watch a player, or connect a program (--stdio)")
    .option("--question <id>", "start with this question")
    .option("--split <name>", "train or eval (default: both)", splitNamed)
    .option("--seed <number>", "seed of the order of questions (default: random)", wholeNumber("--seed"))
    .option("--step-budget <number>", STEP_BUDGET, countFromOne("--step-budget"), DEFAULT_STEP_BUDGET)
    .option("--player <name>", `watch a player: ${PLAYER_NAMES.join(", ")}`)
    .option("--delay <ms>", "with --player: pause before each step (default: 900, piped 0)", wholeNumber("--delay"))
    .option("--stdio", "JSON messages on stdin, JSON observations on stdout, one per line")
    .option("--json", "with --player: print the episode as one JSON object");
  return addRulesOptions(addPlayerOptions(addQuestionOptions(command))).action(run);
}

async function run(flags: PlayFlags): Promise<void> {
  const { player: name, stdio, json, stepBudget: step_budget, delay = process.stdout.isTTY ? 900 : 0 } = flags;
  if (stdio && (name !== undefined || json))
    throw new UsageError({ what: "--stdio cannot be combined with --player or --json" });
  if (json && name === undefined) {
    throw new UsageError({ what: "--json needs --player", remedy: "add --player, or use --stdio for programs" });
  }
  const player = name === undefined ? undefined : await playerNamed(name, flags);
  const all = await resolveDataSet(flags.data, { dbDir: flags.dbDir });
  checkDatabases(flags.database, all);
  const data: DataSet = { ...all, questions: filterQuestions(all.questions, flags) };
  // A person wants another question every time; --seed makes the order repeatable.
  const seed = flags.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]!;
  const env = new SQLEnvironment(data, { step_budget, seed, ...rulesNamed(flags, player?.trainedRules) });
  if (stdio) return playStdio(env, flags);
  const questions = inOrder(data.questions, flags.question, seed);
  if (!player) return playPerson(env, questions);
  const out = output({ json });
  try {
    out.result(await watch(env, player, questions[0]!, out, { delayMs: delay, seed, signal: interruptSignal() }));
  } finally {
    await player.close?.();
  }
}

/** All questions in random order, the requested one first. */
function inOrder(questions: readonly QuestionRecord[], first: string | undefined, seed: number): QuestionRecord[] {
  const shuffled = random("play", seed).shuffle(questions);
  if (shuffled.length === 0)
    throw new UsageError({ what: "no question matches the filters", remedy: "remove some of them" });
  if (first === undefined) return shuffled;
  const found = shuffled.find(({ question_id }) => question_id === first);
  if (found) return [found, ...shuffled.filter((question) => question !== found)];
  const guess = nearest(
    first,
    shuffled.map(({ question_id }) => question_id),
  );
  throw new UsageError({
    what: "no such question",
    value: first,
    remedy: guess ? `did you mean ${guess}?` : "sqlenv data show DATABASE --json lists them",
  });
}
