import fc from "fast-check";
import { expect, test } from "vitest";
import { shopDataSet } from "../../../../test/helpers/fixtures.ts";
import { ACTION_TYPES, DEFAULT_RULES, GUIDED_RULES, SQLEnvironment } from "../../env/index.ts";
import { promptFor } from "./prompt.ts";
import { actionTools, callText, parseCall } from "./tools.ts";

test("an action formatted as a call is parsed to the same action, whatever its argument", () => {
  fc.assert(
    fc.property(fc.constantFrom(...ACTION_TYPES), fc.string({ unit: "binary" }), (action_type, argument) => {
      expect(parseCall(callText({ action_type, argument }))).toEqual({
        action: { action_type, argument },
        error: null,
      });
    }),
    { numRuns: 300, seed: 20261116 },
  );
});

test.each([
  ['<tool_call>\n{"name": "query", "arguments": {"sql": "SELECT 1"}}\n</tool_call>', "QUERY", "SELECT 1"],
  ['I look.\n<tool_call>\n{"name": "Describe", "arguments": {"table": "a"}}\n</tool_call>', "DESCRIBE", "a"],
  // An unescaped line break.
  ['<tool_call>{"name": "query", "arguments": {"sql": "SELECT a\nFROM b"}}', "QUERY", "SELECT a\nFROM b"],
  ['<tool_call>{"name": "query", "arguments": {"sql": "SELECT 1', "QUERY", "SELECT 1"], // truncated
  ['{"name": "answer", "parameters": {"answer": ["x", "y"]}}', "ANSWER", "x, y"],
  ['{"name": "answer", "arguments": {"answer": [["x", 1], ["y", 2]]}}', "ANSWER", "x | 1\ny | 2"],
  ['{"name": "answer", "arguments": {"value": 5}}', "ANSWER", "5"],
  ['{"name": "query", "arguments": "{\\"sql\\": \\"SELECT 1\\"}"}', "QUERY", "SELECT 1"],
  ['{"type": "function", "function": {"name": "sample_table", "arguments": {"table": "a"}}}', "SAMPLE", "a"],
  ["QUERY: SELECT 1", "QUERY", "SELECT 1"], // text without a call is parsed as an action
  [
    '<tool_call>{"name": "describe", "arguments": {"table": "a"}}</tool_call><tool_call>{"name": "x"}</tool_call>',
    "DESCRIBE",
    "a",
  ],
])("reads %j", (text, action_type, argument) => {
  expect(parseCall(text)).toEqual({ action: { action_type, argument }, error: null });
});

test.each(["", "{", "{}", '{"name": "drop", "arguments": {}}', '{"name": "query"}', "<tool_call>"])(
  "text that is not a call is taken as a QUERY: %j",
  (text) => {
    const { action, error } = parseCall(text);
    expect([action.action_type, error?.code]).toEqual(["QUERY", "action_parse"]);
  },
);

test("the tools say what the rules allow, and the prompt's examples call them", () => {
  const said = (rules: typeof DEFAULT_RULES) => JSON.stringify(actionTools(rules));
  expect(said(DEFAULT_RULES)).not.toContain("@last");
  expect(said(GUIDED_RULES)).toContain("@last");
  const { id, system, examples, format } = promptFor({ prompt: "tools", shots: 1 }, GUIDED_RULES);
  expect(id).toBe("tools-1/1-shot");
  expect(system).not.toMatch(/DESCRIBE|ANSWER|QUERY/);
  expect(examples.map(({ isFirst }) => isFirst)).toEqual([true, false, false, false, false]);
  expect(examples.at(-1)!.assistant).toBe(
    '<tool_call>\n{"name": "answer", "arguments": {"answer": "@last"}}\n</tool_call>',
  );
  const env = new SQLEnvironment(shopDataSet(), { step_budget: 2 });
  env.reset({ question_id: "shop_eval_000" });
  expect(format(env.step({ action_type: "DESCRIBE", argument: "customers" }))).toContain("call the tool answer now");
});
