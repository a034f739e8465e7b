import fc from "fast-check";
import { expect, test } from "vitest";
import { ToolCallReader } from "./tool-calls.ts";

function read(pieces: readonly string[], isWhole = true) {
  const reader = new ToolCallReader();
  const parts = [...pieces.map((piece) => reader.add(piece)), reader.end(isWhole)];
  return { content: parts.map(({ content }) => content).join(""), calls: parts.flatMap(({ calls }) => calls) };
}

const CALL = '<tool_call>\n{"name": "query", "arguments": {"sql": "SELECT 1"}}\n</tool_call>';
const QUERY = { name: "query", arguments: { sql: "SELECT 1" } };

test("calls are separated from the text, and the white space around them is dropped", () => {
  expect(read([CALL])).toEqual({ content: "", calls: [QUERY] });
  expect(read([`I will look.\n${CALL}\n${CALL}\n`])).toEqual({ content: "I will look.", calls: [QUERY, QUERY] });
  expect(read(["1 < 2 and <tool", "s>"])).toEqual({ content: "1 < 2 and <tools>", calls: [] });
});

test("a call whose name no request may have stays text, so that clients can send every call back", () => {
  const odd = '<tool_call>{"name": "que ry", "arguments": {}}</tool_call>';
  expect(read([odd])).toEqual({ content: odd, calls: [] });
});

test("however a reply is cut into pieces, it is read alike", () => {
  const parts = fc.array(fc.constantFrom(CALL, "text ", "\n", "<tool_call>", "</tool_call>", "{", " é"), {
    maxLength: 6,
  });
  fc.assert(
    fc.property(parts, (given) => {
      const text = given.join("");
      expect(read([...text])).toEqual(read([text]));
    }),
  );
});

test("a call may lack its last tag, have line breaks in a text, or its arguments as text", () => {
  expect(read(['<tool_call>\n{"name": "query", "arguments": {"sql": "SELECT 1"}}'])).toMatchObject({ calls: [QUERY] });
  expect(read(['<tool_call>{"name": "q", "arguments": {"sql": "SELECT\n\t1"}}</tool_call>']).calls).toEqual([
    { name: "q", arguments: { sql: "SELECT\n\t1" } },
  ]);
  expect(read(['<tool_call>{"name": "q", "arguments": "{\\"a\\": 1}"}</tool_call>']).calls).toEqual([
    { name: "q", arguments: { a: 1 } },
  ]);
  expect(read(['<tool_call>{"name": "q"}</tool_call>']).calls).toEqual([{ name: "q", arguments: {} }]);
});

test("a call that cannot be parsed, or was truncated, stays text", () => {
  for (const text of [
    "<tool_call>{oops}</tool_call>",
    '<tool_call>{"name": 7}</tool_call>',
    "<tool_call>[1]</tool_call>",
  ])
    expect(read([text])).toEqual({ content: text, calls: [] });
  const open = '<tool_call>{"name": "q", "arguments": {}}';
  expect(read([open], false)).toEqual({ content: open, calls: [] });
});
