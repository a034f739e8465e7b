// Validation errors in Pydantic's format, which Python clients expect: one {type, loc, msg, input} per error.
import { z } from "zod";
import { SqlEnvError } from "../../errors.ts";

export interface ErrorDetail {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/** Thrown when a message or body does not match its schema. */
export class InvalidMessage extends Error {
  readonly details: readonly ErrorDetail[];

  constructor(details: readonly ErrorDetail[]) {
    super("Invalid message");
    this.details = details;
  }
}

const INTEGER = "integer";

/** An integer; zod alone reports a text in its place as if any number were allowed. */
export const integer = z.int(INTEGER);

/** Parses a value with a schema; throws InvalidMessage. */
export function checked<T>(schema: z.ZodType<T>, value: unknown, at: readonly (string | number)[] = []): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new InvalidMessage(errorDetails(parsed.error, value, at));
}

/** Errors reported per message; the rest appear once these are fixed. */
const MAX_DETAILS = 20;

/** The first errors of a value; `at` is prepended to each location. */
export function errorDetails(error: z.ZodError, value: unknown, at: readonly (string | number)[] = []): ErrorDetail[] {
  const details = error.issues.slice(0, MAX_DETAILS).flatMap((issue): ErrorDetail[] => {
    const path = issue.path.map((key) => (typeof key === "symbol" ? String(key) : key));
    const input = path.reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value);
    const one = (type: string, msg: string, ctx?: Record<string, unknown>): ErrorDetail[] => [
      { type, loc: [...at, ...path], msg, input: echo(input), ...(ctx && { ctx }) },
    ];
    switch (issue.code) {
      case "unrecognized_keys":
        return issue.keys.slice(0, MAX_DETAILS).map((key) => ({
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
        return one(...typeError(issue.message === INTEGER ? "int" : issue.expected, input));
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
  return details.slice(0, MAX_DETAILS);

  function missing(path: readonly (string | number)[]): ErrorDetail[] {
    const parent = path.slice(0, -1).reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], value);
    return [{ type: "missing", loc: [...at, ...path], msg: "Field required", input: echo(parent) }];
  }
}

const MAX_ECHO = 1_000; // characters of JSON
const MAX_KEY = 100; // characters of an unknown key

/** A value as echoed to its sender: in full if small; "…" if nested too deeply to serialize. */
function echo(value: unknown): unknown {
  try {
    const text = JSON.stringify(value) ?? "null";
    return text.length <= MAX_ECHO ? (value ?? null) : `${text.slice(0, MAX_ECHO)}…`;
  } catch {
    return "…";
  }
}

/** The error for a text that is not JSON. */
export function jsonErrorDetail(message: string): ErrorDetail {
  return { type: "json_invalid", loc: ["body", 0], msg: "JSON decode error", input: {}, ctx: { error: message } };
}

function typeError(expected: string, input: unknown): [type: string, msg: string] {
  switch (expected) {
    case "string":
      return ["string_type", "Input should be a valid string"];
    case "object":
      return ["model_attributes_type", "Input should be a valid dictionary or object to extract fields from"];
    case "record":
      return ["dict_type", "Input should be a valid dictionary"];
    case "int":
      if (typeof input === "string")
        return ["int_parsing", "Input should be a valid integer, unable to parse string as an integer"];
      return typeof input === "number"
        ? ["int_from_float", "Input should be a valid integer, got a number with a fractional part"]
        : ["int_type", "Input should be a valid integer"];
    case "number":
      return ["float_type", "Input should be a valid number"];
    default:
      return [`${expected}_type`, `Input should be a valid ${expected}`];
  }
}

/** Rethrows a crash of SQLite: its thread must not continue, so it must not become a reply. */
export function rethrowCrash(error: unknown): void {
  if (error instanceof SqlEnvError && error.code === "sqlite_crashed") throw error;
}
