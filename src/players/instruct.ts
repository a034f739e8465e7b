// The prompt for models that others trained: each rule answers something that such models were seen to do. Short, since it is
// part of every context, and without any notation that could be copied into an action.
import type { EnvironmentRules } from "../env/index.ts";
import type { StopRule } from "../stop.ts";
import { cut, type Shown } from "./shown.ts";

export const INSTRUCT_ID = "instruct-1";

const ACTIONS = `You answer a question about a SQLite database that you cannot see. You explore it with actions, one action per reply:

DESCRIBE: table_name
shows the columns and foreign keys of one table.

SAMPLE: table_name
shows the first rows of one table.

QUERY: SELECT ...
runs one SELECT statement and shows its rows.

`;

const TEXT_ANSWER = `ANSWER: the values
gives the final answer and ends the task. Write only the values: one value, several values separated by commas, or, for several columns, the rows exactly as the last result shows them, one row per line.

`;

const LAST_ANSWER = `ANSWER: @last
gives the whole result of your last QUERY as the final answer and ends the task. Use it when that result is exactly what the question asks for.

`;

/** What applies to every reply, however it is written. */
export const replyRules = (oneAction: string) => `Rules:
- ${oneAction} The result comes in the next message. Never write a result yourself.
- You do not know the columns of a table until you DESCRIBE it. First DESCRIBE every table that you need, one at a time.
- Use only tables and columns that you have seen. Join tables through their foreign keys.
- If a query fails, read the error, correct the query and try again. Never repeat an action.
- Select only the columns that the question asks for, in the order it asks for them, and all the rows.
- When a query has shown what is asked, give the ANSWER.`;

const ONE_ACTION = "A reply begins with DESCRIBE:, SAMPLE:, QUERY: or ANSWER: and has exactly one action. Then stop.";

/** What the model is told first. */
export function instructSystem({ answer_last }: EnvironmentRules): string {
  return ACTIONS + (answer_last ? LAST_ANSWER : TEXT_ANSWER) + replyRules(ONE_ACTION);
}

/** Steps after which the question is repeated: it is far above by then. */
const REMIND_AFTER = 4;

/** As compact's, with the question again late in the episode, and what to do next where models were seen to be at a loss. */
export function instructObservation(observation: Shown): string {
  const { question, schema_info, result, error, error_class, step_count, budget_remaining, done } = observation;
  const isRepeat = error_class === "repeat";
  if (done) return "The task is over.";
  const lines: string[] = [];
  if (step_count === 0) lines.push(`Question: ${question}`, `Tables: ${schema_info}`);
  if (error !== null && !isRepeat) lines.push(`Error: ${cut(error)}`);
  if (result !== "") lines.push(`Result:\n${cut(result)}`);
  if (step_count >= REMIND_AFTER) lines.push(`Question: ${question}`);
  lines.push(`Steps left: ${budget_remaining}`);
  if (budget_remaining === 1) lines.push("This is the last step: give your ANSWER now.");
  else if (isRepeat) lines.push("You have done this before, with the same result. Do something else now.");
  else if (error !== null) lines.push("Read the error and write a corrected action.");
  return lines.join("\n");
}

// Heads of lines as models write them: perhaps after list or emphasis marks; with a colon in any case, without one in capitals.
const MARKS = String.raw`^[ \t>*#-]{0,8}(?:[Aa][Cc][Tt][Ii][Oo][Nn][ \t]*:[ \t]*)?[*_\x60"]{0,3}`;
const COLON = String.raw`[*_\x60"]{0,3}[ \t]*:[*_\x60]{0,2}`;
const anyCase = (words: string) => words.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
const action = (words: string) =>
  new RegExp(`${MARKS}(?:(?:${anyCase(words)})${COLON}|(?:${words.toUpperCase()})(?=[ \\t]))`);

/** A reply is one action, and nothing that the environment would say. */
export const INSTRUCT_STOP: StopRule = {
  begin: action("describe|sample|query|answer"),
  before: new RegExp(
    `${MARKS}(?:${anyCase("results?|error|steps left|question|tables|output|observation|user|assistant|system")})${COLON}`,
  ),
  oneLine: action("describe|sample"),
  statement: action("query"),
};

/** As the environment writes them: in a model's thoughts before its action they are unlikely. */
export const INSTRUCT_STOP_STRINGS = ["\nResult:\n", "\nError: ", "\nSteps left: "] as const;
