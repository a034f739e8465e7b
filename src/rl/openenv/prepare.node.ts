// The environment of a training whose config names an OpenEnv server (`env`) and a file of tasks (`tasks`).
import { readFileSync } from "node:fs";
import { messageOf, UsageError } from "../../errors.ts";
import type { GRPOConfig } from "../config.ts";
import { connectEnvironment, type ServerEnvironment } from "./server-environment.ts";
import { parseTasks } from "./tasks.ts";

/** The environment variable with the server's API key; it is sent as a bearer token and written nowhere. */
const API_KEY = "OPENENV_API_KEY";

/** Settings that only SQL trainings have, each with the value that turns it off. */
export const SQL_ONLY = {
  sft_steps: 0,
  self_taught_rounds: 0,
  turn_credit: 0,
  self_distillation: 0,
} as const;

/** Settings that say how to use a server. */
const SERVER_ONLY = ["tasks", "system", "action_template", "observation_field", "solved_reward"] as const;

/** Connects to the server that a config names; undefined if it names none. Throws UsageError for settings that do not go together. */
export async function openServerEnvironment(
  config: GRPOConfig,
  onNote?: (text: string) => void,
): Promise<ServerEnvironment | undefined> {
  const { env, tasks } = config;
  if (env === null) {
    const useless = SERVER_ONLY.find((key) => config[key] !== null);
    if (useless === undefined) return undefined;
    throw new UsageError({
      what: `${useless} is for an OpenEnv server, but --env is not given; ${useless} is`,
      value: String(config[useless]),
      remedy: "give --env with the server's URL, or leave it out",
    });
  }
  if (tasks === null)
    throw new UsageError({
      what: "--env needs --tasks, a file of tasks",
      value: env,
      remedy: 'for example one line per task: {"id": "1", "reset": {"seed": 1}}',
    });
  for (const key of Object.keys(SQL_ONLY) as (keyof typeof SQL_ONLY)[])
    if (config[key] !== SQL_ONLY[key])
      throw new UsageError({
        what: `${key} needs SQL; with --env it must be ${SQL_ONLY[key]}, not`,
        value: config[key],
        remedy:
          key === "sft_steps" ? "fine-tune the model beforehand, and give its folder as --model-name" : "leave it out",
      });
  return connectEnvironment(env, {
    ...config,
    tasks: parseTasks(readTasks(tasks), tasks),
    apiKey: process.env[API_KEY] || undefined,
    onNote,
  });
}

function readTasks(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new UsageError({ what: `the tasks cannot be read (${messageOf(cause)})`, value: file, cause });
  }
}
