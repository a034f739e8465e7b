// The environment as MCP tools: the four actions, one to start an episode, one that parses an action from a model's text.
import { z } from "zod";
import { messageOf } from "../../../errors.ts";
import { type ActionType, actionSchema, type EnvironmentRules, type SQLObservation } from "../../../gym/env/index.ts";
import { formatObservation, promptFor } from "../../../gym/players/index.ts";
import type { Envelope } from "../schemas.ts";
import type { Session } from "../session.ts";
import { checked, rethrowCrash } from "../validation-errors.ts";
import { RPC, RpcFault } from "./json-rpc.ts";

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<Record<string, unknown>>;
  readonly run: (session: Session, args: Record<string, unknown>) => Envelope;
}

/** A tool with one text parameter that is one action. */
function actionTool(action_type: ActionType, argument: string, description: string, meaning: string): Tool {
  return {
    name: action_type.toLowerCase(),
    description,
    input: z.strictObject({ [argument]: z.string().describe(meaning) }),
    run: (session, args) => session.step({ action_type, argument: args[argument] }),
  };
}

const TOOLS: readonly Tool[] = [
  {
    name: "start",
    description: "Start an episode: gives a question and the names of the tables it is about.",
    input: z.strictObject({
      question_id: z.string().nullish().describe("ask this question"),
      split: z.string().nullish().describe("ask a question of this split, train or eval"),
      index: z.int().min(0).nullish().describe("ask the question at this place of the split"),
      seed: z.int().nullish().describe("the same seed asks the same question"),
    }),
    run: (session, args) => session.reset(args),
  },
  actionTool("DESCRIBE", "table", "See a table's columns, types, keys and number of rows.", "the table's name"),
  actionTool("SAMPLE", "table", "See the first rows of a table.", "the table's name"),
  actionTool(
    "QUERY",
    "sql",
    "Run one SELECT statement and see its result.",
    "one SELECT statement in SQLite's dialect",
  ),
  actionTool(
    "ANSWER",
    "answer",
    "Give the answer, which ends the episode: one value; a list a, b, c; or one row a line, cells between ' | '.",
    "nothing but the values",
  ),
  {
    name: "act",
    description: "Take an action written as a line of text, ACTION_TYPE: argument.",
    input: z.strictObject({
      text: z.string().describe(`for example "${actionSchema.unwrap().shape.action_type.options[0]}: orders"`),
    }),
    run: (session, { text }) => session.step({ text }),
  },
];

/** The tools as MCP lists them, with both spellings of the schema's key, since clients differ. */
export function listTools(rules: EnvironmentRules): object[] {
  return TOOLS.map((tool) => {
    const { name, input } = tool;
    const description = describe(tool, rules);
    const schema = inputSchema(input);
    return { name, title: name, description, inputSchema: schema, input_schema: schema, annotations: null };
  });
}

/** A tool's description under the session's rules. */
function describe({ name, description }: Tool, { answer_last, describe_many }: EnvironmentRules): string {
  if (name === "answer" && answer_last)
    return `${description} @last answers with the whole result of the last query that worked.`;
  return name === "describe" && describe_many ? `${description} Several names are separated by commas.` : description;
}

function inputSchema(input: z.ZodType): object {
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input" });
  return schema;
}

/** Runs `tools/call`. A call before the first episode starts one: MCP has no reset. */
export function callTool(session: Session, params: Readonly<Record<string, unknown>>): object {
  const { name } = params;
  if (typeof name !== "string" || name === "") throw new RpcFault(RPC.params, "Missing 'name' in params");
  return call(session, name, params.arguments ?? {}).result;
}

/** A step of type list_tools or call_tool; errors become part of the observation. */
export function toolAction(session: Session, data: Readonly<Record<string, unknown>>): Envelope {
  if (data.type === "list_tools") {
    checked(LIST, data);
    const tools = TOOLS.map((tool) => ({
      name: tool.name,
      description: describe(tool, session.rules),
      input_schema: inputSchema(tool.input),
    }));
    return { observation: { tools }, reward: null, done: false };
  }
  const { tool_name, arguments: args = {} } = checked(CALL, data);
  try {
    const { result, envelope } = call(session, tool_name, args);
    return { observation: { tool_name, result, error: null }, reward: envelope.reward, done: envelope.done };
  } catch (error) {
    rethrowCrash(error);
    const known = error instanceof ToolFault ? error : new ToolFault("execution_error", messageOf(error));
    const { error_type, message } = known;
    return { observation: { tool_name, result: null, error: { error_type, message } }, reward: null, done: false };
  }
}

const metadata = z.record(z.string(), z.unknown()).optional();
const LIST = z.strictObject({ type: z.string(), metadata });
const CALL = z.strictObject({
  type: z.string(),
  tool_name: z.string(),
  arguments: z.record(z.string(), z.unknown()).optional(),
  metadata,
});

/** A failed call with the protocol's error type. */
class ToolFault extends Error {
  readonly error_type: "execution_error" | "invalid_args" | "tool_not_found";

  constructor(error_type: ToolFault["error_type"], message: string) {
    super(message);
    this.error_type = error_type;
  }
}

function call(session: Session, name: string, args: unknown): { result: object; envelope: Envelope } {
  const tool = TOOLS.find((known) => known.name === name);
  if (!tool) throw new ToolFault("tool_not_found", `Unknown tool: '${name.slice(0, 100)}'`);
  const parsed = tool.input.safeParse(args);
  if (!parsed.success) {
    const said = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "arguments"}: ${message}`);
    throw new ToolFault("invalid_args", `Invalid arguments for tool '${name}': ${said.join("; ").slice(0, 1_000)}`);
  }
  try {
    if (!session.isPlaying && name !== "start") session.reset();
    const envelope = tool.run(session, parsed.data);
    return { result: resultOf(session, envelope, name === "start"), envelope };
  } catch (error) {
    rethrowCrash(error);
    throw new ToolFault("execution_error", `Error calling tool '${name}': ${messageOf(error)}`);
  }
}

/** A tool's result: text for the model, structured content for programs. */
function resultOf({ outcome, rules }: Session, { observation, reward, done }: Envelope, isStart: boolean): object {
  const text = formatObservation({ ...observation, reward, done } as SQLObservation);
  const more = isStart ? { system_prompt: promptFor({}, rules).system } : {};
  return {
    content: [{ type: "text", text, annotations: null, meta: null }],
    structured_content: { result: text, observation, reward, done, outcome, ...more },
    meta: null,
    data: text,
    is_error: false,
  };
}

/** A failed call as a JSON-RPC error. */
export function toolFailure(error: unknown): unknown {
  return error instanceof ToolFault ? new RpcFault(RPC.internal, error.message) : error;
}
