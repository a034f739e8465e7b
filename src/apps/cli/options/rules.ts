// --guided and the environment's rules one by one, the same in every command that opens environments.
import type { Command } from "commander";
import { DEFAULT_RULES, type EnvironmentRules, GUIDED_RULES, rulesOf, rulesSchema } from "../../../gym/env/index.ts";
import { wholeNumber } from "../terminal/output.ts";

export interface RulesFlags {
  readonly guided?: boolean;
  readonly errorHints?: boolean;
  readonly endAfterFailures?: number;
  readonly answerLast?: boolean;
  readonly describeMany?: boolean;
}

/** Adds --guided and a flag for each rule. */
export function addRulesOptions(command: Command): Command {
  const { error_hints, end_after_failures, answer_last, describe_many } = rulesSchema.unwrap().shape;
  return command
    .optionsGroup("Environment rules:")
    .option("--guided", "rules for pretrained models: all four below, with 3 failures")
    .option("--no-guided", "default rules, whatever the model was trained with")
    .option("--error-hints", error_hints.description!)
    .option("--end-after-failures <number>", end_after_failures.description!, wholeNumber("--end-after-failures"))
    .option("--answer-last", answer_last.description!)
    .option("--describe-many", describe_many.description!);
}

/** The rules the flags select; without flags, those the model was trained with. */
export function rulesNamed(flags: RulesFlags, trained: EnvironmentRules = DEFAULT_RULES): EnvironmentRules {
  const { guided, errorHints, endAfterFailures, answerLast, describeMany } = flags;
  if ([guided, errorHints, endAfterFailures, answerLast, describeMany].every((flag) => flag === undefined))
    return trained;
  return rulesOf({
    ...(guided && GUIDED_RULES),
    ...(errorHints !== undefined && { error_hints: errorHints }),
    ...(endAfterFailures !== undefined && { end_after_failures: endAfterFailures }),
    ...(answerLast !== undefined && { answer_last: answerLast }),
    ...(describeMany !== undefined && { describe_many: describeMany }),
  });
}
