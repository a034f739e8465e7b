import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readTasks } from "./task-file.node.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlenv-tasks-"));
afterAll(() => rmSync(folder, { recursive: true }));

const [one, two] = [
  { id: "1", text: "Say 1.", answer: "1", level: 3 },
  { id: "2", text: "Say 2." },
];
const read = (text: string) => {
  const file = join(folder, "tasks");
  writeFileSync(file, text);
  return readTasks(file);
};

test("tasks are a list, one per line, or two splits, with all their fields", () => {
  expect(read(JSON.stringify([one, two]))).toEqual([one, two]);
  expect(read(`${JSON.stringify(one)}\n\n${JSON.stringify(two)}\n`)).toEqual([one, two]);
  expect(read(JSON.stringify(one))).toEqual([one]);
  expect(read(JSON.stringify({ train: [one], eval: [two] }))).toEqual({ train: [one], eval: [two] });
  expect(
    read(
      JSON.stringify([
        { ...one, id: 1 },
        { ...two, split: "eval" },
      ]),
    ),
  ).toEqual({ train: [one], eval: [two] });
});

test("what is no task is refused with its place", () => {
  expect(() => read(`${JSON.stringify(one)}\n{"id": 2}`)).toThrow(/line 2: not a task: {"id":2}/);
  expect(() => read("[7]")).toThrow(/task 1: not a task: 7/);
  expect(() => read('{"train": [{}]}')).toThrow(/train 1: not a task/);
  expect(() => read("no json")).toThrow(/line 1 is not JSON/);
  expect(() => readTasks(join(folder, "none"))).toThrow(/cannot read the tasks/);
});
