// From a server's observation to the text that the model reads: one field, or the whole observation as JSON.
import { SqlEnvError } from "../../errors.ts";
import type { JsonObject } from "../../gym/client/index.ts";

/** Fields of every observation, which are not its content. */
const BASE_FIELDS: readonly string[] = ["done", "reward", "metadata"];

interface Property {
  readonly type?: unknown;
  /** Types of an optional field. */
  readonly anyOf?: readonly { readonly type?: unknown }[];
}

function isText({ type, anyOf = [] }: Property): boolean {
  return type === "string" || anyOf.some((one) => one.type === "string");
}

/** The field that is read by default: the only string of the schema; null, for all fields as JSON, where there are several or none. */
export function defaultField({ properties }: JsonObject): string | null {
  const fields = Object.entries((properties ?? {}) as Readonly<Record<string, Property>>);
  const texts = fields.filter(([name, property]) => isText(property) && !BASE_FIELDS.includes(name));
  return texts.length === 1 ? texts[0]![0] : null;
}

/**
 * The text of an observation. A field that is no string is written as JSON; one that is missing or null is an error.
 *
 * @example
 * observationText({ board: "X..", legal: [1, 2] }, "board"); // X..
 * observationText({ board: "X..", legal: [1, 2] }, "legal"); // [1,2]
 */
export function observationText(observation: JsonObject, field: string | null): string {
  if (field === null) {
    const { metadata: _, ...content } = observation;
    return JSON.stringify(content);
  }
  const value = field
    .split(".")
    .reduce<unknown>((object, name) => (object as JsonObject | null | undefined)?.[name], observation);
  if (typeof value === "string") return value;
  if (value !== undefined && value !== null) return JSON.stringify(value);
  throw new SqlEnvError("environment_failed", {
    what: `the observation has no text in its field ${field}; its fields are`,
    value: Object.keys(observation).join(", ") || "none",
    remedy: "name one with observation_field, or leave it out for the whole observation as JSON",
  });
}
