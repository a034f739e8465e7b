import { expect, test } from "vitest";
import { defaultField, observationText } from "./observation-text.ts";
import { parseTasks, resetOptions, trainerTasks } from "./tasks.ts";

test("tasks are a JSON list or JSON Lines", () => {
  const tasks = [
    { id: "a", text: "Go.", reset: { level: 2 }, group: "g", answer: "5", difficulty: "easy", split: "eval" as const },
    { id: "7" },
  ];
  expect(parseTasks(JSON.stringify([tasks[0], { id: 7 }]))).toEqual(tasks);
  expect(parseTasks(`${JSON.stringify(tasks[0])}\r\n\n${JSON.stringify(tasks[1])}\n`)).toEqual(tasks);
  expect(parseTasks('{"train": [{"id": 7}], "eval": [{"id": 8}]}')).toEqual([
    { id: "7", split: "train" },
    { id: "8", split: "eval" },
  ]);
  const { split: _, reset: __, ...task } = tasks[0]!;
  expect(trainerTasks(tasks)).toEqual({ train: [{ id: "7", text: "" }], eval: [task] });
  expect(trainerTasks(tasks.slice(1))).toEqual([{ id: "7", text: "" }]);
  expect(resetOptions(tasks[0]!, 3)).toEqual({ seed: 3, level: 2 });
  expect(resetOptions({ id: "a", reset: { seed: 4 } }, 3)).toEqual({ seed: 4 });
});

test.each([
  ['{"id": "a"}\n{"id": }', /t\.jsonl, line 2 is not JSON/],
  ['{"id": "a"}\n{"text": "x"}', /t\.jsonl, line 2 is not a task: id .*"id", "text"\?/],
  ['[{"id": "a", "prompt": "x"}]', /t\.jsonl, task 1 is not a task .*unrecognized key.*prompt/i],
  ['{"id": "a", "split": "test"}', /split/],
  ["[]", /there are no tasks in: t\.jsonl/],
  ["\n", /there are no tasks in/],
])("the task file %j is refused", (text, message) => {
  expect(() => parseTasks(text, "t.jsonl")).toThrow(message);
});

test("an observation is read by one field, or as JSON", () => {
  const properties = { done: {}, prompt: { type: "string" }, legal: { type: "array" } };
  expect(defaultField({ properties })).toBe("prompt");
  for (const error of [{ type: "string" }, { anyOf: [{ type: "string" }, { type: "null" }] }]) {
    expect(defaultField({ properties: { error } })).toBe("error");
    expect(defaultField({ properties: { ...properties, error } })).toBeNull();
  }
  const seen = { prompt: "Go.", legal: [1, 2], deep: { board: "x" }, metadata: {} };
  expect(observationText(seen, "prompt")).toBe("Go.");
  expect(observationText(seen, "legal")).toBe("[1,2]");
  expect(observationText(seen, "deep.board")).toBe("x");
  expect(observationText(seen, null)).toBe('{"prompt":"Go.","legal":[1,2],"deep":{"board":"x"}}');
  expect(() => observationText(seen, "board.x")).toThrow(/no text in its field board\.x.*prompt, legal, deep/s);
});
