// The body of POST /v1/chat/completions: OpenAI's keys that a local model can honour. Keys that others send are ignored,
// unless ignoring them would give an answer of the wrong kind.
import { z } from "zod";
import { messageOf } from "../../../errors.ts";
import { parseJson } from "../../../io/json.ts";
import type { ChatMessage, Tool } from "../index.ts";
import { FUNCTION_NAME } from "../tool-calls.ts";
import { LlmError } from "./error.ts";

/** Completions per request. */
const MAX_CHOICES = 64;
const MAX_MESSAGES = 2_048;
const MAX_TOOLS = 128;
const MAX_STOPS = 16;

const name = z.string().regex(FUNCTION_NAME, "expected 1 to 64 letters, digits, dots, underscores and dashes");

const textPart = z.looseObject({
  type: z.literal("text", { error: () => "only text parts are supported" }),
  text: z.string(),
});
const content = z.union([z.string(), z.array(textPart).transform((parts) => parts.map(({ text }) => text).join(""))], {
  error: () => "expected a text or a list of text parts",
});

const call = z.looseObject({
  id: z.string().nullish(),
  function: z.looseObject({
    name,
    arguments: z.string().transform((text, context) => {
      const parsed = z.record(z.string(), z.unknown()).safeParse(jsonOf(text));
      if (parsed.success) return parsed.data;
      context.addIssue({ code: "custom", message: "expected a JSON object as text" });
      return z.NEVER;
    }),
  }),
});

const message = z.discriminatedUnion(
  "role",
  [
    z.looseObject({ role: z.enum(["system", "developer", "user"]), content, name: name.nullish() }),
    z.looseObject({
      role: z.literal("assistant"),
      content: content.nullish(),
      tool_calls: z.array(call).max(MAX_TOOLS).nullish(),
    }),
    z.looseObject({ role: z.literal("tool"), content, name: name.nullish() }),
  ],
  { error: () => "expected a role: system, developer, user, assistant or tool" },
);

const tool = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({
    name,
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
  }),
});

const integer = z.int({
  error: ({ code }) => (code === "invalid_type" ? "expected a whole number" : undefined),
});
const count = integer.min(1);

const requestSchema = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1).max(MAX_MESSAGES),
  max_tokens: count.nullish(),
  max_completion_tokens: count.nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  /** Extensions, as vLLM has them; -1 is no limit. */
  top_k: integer.min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  n: count.max(MAX_CHOICES).nullish(),
  seed: integer.nullish(),
  stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(MAX_STOPS)]).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: integer.min(0).nullish(),
  tools: z.array(tool).max(MAX_TOOLS).nullish(),
  tool_choice: z.unknown().optional(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: z.unknown().optional(),
  /** Extension, as vLLM has it: adds `prompt_token_ids` and each choice's `token_ids`. */
  return_token_ids: z.boolean().nullish(),
});

/** A request whose values are valid, with defaults filled in. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  /** Undefined: as many as the context leaves. */
  readonly maxTokens: number | undefined;
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly n: number;
  readonly seed: number | undefined;
  readonly stop: readonly string[];
  readonly streams: boolean;
  readonly includesUsage: boolean;
  readonly logprobs: boolean;
  readonly tools: readonly Tool[] | undefined;
  readonly callsOne: boolean;
  readonly returnsIds: boolean;
}

/** Parses and checks a body. Throws LlmError 400 that names the key. */
export function parseRequest(body: string): ChatRequest {
  let json: unknown;
  try {
    json = parseJson(body);
  } catch (error) {
    throw new LlmError(400, { message: `the body is not JSON: ${messageOf(error)}` });
  }
  const parsed = requestSchema.safeParse(json);
  if (!parsed.success) {
    const { param, message } = firstIssue(parsed.error.issues);
    throw new LlmError(400, { message: param === "" ? message : `${param}: ${message}`, param });
  }
  const given = parsed.data;
  refuseUnsupported(given);
  const { tools, tool_choice: choice, stop } = given;
  const usesTools = tools && tools.length > 0 && choice !== "none";
  return {
    model: given.model,
    messages: given.messages.map(messageFor),
    maxTokens: given.max_completion_tokens ?? given.max_tokens ?? undefined,
    temperature: given.temperature ?? 1,
    topP: given.top_p ?? 1,
    topK: Math.max(0, given.top_k ?? 0),
    minP: given.min_p ?? 0,
    n: given.n ?? 1,
    seed: given.seed ?? undefined,
    stop: typeof stop === "string" ? [stop] : (stop ?? []),
    streams: given.stream ?? false,
    includesUsage: given.stream_options?.include_usage ?? false,
    logprobs: given.logprobs ?? false,
    tools: usesTools ? tools.map(toolFor) : undefined,
    callsOne: given.parallel_tool_calls === false,
    returnsIds: given.return_token_ids ?? false,
  };
}

type Given = z.infer<typeof requestSchema>;

/** Refuses settings that are not supported and cannot be ignored, because they ask for another kind of answer. */
function refuseUnsupported({ top_logprobs, tool_choice, response_format, tools }: Given): void {
  const refuse = (param: string, message: string) =>
    new LlmError(400, { message, param, code: "unsupported_parameter" });
  if (top_logprobs)
    throw refuse("top_logprobs", "top_logprobs: only the log-prob of the chosen token is available; leave it out or 0");
  const format = typeOf(response_format);
  if (response_format != null && format !== "text")
    throw refuse("response_format", `response_format: ${format ?? "this value"} is not supported; leave it out`);
  if (tool_choice == null || tool_choice === "none") return;
  if (tool_choice !== "auto") {
    const shown = typeof tool_choice === "string" ? tool_choice.slice(0, 50) : "a named function";
    throw refuse("tool_choice", `tool_choice: ${shown} cannot be enforced on this model; use auto or none`);
  }
  if (!tools || tools.length === 0) throw refuse("tool_choice", "tool_choice: there are no tools");
}

function typeOf(value: unknown): string | undefined {
  const type = typeof value === "object" && value !== null ? (value as { type?: unknown }).type : undefined;
  return typeof type === "string" ? type.slice(0, 50) : undefined;
}

function messageFor(message: Given["messages"][number]): ChatMessage {
  switch (message.role) {
    case "assistant": {
      const calls = message.tool_calls?.map(({ function: { name, arguments: args } }) => ({
        type: "function" as const,
        function: { name, arguments: args },
      }));
      return { role: "assistant", content: message.content ?? "", ...(calls?.length && { tool_calls: calls }) };
    }
    case "tool":
      return { role: "tool", content: message.content, ...(message.name && { name: message.name }) };
    default:
      return { role: message.role === "user" ? "user" : "system", content: message.content };
  }
}

function toolFor({ function: { name, description, parameters } }: z.infer<typeof tool>): Tool {
  return {
    type: "function",
    function: { name, ...(description != null && { description }), ...(parameters && { parameters }) },
  };
}

/** The first error, with the path to its value. */
function firstIssue(issues: readonly z.core.$ZodIssue[]): { param: string; message: string } {
  const { path, message } = issues[0]!;
  return { param: path.join("."), message: message.slice(0, 300) };
}

function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
