// Resolves the environment of a trainer: a given one, or the SQL environment on a data set.
import { UsageError } from "../../errors.ts";
import type { GRPOConfig } from "../config.ts";
import type { Environment } from "../environment.ts";
import { createSqlEnvironment, type SqlEnvironmentOptions } from "./sql-environment.ts";

/** Give `environment`, or `data` (and `environments`) for the SQL environment on a data set. */
export interface EnvironmentChoice extends Partial<SqlEnvironmentOptions> {
  readonly config: GRPOConfig;
  readonly environment?: Environment | undefined;
}

/** The settings that need an optional method of an environment. */
const NEEDS = { turn_credit: "milestone", self_distillation: "failures" } as const;

/** Resolves the environment. Refuses a config that needs a method which the environment lacks. */
export function resolveEnvironment({ environment, data, environments, config }: EnvironmentChoice): Environment {
  if (environment && data)
    throw new UsageError({ what: "both `environment` and `data` are given", remedy: "give one" });
  const given = environment ?? (data && createSqlEnvironment({ data, config, environments }));
  if (!given)
    throw new UsageError({ what: "a trainer needs an environment", remedy: "give `environment`, or `data` for SQL" });
  for (const key of ["turn_credit", "self_distillation"] as const)
    if (config[key] > 0 && !given[NEEDS[key]])
      throw new UsageError({
        what: `${key} needs an environment with ${NEEDS[key]}(); this one has none`,
        value: given.name,
        remedy: `set ${key} to 0`,
      });
  return given;
}
