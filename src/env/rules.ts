// The rules of the environment that may be switched, and the id that names them in every result.
import { z } from "zod";
import { UsageError } from "../errors.ts";

/** Raised when the same settings come to mean another game: other observations, rewards or verdicts. */
export const RULES_VERSION = "env-1";

export const rulesSchema = z
  .object({
    error_hints: z
      .boolean()
      .default(false)
      .describe("errors about columns name the columns of tables already described"),
    end_after_failures: z
      .int()
      .min(2)
      .nullable()
      .default(null)
      .describe("end the episode when the same failing action was taken this often; null: never"),
    answer_last: z
      .boolean()
      .default(false)
      .describe("ANSWER: @last answers with the whole result of the last query that worked"),
  })
  .strict()
  .readonly();

/** Settings that change the game. */
export type EnvironmentRules = z.infer<typeof rulesSchema>;

/** Text answers, plain errors, no early end. */
export const DEFAULT_RULES: EnvironmentRules = Object.freeze(rulesSchema.parse({}));

/** For models that others pretrained and for benchmarks: the query counts, not the copying of its result. */
export const GUIDED_RULES: EnvironmentRules = Object.freeze({
  error_hints: true,
  end_after_failures: 3,
  answer_last: true,
});

/** A short name for the rules: `env-1` for the defaults, `env-1+hints+stuck3+last` with everything on. */
export function rulesId({ error_hints, end_after_failures, answer_last }: EnvironmentRules): string {
  return [
    RULES_VERSION,
    ...(error_hints ? ["hints"] : []),
    ...(end_after_failures === null ? [] : [`stuck${end_after_failures}`]),
    ...(answer_last ? ["last"] : []),
  ].join("+");
}

/** The rules an id names; undefined for an id of another version. */
export function rulesFromId(id: string): EnvironmentRules | undefined {
  const [version, ...parts] = id.split("+");
  const failures = parts.map((part) => /^stuck(\d{1,6})$/.exec(part)?.[1]).find((count) => count !== undefined);
  const rules = rulesSchema.safeParse({
    error_hints: parts.includes("hints"),
    end_after_failures: failures === undefined ? null : Number(failures),
    answer_last: parts.includes("last"),
  });
  return version === RULES_VERSION && rules.success && rulesId(rules.data) === id ? rules.data : undefined;
}

/** Only the rules among other settings; throws UsageError for a value that is none. */
export function rulesOf(settings: Partial<EnvironmentRules>): EnvironmentRules {
  const { error_hints, end_after_failures, answer_last } = settings;
  const parsed = rulesSchema.safeParse({ error_hints, end_after_failures, answer_last });
  if (parsed.success) return parsed.data;
  const { path } = parsed.error.issues[0]!;
  const key = path[0] as keyof EnvironmentRules;
  throw new UsageError({
    what:
      key === "end_after_failures" ? `${key} must be a whole number from 2, or null` : `${key} must be true or false`,
    value: String(settings[key]),
  });
}
