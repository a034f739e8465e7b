// Optional rules of the environment, and the id that names them in every result. Has no dependencies, because the
// browser client also parses ids; the zod schema is in rules-schema.ts.
import { UsageError } from "../../errors.ts";

/** Incremented when the same settings start to give other observations, rewards or verdicts. */
export const RULES_VERSION = "env-1";

/** Settings that change observations, rewards or verdicts. */
export interface EnvironmentRules {
  /** Adds the columns of described tables to errors about unknown names. */
  readonly error_hints: boolean;
  /** Ends the episode when the same action has failed this many times; null: never. */
  readonly end_after_failures: number | null;
  /** Lets `ANSWER: @last` answer with the whole result of the last successful query. */
  readonly answer_last: boolean;
  /** Lets `DESCRIBE: a, b` describe several tables in one action. */
  readonly describe_many: boolean;
}

/** The defaults: answers as text, errors without hints, no early end. */
export const DEFAULT_RULES: EnvironmentRules = Object.freeze({
  error_hints: false,
  end_after_failures: null,
  answer_last: false,
  describe_many: false,
});

/**
 * Rules for pretrained models and benchmarks: these test whether a model finds the query, not whether it copies the
 * result.
 */
export const GUIDED_RULES: EnvironmentRules = Object.freeze({
  error_hints: true,
  end_after_failures: 3,
  answer_last: true,
  describe_many: true,
});

/** Minimum of `end_after_failures`. At 1, a single failure would cost as much as a wrong answer. */
export const MIN_FAILURES = 2;

/**
 * Returns a short name for the rules: `env-1` for the defaults, `env-1+hints+stuck3+last+many` with everything on.
 *
 * @example
 * rulesId(GUIDED_RULES); // "env-1+hints+stuck3+last+many"
 */
export function rulesId({ error_hints, end_after_failures, answer_last, describe_many }: EnvironmentRules): string {
  return [
    RULES_VERSION,
    ...(error_hints ? ["hints"] : []),
    ...(end_after_failures === null ? [] : [`stuck${end_after_failures}`]),
    ...(answer_last ? ["last"] : []),
    ...(describe_many ? ["many"] : []),
  ].join("+");
}

/** Parses an id into rules; undefined for another version. */
export function rulesFromId(id: string): EnvironmentRules | undefined {
  const parts = id.split("+");
  const failures = /(?:^|\+)stuck(\d{1,6})(?:\+|$)/.exec(id)?.[1];
  const rules: EnvironmentRules = {
    error_hints: parts.includes("hints"),
    end_after_failures: failures === undefined ? null : Number(failures),
    answer_last: parts.includes("last"),
    describe_many: parts.includes("many"),
  };
  return isCount(rules.end_after_failures) && rulesId(rules) === id ? rules : undefined;
}

/** Picks the rules from other settings, with defaults; throws UsageError for an invalid value. */
export function rulesOf(
  settings: { readonly [K in keyof EnvironmentRules]?: EnvironmentRules[K] | undefined },
): EnvironmentRules {
  const {
    error_hints = DEFAULT_RULES.error_hints,
    end_after_failures = DEFAULT_RULES.end_after_failures,
    answer_last = DEFAULT_RULES.answer_last,
    describe_many = DEFAULT_RULES.describe_many,
  } = settings;
  for (const [name, value] of Object.entries({ error_hints, answer_last, describe_many }))
    if (typeof value !== "boolean")
      throw new UsageError({ what: `${name} must be true or false`, value: String(value) });
  if (!isCount(end_after_failures)) {
    throw new UsageError({
      what: `end_after_failures must be a whole number from ${MIN_FAILURES}, or null`,
      value: String(end_after_failures),
    });
  }
  return { error_hints, end_after_failures, answer_last, describe_many };
}

function isCount(value: number | null): boolean {
  return value === null || (Number.isSafeInteger(value) && value >= MIN_FAILURES);
}
