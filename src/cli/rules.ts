// Flags for the environment's rules, the same in every command that makes environments.
import type { Command } from "commander";
import { type EnvironmentRules, GUIDED_RULES, rulesOf, rulesSchema } from "../env/index.ts";
import { wholeNumber } from "./output.ts";

export interface RulesFlags {
  readonly guided?: boolean;
  readonly errorHints?: boolean;
  readonly endAfterFailures?: number;
  readonly answerLast?: boolean;
}

/** Adds --guided and a flag for each rule. */
export function addRulesOptions(command: Command): Command {
  const { error_hints, end_after_failures, answer_last } = rulesSchema.unwrap().shape;
  return command
    .option("--guided", "the rules for models that others pretrained: all three below, with 3 failures")
    .option("--error-hints", error_hints.description!)
    .option("--end-after-failures <number>", end_after_failures.description!, wholeNumber("--end-after-failures"))
    .option("--answer-last", answer_last.description!);
}

/** The rules the flags ask for. */
export function rulesNamed({ guided, errorHints, endAfterFailures, answerLast }: RulesFlags): EnvironmentRules {
  return rulesOf({
    ...(guided && GUIDED_RULES),
    ...(errorHints !== undefined && { error_hints: errorHints }),
    ...(endAfterFailures !== undefined && { end_after_failures: endAfterFailures }),
    ...(answerLast !== undefined && { answer_last: answerLast }),
  });
}
