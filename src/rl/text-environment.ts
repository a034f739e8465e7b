// An environment of one's own, from a class that plays episodes in text and a list of tasks.
import { UsageError } from "../errors.ts";
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import { random } from "../random.ts";
import { checkOpened } from "./check-returned.ts";
import { chatPrompt, type Environment, type Task, type TaskSplit, type TextEnvironment } from "./environment.ts";
import type { JudgedEpisode } from "./run/records.ts";
import { reportedMetrics } from "./text-record.ts";

/** Tasks for training and for evaluation; evaluation tasks are never trained on. */
export type TaskSplits = Readonly<Record<TaskSplit, readonly Task[]>>;

export interface TextEnvironmentOptions {
  /** Makes an environment; several play at once. */
  readonly env: () => TextEnvironment;
  /** A tenth of a plain list, drawn by the seed, is held out for evaluation. */
  readonly tasks: readonly Task[] | TaskSplits;
  /** System prompt. @default none */
  readonly system?: string | undefined;
  /** Name in records and logs. @default "text" */
  readonly name?: string | undefined;
  /** An episode whose rewards add up to this is solved, where its last step does not say. @default to more than 0 */
  readonly solvedReward?: number | undefined;
  /** Seed of the held-out tenth. @default 0 */
  readonly seed?: number | undefined;
}

/** Share of a plain list of tasks that is held out. */
const HELD_OUT = 0.1;

/**
 * The trainer's environment for tasks that are played as text.
 *
 * @example
 * const tasks = [1, 2, 3, 4].map((n) => ({ id: `${n}`, text: `Say ${n}.` }));
 * const play = () => {
 *   let wanted = "";
 *   return {
 *     reset: ({ id, text }: Task) => {
 *       wanted = id;
 *       return { text };
 *     },
 *     step: (reply: string) => ({ text: "", reward: reply.trim() === wanted ? 1 : 0, done: true }),
 *   };
 * };
 * const environment = createTextEnvironment({ env: play, tasks, system: "Repeat the number." });
 */
export function createTextEnvironment(options: TextEnvironmentOptions): Environment {
  const { env, system = "", name = "text", seed = 0, solvedReward } = options;
  const tasks = isList(options.tasks) ? holdOut(options.tasks, seed) : options.tasks;
  checkTasks(tasks);
  return {
    name,
    prompt: chatPrompt(promptName(name, system), system),
    tasks: (split) => tasks[split],
    open: () => open(name, env),
    solvedReward,
    metrics: reportedMetrics,
    judge: async (records) => judged(records),
  };
}

/** An environment that cannot be made fails the episode it is for, as one that throws later. */
function open(name: string, env: () => TextEnvironment): TextEnvironment {
  try {
    return checkOpened(name, env());
  } catch (error) {
    const fail = (): never => {
      throw error;
    };
    return { reset: fail, step: fail };
  }
}

/** Whether each task was solved; rules about SQL queries do not apply. Aborted episodes are left out. */
function judged(records: readonly EpisodeRecord[]): JudgedEpisode[] {
  return records
    .filter(({ error }) => error === null)
    .map(({ question_id, database_name: database, seen, correctness }) => {
      return { question_id, database, seen, answer: correctness === 1, spider: false, bird: false };
    });
}

function isList(tasks: readonly Task[] | TaskSplits): tasks is readonly Task[] {
  return Array.isArray(tasks);
}

/** Whole groups are held out where tasks have groups, since tasks of one group are alike. */
function holdOut(tasks: readonly Task[], seed: number): TaskSplits {
  const groupOf = (task: Task) => task.group ?? task.id;
  const groups = random("held-out", seed).shuffle([...new Set(tasks.map(groupOf))].sort());
  if (groups.length < 2) return { train: tasks, eval: [] };
  const held = new Set(groups.slice(0, Math.max(1, Math.round(HELD_OUT * groups.length))));
  return {
    train: tasks.filter((task) => !held.has(groupOf(task))),
    eval: tasks.filter((task) => held.has(groupOf(task))),
  };
}

function checkTasks(tasks: TaskSplits): void {
  if (tasks.train.length === 0)
    throw new UsageError({ what: "there are no training tasks", remedy: "give `tasks` at least one" });
  const ids = new Set<string>();
  for (const { id, text } of [...tasks.train, ...tasks.eval]) {
    if (typeof id !== "string" || id === "" || typeof text !== "string")
      throw new UsageError({
        what: "a task needs an id and a text, both strings; this one is",
        value: JSON.stringify({ id, text }),
        remedy: "give each task { id, text }",
      });
    if (ids.has(id))
      throw new UsageError({
        what: "two tasks have the same id",
        value: id,
        remedy: "ids are unique in training and evaluation together: records and results are kept by them",
      });
    ids.add(id);
  }
}

/** The name with a number made from the system prompt, so that it changes with the prompt. */
function promptName(name: string, system: string): string {
  return `${name}-${random("prompt", system)
    .int(0, 2 ** 32 - 1)
    .toString(16)
    .padStart(8, "0")}`;
}
