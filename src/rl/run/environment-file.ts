// environment.json: the environment of a run that is not about SQL.
import type { Environment } from "../environment.ts";
import type { EnvironmentDescription, GoldAnswers } from "./records.ts";
import type { RunStore } from "./store.ts";

export const ENVIRONMENT_FILE = "environment.json";

/** What a run's pages say about the environment. */
export function describeEnvironment({ name, prompt, tasks }: Environment): EnvironmentDescription {
  return { name, prompt: prompt.id, tasks: { train: tasks("train").length, eval: tasks("eval").length } };
}

/** Writes environment.json; a resumed run writes it again. */
export function keepEnvironment(store: RunStore, environment: Environment): void {
  store.write(ENVIRONMENT_FILE, `${JSON.stringify(describeEnvironment(environment))}\n`);
}

/** The expected answers of the tasks that have one, by id. */
export function taskAnswers({ tasks }: Environment): GoldAnswers {
  const all = [...tasks("train"), ...tasks("eval")];
  return Object.fromEntries(
    all.flatMap(({ id, answer }) => (answer === undefined ? [] : [[id, { query: null, answer }]])),
  );
}
