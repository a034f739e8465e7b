// The environment as MCP tools: the four actions, one to start an episode, one that parses an action from a model's text.
import { z } from "zod";
import { messageOf } from "../../../errors.ts";
import { type ActionType, actionSchema, type EnvironmentRules, type SQLObservation } from "../../../gym/env/index.ts";
import { formatObservation, promptFor } from "../../../gym/players/index.ts";
import type { Envelope } from "../schemas.ts";
import type { Session } from "../session.ts";
import { checked, rethrowCrash } from "../validation-errors.ts";
import { RPC, RpcFault } from "./json-rpc.ts";

/** How MCP clients should use the tools; part of `initialize`. */
export const INSTRUCTIONS =
  "Questions about SQL databases. Call start for a question, look with describe, sample and query, then call answer once.";

/** Which convention a call's result follows: in OpenEnv's, unlike in MCP's, a failed call is an error. */
export type ToolStyle = "mcp" | "openenv";

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

/** Tools that only read a database. */
const LOOKING = new Set(["describe", "sample", "query"]);

/** The tools as MCP lists them, with both spellings of the schema's key, since clients differ. */
export function listTools(rules: EnvironmentRules): object[] {
  return TOOLS.map((tool) => {
    const { name, input } = tool;
    const description = describe(tool, rules);
    const schema = inputSchema(input);
    const annotations = { readOnlyHint: LOOKING.has(name), destructiveHint: false, openWorldHint: false };
    return { name, title: name, description, inputSchema: schema, input_schema: schema, annotations };
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
export function callTool(session: Session, params: Readonly<Record<string, unknown>>, style: ToolStyle): object {
  const { name } = params;
  if (typeof name !== "string" || name === "") throw new RpcFault(RPC.params, "Missing 'name' in params");
  try {
    return call(session, name, params.arguments ?? {}).result;
  } catch (error) {
    if (style === "openenv" || !(error instanceof ToolFault)) throw error;
    if (error.error_type === "tool_not_found") throw new RpcFault(RPC.params, error.message);
    return { content: [{ type: "text", text: error.message }], isError: true }; // for the model to read
  }
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
    return { observation: { tools, metadata: {} }, reward: null, done: false };
  }
  const { tool_name, arguments: args = {} } = checked(CALL, data);
  try {
    const { result, envelope } = call(session, tool_name, args);
    const observation = { tool_name, result, error: null, metadata: {} };
    return { observation, reward: envelope.reward, done: envelope.done };
  } catch (error) {
    rethrowCrash(error);
    const known = error instanceof ToolFault ? error : new ToolFault("execution_error", messageOf(error));
    const { error_type, message } = known;
    const observation = { tool_name, result: null, error: { error_type, message }, metadata: {} };
    return { observation, reward: null, done: false };
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

/** A tool's result: text for the model, structured content for programs. Keys in MCP's spelling and in OpenEnv's. */
function resultOf({ outcome, rules }: Session, { observation, reward, done }: Envelope, isStart: boolean): object {
  const { metadata: _, ...seen } = observation;
  const text = formatObservation({ ...seen, reward, done } as SQLObservation);
  const more = isStart ? { system_prompt: promptFor({}, rules).system } : {};
  const structured = { result: text, observation: seen, reward, done, outcome, ...more };
  return {
    content: [{ type: "text", text }],
    structuredContent: structured,
    structured_content: structured,
    isError: false,
    is_error: false,
    data: text,
    meta: null,
  };
}

/** A failed call as a JSON-RPC error. */
export function toolFailure(error: unknown): unknown {
  return error instanceof ToolFault ? new RpcFault(RPC.internal, error.message) : error;
}
