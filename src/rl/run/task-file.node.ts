// Tasks from a file: a JSON list, a JSON object { train, eval } with a list each, or one JSON object per line.
import { readFileSync } from "node:fs";
import { messageOf, UsageError } from "../../errors.ts";
import type { Task } from "../environment.ts";
import type { TaskSplits } from "../text-environment.ts";

const REMEDY = 'write tasks like {"id": "1", "text": "Say 1."}: a list, { "train": […], "eval": […] }, or one per line';

/** Reads tasks; `id` and `text` are checked when an environment is made of them. Other fields are kept. */
export function readTasks(file: string): readonly Task[] | TaskSplits {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new UsageError({ what: "cannot read the tasks", value: file, remedy: messageOf(cause), cause });
  }
  const whole = parse(text);
  if (Array.isArray(whole)) return whole.map((task, i) => taskOf(task, `${file}, task ${i + 1}`));
  if (isRecord(whole) && Array.isArray(whole.train) && Array.isArray(whole.eval ?? [])) {
    const list = (split: string, tasks: unknown) =>
      ((tasks ?? []) as unknown[]).map((task, i) => taskOf(task, `${file}, ${split} ${i + 1}`));
    return { train: list("train", whole.train), eval: list("eval", whole.eval) };
  }
  const lines = text.split("\n").map((line, i) => ({ line, at: `${file}, line ${i + 1}` }));
  return lines.filter(({ line }) => line.trim() !== "").map(({ line, at }) => taskOf(parse(line), at));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function taskOf(task: unknown, at: string): Task {
  if (isRecord(task) && typeof task.id === "string" && typeof task.text === "string") return task as unknown as Task;
  throw new UsageError({ what: `${at}: not a task`, value: JSON.stringify(task) ?? "not JSON", remedy: REMEDY });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
