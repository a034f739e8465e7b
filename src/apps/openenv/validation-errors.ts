// What is wrong with a message, in the form Python clients know: one {type, loc, msg, input} for each problem.
import type { z } from "zod";
import { SqlEnvError } from "../../errors.ts";

export interface Problem {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/** Thrown when a message or body has the wrong shape. */
export class Invalid extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super("Invalid message");
    this.problems = problems;
  }
}

/** A value that fits a schema, or Invalid. */
export function checked<T>(schema: z.ZodType<T>, value: unknown, at: readonly (string | number)[] = []): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Invalid(problemsOf(parsed.error, value, at));
}

/** Problems told of one message: whoever makes more hears of the rest after correcting these. */
const MAX_PROBLEMS = 20;

/** The first problems a schema found in a value; `at` is put before each place. */
export function problemsOf(error: z.ZodError, value: unknown, at: readonly (string | number)[] = []): Problem[] {
  const problems = error.issues.slice(0, MAX_PROBLEMS).flatMap((issue): Problem[] => {
    const path = issue.path.map((key) => (typeof key === "symbol" ? String(key) : key));
    const input = path.reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value);
    const one = (type: string, msg: string, ctx?: Record<string, unknown>): Problem[] => [
      { type, loc: [...at, ...path], msg, input: echo(input), ...(ctx && { ctx }) },
    ];
    switch (issue.code) {
      case "unrecognized_keys":
        return issue.keys.slice(0, MAX_PROBLEMS).map((key) => ({
          type: "extra_forbidden",
          loc: [...at, ...path, key.slice(0, MAX_KEY)],
          msg: "Extra inputs are not permitted",
          input: null,
        }));
      case "invalid_value": {
        if (input === undefined) return missing(path);
        const values = issue.values.map((given) => `'${String(given)}'`);
        const expected = [values.slice(0, -1).join(", "), values.at(-1)].filter(Boolean).join(" or ");
        return one("literal_error", `Input should be ${expected}`, { expected });
      }
      case "invalid_type":
        if (input === undefined) return missing(path);
        return one(...typeProblem(issue.expected));
      case "too_small":
        return issue.inclusive
          ? one("greater_than_equal", `Input should be greater than or equal to ${issue.minimum}`, {
              ge: Number(issue.minimum),
            })
          : one("greater_than", `Input should be greater than ${issue.minimum}`, { gt: Number(issue.minimum) });
      case "too_big":
        return typeof input === "string"
          ? one("string_too_long", `String should have at most ${issue.maximum} characters`, {
              max_length: Number(issue.maximum),
            })
          : one("less_than_equal", `Input should be less than or equal to ${issue.maximum}`, {
              le: Number(issue.maximum),
            });
      default:
        return one("value_error", issue.message.slice(0, MAX_ECHO));
    }
  });
  return problems.slice(0, MAX_PROBLEMS);

  function missing(path: readonly (string | number)[]): Problem[] {
    const parent = path.slice(0, -1).reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], value);
    return [{ type: "missing", loc: [...at, ...path], msg: "Field required", input: echo(parent) }];
  }
}

const MAX_ECHO = 1_000; // characters of JSON
const MAX_KEY = 100; // characters of a key that is not known

/** A value as it is shown to whoever sent it: in full when it is small. What nests too deep to be written is not. */
function echo(value: unknown): unknown {
  try {
    const text = JSON.stringify(value) ?? "null";
    return text.length <= MAX_ECHO ? (value ?? null) : `${text.slice(0, MAX_ECHO)}…`;
  } catch {
    return "…";
  }
}

/** A text that is not JSON. */
export function jsonProblem(message: string): Problem {
  return { type: "json_invalid", loc: ["body", 0], msg: "JSON decode error", input: {}, ctx: { error: message } };
}

function typeProblem(expected: string): [type: string, msg: string] {
  switch (expected) {
    case "string":
      return ["string_type", "Input should be a valid string"];
    case "record":
    case "object":
      return ["dict_type", "Input should be a valid dictionary"];
    case "int":
      return ["int_type", "Input should be a valid integer"];
    case "number":
      return ["float_type", "Input should be a valid number"];
    default:
      return [`${expected}_type`, `Input should be a valid ${expected}`];
  }
}

/** Throws a crash of SQLite on: its thread must not go on, so nobody may turn it into a reply. */
export function passCrash(error: unknown): void {
  if (error instanceof SqlEnvError && error.code === "sqlite_crashed") throw error;
}
