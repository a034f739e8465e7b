// Resolves the environment of a trainer: tasks that are played as text, SQL on a data set, or a complete environment.
import { UsageError } from "../../errors.ts";
import type { GRPOConfig } from "../config.ts";
import type { Environment } from "../environment.ts";
import { createTextEnvironment, type TextEnvironmentOptions } from "../text-environment.ts";
import { createSqlEnvironment, type SqlEnvironmentOptions } from "./sql-environment.ts";

/** Give `env` and `tasks` for an environment of your own, `data` (and `environments`) for SQL, or `environment`. */
export interface EnvironmentChoice
  extends Partial<SqlEnvironmentOptions>,
    Partial<Pick<TextEnvironmentOptions, "env" | "tasks" | "system" | "name">> {
  readonly config: GRPOConfig;
  readonly environment?: Environment | undefined;
}

/** The settings that need an optional method of an environment. */
const NEEDS = { turn_credit: "milestone", self_distillation: "failures" } as const;

/** Resolves the environment. Refuses a config that needs a method which the environment lacks. */
export function resolveEnvironment(choice: EnvironmentChoice): Environment {
  const { environment, data, env, config } = choice;
  const names = (["env", "data", "environment"] as const).filter((name) => choice[name] !== undefined);
  if (names.length > 1)
    throw new UsageError({ what: `both \`${names[0]}\` and \`${names[1]}\` are given`, remedy: "give one" });
  const given =
    environment ??
    (data && createSqlEnvironment({ data, config, environments: choice.environments })) ??
    (env && createTextEnvironment({ ...choice, env, tasks: tasksOf(choice), seed: config.seed }));
  if (!given)
    throw new UsageError({
      what: "a trainer needs an environment",
      remedy: "give `env` and `tasks`, or `data` for SQL",
    });
  for (const key of ["turn_credit", "self_distillation"] as const)
    if (config[key] > 0 && !given[NEEDS[key]])
      throw new UsageError({
        what: `${key} needs an environment with ${NEEDS[key]}(); this one has none`,
        value: given.name,
        remedy: `set ${key} to 0`,
      });
  return given;
}

function tasksOf({ tasks }: EnvironmentChoice): TextEnvironmentOptions["tasks"] {
  if (tasks) return tasks;
  throw new UsageError({ what: "`env` needs `tasks`", remedy: "give a list of { id, text }" });
}
