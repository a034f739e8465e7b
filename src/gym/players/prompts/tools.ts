// The four actions as tools that a model calls in its own format: a JSON object between <tool_call> tags, or an API's
// tool_calls.

import type { StopRule } from "../../../stop-rule.ts";
import { type EnvironmentRules, type ParsedAction, parseAction, type SQLAction } from "../../env/index.ts";
import { instructObservation, replyRules } from "./instruct.ts";
import type { Shown } from "./shown.ts";

export const TOOLS_ID = "tools-1";

/** A tool in the format of chat templates and OpenAI's API. */
export interface ActionTool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}

const PARAMETERS: Readonly<Record<SQLAction["action_type"], string>> = {
  DESCRIBE: "table",
  SAMPLE: "table",
  QUERY: "sql",
  ANSWER: "answer",
};

const tool = (type: SQLAction["action_type"], description: string, argument: string): ActionTool => ({
  type: "function",
  function: {
    name: type.toLowerCase(),
    description,
    parameters: {
      type: "object",
      properties: { [PARAMETERS[type]]: { type: "string", description: argument } },
      required: [PARAMETERS[type]],
    },
  },
});

/** The tools for these rules. */
export function actionTools({ answer_last, describe_many }: EnvironmentRules): readonly ActionTool[] {
  return [
    describe_many
      ? tool(
          "DESCRIBE",
          "Shows the columns and foreign keys of tables.",
          "the names of the tables, separated by commas",
        )
      : tool("DESCRIBE", "Shows the columns and foreign keys of one table.", "the name of one table"),
    tool("SAMPLE", "Shows the first rows of one table.", "the name of one table"),
    tool("QUERY", "Runs one SELECT statement and shows its rows.", "one SQLite SELECT statement"),
    answer_last
      ? tool(
          "ANSWER",
          "Gives the final answer and ends the task.",
          "@last for the whole result of your last query, when that is exactly what the question asks for",
        )
      : tool(
          "ANSWER",
          "Gives the final answer and ends the task.",
          "only the values: one value, several values separated by commas, or rows as the last result shows them, one row per line",
        ),
  ];
}

/** The system prompt; the chat template adds the tools. */
export function toolsSystem(rules: EnvironmentRules): string {
  return `You answer a question about a SQLite database that you cannot see. You explore it with tools, exactly one call per reply, and end with the tool answer.

${replyRules(rules).replaceAll("DESCRIBE", "describe").replaceAll("ANSWER", "answer")}`;
}

export function toolsObservation(observation: Shown): string {
  return instructObservation(observation).replace("give your ANSWER now", "call the tool answer now");
}

/** Ends a reply after one call. */
export const TOOLS_STOP: StopRule = {
  begin: /^[ \t]*<tool_call>/,
  before: /^[ \t]*<tool_response>/,
  oneLine: /^(?!)/,
  statement: /^(?!)/,
};

export const TOOLS_STOP_STRINGS = ["<tool_response>"] as const;

/** Converts an action to a call. */
export function callOf({ action_type, argument }: SQLAction): { name: string; arguments: Record<string, string> } {
  return { name: action_type.toLowerCase(), arguments: { [PARAMETERS[action_type]]: argument } };
}

/** Formats an action as Qwen and Hermes models write it. */
export function callText(action: SQLAction): string {
  const { name, arguments: given } = callOf(action);
  // Formatted like Python's json.dumps, which the models were trained on.
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${JSON.stringify(given).replace('":"', '": "')}}\n</tool_call>`;
}

/** Parses the first call in a text; a text without one is parsed as an action (see `parseAction`). Never throws. */
export function parseCall(text: string): ParsedAction {
  const mark = text.indexOf("<tool_call>");
  const from = text.indexOf("{", Math.max(0, mark));
  const action = from < 0 ? undefined : actionOf(readObject(text.slice(from, from + MAX_CALL)));
  return action ? { action, error: null } : parseAction(text);
}

/** Maximum characters of a call that are parsed. */
const MAX_CALL = 100_000;

/** Parses the JSON object at the start of a text, whatever follows it; accepts unescaped line breaks in strings. */
function readObject(text: string): unknown {
  let depth = 0;
  let json = "";
  let isString = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (isString && character === "\\") {
      json += character + (text[++i] ?? "");
      continue;
    }
    if (character === '"') isString = !isString;
    else if (!isString && character === "{") depth++;
    else if (!isString && character === "}") depth--;
    json += isString && character < " " ? JSON.stringify(character).slice(1, -1) : character;
    if (depth === 0) break;
  }
  try {
    return JSON.parse(json + '"'.repeat(isString ? 1 : 0) + "}".repeat(depth)); // close a truncated object
  } catch {
    return undefined;
  }
}

function actionOf(value: unknown): SQLAction | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { name, arguments: first, parameters, function: inner } = value as Record<string, unknown>;
  if (typeof inner === "object" && inner !== null) return actionOf(inner);
  if (typeof name !== "string") return undefined;
  const type = Object.keys(PARAMETERS).find((known) => name.toUpperCase().startsWith(known)) as
    | SQLAction["action_type"]
    | undefined;
  if (!type) return undefined;
  const given = first ?? parameters;
  const argument = argumentOf(typeof given === "string" ? (readObject(given) ?? given) : given, PARAMETERS[type]);
  return argument === undefined ? undefined : { action_type: type, argument };
}

/** The argument with this name, or the only argument there is. */
function argumentOf(given: unknown, key: string): string | undefined {
  if (typeof given !== "object" || given === null) return textOf(given);
  const values = given as Record<string, unknown>;
  const only = Object.values(values);
  return textOf(values[key] ?? (only.length === 1 ? only[0] : undefined));
}

/** Converts a value to the text of an argument; nested lists become lines. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (!Array.isArray(value)) return undefined;
  const isTable = value.some(Array.isArray);
  return isTable ? value.map((row) => [row].flat().join(" | ")).join("\n") : value.join(", ");
}
