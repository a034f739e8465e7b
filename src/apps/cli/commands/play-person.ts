// A person plays in the terminal, question after question.
import { createInterface } from "node:readline";
import type { QuestionRecord } from "../../../gym/data/index.ts";
import type { SQLEnvironment, SQLObservation } from "../../../gym/env/index.ts";
import { parseTables } from "../../../gym/players/index.ts";
import { sqlSkeleton } from "../../../gym/sql/index.ts";
import { signalExitCode } from "../terminal/interrupt.ts";
import { printable, styled } from "../terminal/output.ts";
import { COMMAND_WORDS, helpFor, readLine } from "./play-input.ts";
import { drawBudget, drawEnd, drawStart, drawStep, drawTables } from "./play-screen.ts";

/** Asks the person one line; null at the end of input. */
type Ask = (prompt: string) => Promise<string | null>;

/** Plays one question after the other until the person quits. */
export async function playPerson(env: SQLEnvironment, questions: readonly QuestionRecord[]): Promise<void> {
  const terminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  let schema_info = "";
  const lines = createInterface({
    input: process.stdin,
    output: process.stdout,
    terminal,
    completer: (line: string) => complete(line, schema_info),
  });
  process.removeAllListeners("SIGINT");
  const leave = () => {
    process.exitCode = signalExitCode("SIGINT");
    lines.close();
  };
  lines.on("SIGINT", leave);
  process.once("SIGINT", leave);
  const incoming = lines[Symbol.asyncIterator]();
  const ask: Ask = async (prompt) => {
    lines.setPrompt(styled("bold", prompt));
    lines.prompt();
    const { value, done } = await incoming.next();
    if (done) {
      process.stdout.write("\n");
      return null;
    }
    if (!terminal) process.stdout.write(`${printable(String(value))}\n`); // a terminal has echoed it already
    return String(value);
  };
  try {
    write(
      `${styled("bold", "SQLEnv")}: answer questions by exploring a database.\n\n${styled("dim", helpFor(env.rules))}\n`,
    );
    for (const [i, question] of questions.entries()) {
      const finished = await playOne(env, question, ask, (observation) => {
        schema_info = observation.schema_info;
      });
      if (!finished) return;
      if (i === questions.length - 1) break; // there is no other question
      const again = await ask("  another? [Y/n] ");
      if (again === null || /^\s*(?:n|no|q|quit|exit)\s*$/i.test(again)) return;
      write("");
    }
    write(questions.length === 1 ? "  That was the only question." : "  That was the last question.");
  } finally {
    lines.close();
  }
}

/** Plays one question; false if the person quits before its end. */
async function playOne(
  env: SQLEnvironment,
  question: QuestionRecord,
  ask: Ask,
  onObservation: (observation: SQLObservation) => void,
): Promise<boolean> {
  let observation = env.reset({ question_id: question.question_id });
  let total = 0;
  let given: string | null = null;
  let hints = 0;
  onObservation(observation);
  write(`${drawStart(question, observation)}\n`);
  while (!observation.done) {
    const line = await ask("> ");
    if (line === null) return false;
    const input = readLine(line, observation.schema_info);
    switch (input.kind) {
      case "quit":
        return false;
      case "nothing":
        break;
      case "help":
        write(helpFor(env.rules));
        break;
      case "tables":
        write(drawTables(observation));
        break;
      case "history":
        write(drawHistory(observation));
        break;
      case "hint":
        write(`  ${styled("yellow", printable(hintFor(question, hints++)))}`);
        break;
      case "unclear":
        write(`  ${styled("yellow", printable(input.message))}`);
        break;
      case "action":
        if (input.action.action_type === "ANSWER") given = input.action.argument;
        observation = env.step(input.action);
        total += observation.reward ?? 0;
        onObservation(observation);
        write(`${drawStep(input.action, observation, total)}\n`);
    }
  }
  write(`${drawEnd(question, given, env.outcome, total, env.database)}\n`);
  if (hints > 0) write(`  ${styled("dim", hints === 1 ? "with a hint" : `with ${hints} hints`)}\n`);
  return true;
}

function drawHistory(observation: SQLObservation): string {
  const { action_history } = observation;
  const lines = action_history.map((line, i) => `  ${i + 1}. ${printable(line)}`);
  return [...(lines.length > 0 ? lines : ["  no actions yet"]), `  ${drawBudget(observation)}`].join("\n");
}

const ANSWER_KINDS = {
  integer: "one whole number",
  float: "one number",
  string: "one text",
  list: "a list of values",
  table: "a table with several columns",
} as const;

/** First the tables, then the answer's type, then the query's skeleton; further hints repeat the last. */
function hintFor({ tables_involved, answer_type, gold_sql }: QuestionRecord, given: number): string {
  if (given === 0) return `look at ${tables_involved.join(" and ")}`;
  if (given === 1) return `the answer is ${ANSWER_KINDS[answer_type]}`;
  return `the query has this form: ${sqlSkeleton(gold_sql)
    .replace(/ ([,)])/g, "$1")
    .replace(/\( /g, "(")}`;
}

/** Tab completes commands at the start of a line, table and column names elsewhere. */
function complete(line: string, schema_info: string): [string[], string] {
  const word = /[^\s(,.]*$/.exec(line)?.[0] ?? "";
  const tables = parseTables(schema_info);
  const names = tables.flatMap((table) => [table.name, ...table.columns]);
  const known = line.trimStart() === word ? COMMAND_WORDS : [...new Set(names)];
  return [known.filter((name) => name.toLowerCase().startsWith(word.toLowerCase())), word];
}

function write(text: string): void {
  process.stdout.write(`${text}\n`);
}
