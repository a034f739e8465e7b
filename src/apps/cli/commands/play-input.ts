// Parses what a person types while playing.
import { nearest } from "../../../errors.ts";
import type { EnvironmentRules, SQLAction } from "../../../gym/env/index.ts";
import { parseTables } from "../../../gym/players/index.ts";

/** The help shown while playing. */
export function helpFor({ answer_last }: EnvironmentRules): string {
  return `  d TABLE    describe it: columns, types and keys
  s TABLE    sample it: the first rows
  SELECT …   query
  a ANSWER   answer and end: 42, or a list a, b, or rows a | 1; b | 2${answer_last ? "\n  a @last    answer with the whole result of the last query" : ""}
  tables, history, hint, help, quit`;
}

/** A parsed line: an action for the environment, a command, or a message for the person. */
export type Input =
  | { readonly kind: "action"; readonly action: SQLAction }
  | { readonly kind: "tables" | "history" | "hint" | "help" | "quit" | "nothing" }
  | { readonly kind: "unclear"; readonly message: string };

const ACTIONS: Readonly<Record<string, SQLAction["action_type"]>> = {
  d: "DESCRIBE",
  describe: "DESCRIBE",
  s: "SAMPLE",
  sample: "SAMPLE",
  q: "QUERY",
  query: "QUERY",
  a: "ANSWER",
  answer: "ANSWER",
};

const COMMANDS: Readonly<Record<string, "tables" | "history" | "hint" | "help" | "quit">> = {
  tables: "tables",
  schema: "tables",
  t: "tables",
  history: "history",
  hint: "hint",
  help: "help",
  "?": "help",
  h: "help",
  quit: "quit",
  exit: "quit",
};

/** Words that may start a line, for completion. */
export const COMMAND_WORDS = ["describe", "sample", "answer", "SELECT", "tables", "history", "hint", "help", "quit"];

/** Parses one line. Typos are refused here, before they cost a step. */
export function readLine(line: string, schema_info: string): Input {
  const text = line.trim();
  if (text === "") return { kind: "nothing" };
  const word = COMMANDS[text.toLowerCase()];
  if (word) return { kind: word };
  if (/^(?:select|with|values)\b/i.test(text)) return act("QUERY", text);
  if (/^(?:drop|delete|insert|update|replace|create|alter|attach|detach|pragma|vacuum|reindex)\b/i.test(text))
    return {
      kind: "unclear",
      message: "refused: the database can only be read. Write one SELECT; as a player's query this would cost a step",
    };
  const [, verb = "", argument = ""] = /^([a-z]+)\b\s*[:：]?\s*([\s\S]*)$/i.exec(text) ?? [];
  const type = ACTIONS[verb.toLowerCase()];
  const names = parseTables(schema_info).map(({ name }) => name);
  if (!type) {
    const isTable = names.some((name) => name.toLowerCase() === text.toLowerCase());
    const guess = nearest(
      verb,
      [...Object.keys(ACTIONS), ...Object.keys(COMMANDS), "select"].filter((known) => known.length > 2),
    );
    const remedy = isTable ? `d ${text} describes it` : guess ? `did you mean ${guess}?` : "type help for the commands";
    return { kind: "unclear", message: `not understood; ${remedy}` };
  }
  if (argument !== "") return act(type, argument);
  if (type === "QUERY") return { kind: "unclear", message: "query what? Write a SELECT" };
  if (type === "ANSWER") return { kind: "unclear", message: "answer what? Write the value after it" };
  return { kind: "unclear", message: `which table? Choose from ${names.join(", ")}` };
}

function act(action_type: SQLAction["action_type"], argument: string): Input {
  return { kind: "action", action: { action_type, argument } };
}
