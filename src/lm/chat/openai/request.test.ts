import fc from "fast-check";
import { expect, test } from "vitest";
import { LlmError } from "./error.ts";
import { parseRequest } from "./request.ts";

const user = { role: "user", content: "hi" };
const request = (more: object = {}) => parseRequest(JSON.stringify({ model: "m", messages: [user], ...more }));

/** The error of a request. */
function refusal(more: object | string): LlmError {
  try {
    if (typeof more === "string") parseRequest(more);
    else request(more);
  } catch (error) {
    if (error instanceof LlmError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

test("defaults are OpenAI's; null means the default; unknown keys are ignored", () => {
  const defaults = request();
  expect(defaults).toMatchObject({ temperature: 1, topP: 1, topK: 0, minP: 0, n: 1, stop: [], streams: false });
  expect(defaults).toMatchObject({ maxTokens: undefined, seed: undefined, tools: undefined, logprobs: false });
  const nulls = Object.fromEntries(
    ["temperature", "n", "stop", "tools", "tool_choice", "seed"].map((key) => [key, null]),
  );
  expect(request({ ...nulls, frequency_penalty: 1, user: "x", response_format: { type: "text" } })).toEqual(defaults);
});

test("values are passed on", () => {
  expect(request({ max_tokens: 5, max_completion_tokens: 7 }).maxTokens).toBe(7);
  expect(request({ max_tokens: 5, stop: "x", top_k: -1, parallel_tool_calls: false })).toMatchObject({
    ...{ maxTokens: 5, stop: ["x"], topK: 0, callsOne: true },
  });
  expect(request({ stream: true, stream_options: { include_usage: true } })).toMatchObject({
    ...{ streams: true, includesUsage: true },
  });
});

test("messages may have parts of text, tool calls and results", () => {
  const call = { id: "call_1", type: "function", function: { name: "query", arguments: '{"sql": "SELECT 1"}' } };
  const { messages } = request({
    messages: [
      {
        role: "developer",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "1" },
    ],
  });
  expect(messages).toEqual([
    { role: "system", content: "ab" },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ type: "function", function: { name: "query", arguments: { sql: "SELECT 1" } } }],
    },
    { role: "tool", content: "1" },
  ]);
});

test("tools are used unless tool_choice is none", () => {
  const tools = [{ type: "function", function: { name: "query", description: "d", strict: true } }];
  expect(request({ tools }).tools).toEqual([{ type: "function", function: { name: "query", description: "d" } }]);
  expect(request({ tools, tool_choice: "auto" }).tools).toHaveLength(1);
  expect(request({ tools, tool_choice: "none" }).tools).toBeUndefined();
});

test.each([
  ["{", undefined, /^the body is not JSON/],
  ["[1]", "", /expected object/i],
  [{ messages: [] }, "messages", /^messages: /],
  [{ messages: [{ role: "robot", content: "x" }] }, "messages.0.role", /system, developer, user, assistant or tool/],
  [{ messages: [{ role: "user" }] }, "messages.0.content", /expected a text or a list of text parts/],
  [{ messages: [{ role: "user", content: [{ type: "image_url" }] }] }, "messages.0.content", /text parts/],
  [{ model: 7 }, "model", /expected string/],
  [{ max_tokens: 0 }, "max_tokens", />=1/],
  [{ temperature: 3 }, "temperature", /<=2/],
  [{ top_p: 0 }, "top_p", />0/],
  [{ n: 65 }, "n", /<=64/],
  [{ seed: 1.5 }, "seed", /whole number/],
  [{ stop: [""] }, "stop.0", /./],
  [{ top_logprobs: 2, logprobs: true }, "top_logprobs", /only the log-prob of the chosen token/],
  [{ response_format: { type: "json_object" } }, "response_format", /json_object is not supported/],
  [{ response_format: 7 }, "response_format", /not supported/],
  [{ tool_choice: "required" }, "tool_choice", /required cannot be enforced/],
  [{ tool_choice: { type: "function", function: { name: "x" } } }, "tool_choice", /a named function/],
  [{ tool_choice: "auto" }, "tool_choice", /there are no tools/],
  [{ tools: [{ type: "function", function: { name: "has space" } }] }, "tools.0.function.name", /letters/],
] as const)("%j is refused with 400 and the key's name", (more, param, message) => {
  const error = refusal(more);
  expect(error).toMatchObject({ status: 400 });
  if (param) expect(error.param).toBe(param);
  expect(error.message).toMatch(message);
});

test("a tool call's arguments must be a JSON object", () => {
  const tool_calls = [{ id: "1", type: "function", function: { name: "q", arguments: "oops" } }];
  expect(refusal({ messages: [{ role: "assistant", tool_calls }] }).message).toMatch(/expected a JSON object as text/);
});

test("any JSON is accepted or refused with 400", () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 4 }),
      fc.constantFrom("messages", "tools", "stop", "n", "tool_choice"),
      (value, key) => {
        try {
          request({ [key]: value });
        } catch (error) {
          expect(error).toBeInstanceOf(LlmError);
        }
      },
    ),
  );
});
