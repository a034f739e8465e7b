// Zod schema of the rules: keys, defaults and descriptions for configs, flags and docs.
import { z } from "zod";
import { DEFAULT_RULES, MIN_FAILURES } from "./rules.ts";

export const rulesSchema = z
  .object({
    error_hints: z
      .boolean()
      .default(DEFAULT_RULES.error_hints)
      .describe("errors about names end with the columns of described tables that the query uses"),
    end_after_failures: z
      .int()
      .min(MIN_FAILURES)
      .nullable()
      .default(DEFAULT_RULES.end_after_failures)
      .describe("end the episode when the same action has failed this often; null: never"),
    answer_last: z
      .boolean()
      .default(DEFAULT_RULES.answer_last)
      .describe("ANSWER: @last answers with the whole result of the last query that worked"),
    describe_many: z
      .boolean()
      .default(DEFAULT_RULES.describe_many)
      .describe("DESCRIBE: a, b describes several tables in one action"),
  })
  .strict()
  .readonly();
