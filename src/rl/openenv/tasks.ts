// The tasks of an environment on a server, from JSON or JSON Lines.
import { z } from "zod";
import { UsageError } from "../../errors.ts";
import type { JsonObject } from "../../gym/client/index.ts";
import type { Task, TaskSplit } from "../environment.ts";
import { taskRecords } from "../task-records.ts";
import type { TaskSplits } from "../text-environment.ts";

export type ServerTask = z.infer<typeof taskSchema>;
const taskSchema = z.strictObject({
  id: z.union([z.string().min(1), z.number()]).transform(String),
  /** The first message; without it, the first observation is. */
  text: z.string().optional(),
  /** Options of the server's reset. */
  reset: z.record(z.string(), z.unknown()).optional(),
  group: z.string().optional(),
  answer: z.string().optional(),
  difficulty: z.string().optional(),
  /** Without any, a tenth is held out for evaluation. */
  split: z.enum(["train", "eval"]).optional(),
});

/**
 * Parses a file of tasks: a JSON list, one task per line, or { train, eval } with a list each.
 *
 * @example
 * const tasks = parseTasks('{"id": "a", "reset": {"seed": 1}}\n{"id": "b", "reset": {"seed": 2}}');
 */
export function parseTasks(text: string, file = "the task file"): ServerTask[] {
  return taskRecords(text, file).map(({ record, where }) => {
    const parsed = taskSchema.safeParse(record);
    if (parsed.success) return parsed.data;
    const { path, message, code } = parsed.error.issues[0]!;
    const field = path.join(".");
    throw new UsageError({
      what: `${file}, ${where} is not a task${field ? `: ${field}` : ""} (${code === "unrecognized_keys" ? message.replace(/^U/, "u") : message.replace(/^Invalid input: /, "")})`,
      value: JSON.stringify(record),
      remedy: 'a task is {"id", "text"?, "reset"?, "group"?, "answer"?, "difficulty"?, "split"?}',
    });
  });
}

/** The trainer's tasks. The text of a task without one is empty: its record has the first observation. */
export function trainerTasks(tasks: readonly ServerTask[]): readonly Task[] | TaskSplits {
  const isSplit = tasks.some(({ split }) => split !== undefined);
  const all = tasks.map(({ id, text = "", group, answer, difficulty, split = "train" }) => ({
    split,
    task: {
      ...{ id, text },
      ...(group !== undefined && { group }),
      ...(answer !== undefined && { answer }),
      ...(difficulty !== undefined && { difficulty }),
    },
  }));
  const of = (wanted: TaskSplit): Task[] => all.filter(({ split }) => split === wanted).map(({ task }) => task);
  return isSplit ? { train: of("train"), eval: of("eval") } : all.map(({ task }) => task);
}

/** Options of the server's reset for a task: with a seed, by default one per task, so that its episodes begin alike. */
export function resetOptions({ reset = {} }: ServerTask, seed: number): JsonObject {
  return { seed, ...reset };
}
