// Tasks from a file, for agents: any fields besides `id` and `text` are kept and handed to the agent.
import { readFileSync } from "node:fs";
import { messageOf, UsageError } from "../../errors.ts";
import type { Task } from "../environment.ts";
import { taskRecords } from "../task-records.ts";
import type { TaskSplits } from "../text-environment.ts";

const REMEDY = 'write tasks like {"id": "1", "text": "Say 1."}, with "split": "eval" for those that are not trained on';

/** Reads tasks; without any `split`, a tenth of them is held out later. */
export function readTasks(file: string): readonly Task[] | TaskSplits {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new UsageError({ what: "cannot read the tasks", value: file, remedy: messageOf(cause), cause });
  }
  const tasks = taskRecords(text, file).map(({ record, where }) => taskOf(record, `${file}, ${where}`));
  if (tasks.every(({ split }) => split === undefined)) return tasks.map(({ task }) => task);
  const of = (wanted: "train" | "eval") =>
    tasks.filter(({ split = "train" }) => split === wanted).map(({ task }) => task);
  return { train: of("train"), eval: of("eval") };
}

function taskOf(record: unknown, at: string): { readonly task: Task; readonly split: "train" | "eval" | undefined } {
  if (isRecord(record)) {
    const { id, text, split, ...others } = record;
    const isNamed = (typeof id === "string" && id !== "") || typeof id === "number";
    const isSplit = split === undefined || split === "train" || split === "eval";
    if (isNamed && isSplit && typeof text === "string") return { task: { ...others, id: String(id), text }, split };
  }
  throw new UsageError({ what: `${at}: not a task`, value: JSON.stringify(record) ?? "nothing", remedy: REMEDY });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
