// From a model's reply to a server's action: a JSON template whose strings have placeholders. It is parsed first and filled
// afterwards, so a reply is always a value in it and never changes its structure.
//
//     {text}     the reply
//     {word}     its first word, without a colon or comma at its end
//     {rest}     what follows the first word
//     {number}   the reply as a number
//     {json}     the reply as JSON
//
// The first three may stand within a longer string; the last two are the whole string.
import { UsageError } from "../../errors.ts";
import type { JsonObject } from "../../gym/client/index.ts";

/** The action for a reply, or what is wrong with the reply, as a sentence for the model. */
export type FilledAction = { readonly action: JsonObject } | { readonly problem: string };

export interface ActionTemplate {
  /** The template as JSON. */
  readonly text: string;
  /** Makes the action for a reply. */
  fill(reply: string): FilledAction;
  /** Whether a field of the action comes from the reply; others are the template's own. */
  isFromReply(path: readonly (string | number)[]): boolean;
}

const PLACEHOLDER = /\{(?:text|word|rest|number|json)\}/;
const IN_TEXT = /\{(text|word|rest)\}/g;
const PLACEHOLDERS = "{text}, {word}, {rest}, {number} or {json}";

/**
 * Parses a template.
 *
 * @example
 * const template = parseTemplate('{"action_type": "{word}", "argument": "{rest}"}');
 * template.fill("QUERY: SELECT 1"); // { action: { action_type: "QUERY", argument: "SELECT 1" } }
 */
export function parseTemplate(text: string): ActionTemplate {
  const wrong = (what: string, remedy = `for example {"message": "{text}"}`) =>
    new UsageError({ what, value: text, remedy });
  let template: unknown;
  try {
    template = JSON.parse(text);
  } catch {
    throw wrong("action_template is not JSON");
  }
  if (!isObject(template) && template !== "{json}") throw wrong("action_template is not a JSON object");
  if (!hasPlaceholder(template))
    throw wrong("action_template has no place for the model's reply", `write ${PLACEHOLDERS} in one of its strings`);
  const odd = strings(template).find((one) => /\{(?:number|json)\}/.test(one.replace(/^\{(?:number|json)\}$/, "")));
  if (odd !== undefined)
    throw wrong(`{number} and {json} are a whole string of action_template, without other text as in "${odd}"`);
  return {
    text,
    fill: (reply) => fill(template, reply),
    isFromReply: (path) => hasPlaceholder(at(template, path)),
  };
}

/** A reply that does not fit the template; the message is for the model. */
class Misfit extends Error {}

function fill(template: unknown, reply: string): FilledAction {
  try {
    const action = filled(template, reply);
    return isObject(action) ? { action } : { problem: "The reply must be a JSON object." };
  } catch (error) {
    if (error instanceof Misfit) return { problem: error.message };
    throw error;
  }
}

function filled(template: unknown, reply: string): unknown {
  if (typeof template === "string") return filledString(template, reply);
  if (Array.isArray(template)) return template.map((item) => filled(item, reply));
  if (!isObject(template)) return template;
  return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, filled(value, reply)]));
}

function filledString(template: string, reply: string): unknown {
  if (template === "{number}") return numberIn(reply);
  if (template === "{json}") return jsonIn(reply);
  const [, word = "", rest = ""] = /^\s*(\S*)\s*([\s\S]*)$/.exec(reply) ?? [];
  const values = { text: reply, word: word.replace(/[:,]+$/, ""), rest: rest.trimEnd() };
  return template.replace(IN_TEXT, (_, name: keyof typeof values) => values[name]);
}

function numberIn(reply: string): number {
  const number = reply.trim() === "" ? Number.NaN : Number(reply);
  if (!Number.isFinite(number)) throw new Misfit("The reply must be a number.");
  return number;
}

function jsonIn(reply: string): unknown {
  try {
    return JSON.parse(reply);
  } catch {
    throw new Misfit("The reply must be JSON.");
  }
}

/** One field of a schema of actions. */
interface Property {
  readonly type?: unknown;
  readonly enum?: unknown;
}

/**
 * The template for a server whose action has one field, or only one that must be given.
 * Throws UsageError for others, with a template to start from.
 */
export function defaultTemplate(schema: JsonObject): ActionTemplate {
  const { properties, required } = fieldsOf(schema);
  const own = Object.keys(properties).filter((name) => name !== "metadata");
  const asked = required.length > 0 ? required : own;
  const [name] = asked;
  if (asked.length === 1 && name !== undefined)
    return parseTemplate(JSON.stringify({ [name]: placeholderFor(properties[name]) }));
  const example = Object.fromEntries(asked.map((field, i) => [field, exampleFor(properties[field], i)]));
  throw new UsageError({
    what: "the server's actions have more than one field, so action_template must say where a reply goes; the fields are",
    value: own.join(", ") || "not described by the server",
    remedy: `for example --action-template '${JSON.stringify(example)}'; {word} is a reply's first word and {rest} what follows`,
  });
}

function placeholderFor({ type, enum: choices }: Property = {}): string {
  if (type === "string" || Array.isArray(choices)) return "{text}";
  return type === "integer" || type === "number" ? "{number}" : "{json}";
}

/** A placeholder for one of several fields: texts share the reply. */
function exampleFor(property: Property | undefined, index: number): string {
  const placeholder = placeholderFor(property);
  return placeholder === "{text}" ? (index === 0 ? "{word}" : "{rest}") : placeholder;
}

/** Refuses a template whose actions the server would refuse for every reply. */
export function checkTemplate(template: ActionTemplate, schema: JsonObject): void {
  const parsed: unknown = JSON.parse(template.text);
  if (!isObject(parsed)) return;
  const { properties, required, isClosed } = fieldsOf(schema);
  const refuse = (what: string, value: string) => {
    throw new UsageError({
      what: `${what}; action_template is ${template.text}, and the field is`,
      value,
      remedy: `the server's fields are ${Object.keys(properties).join(", ")}`,
    });
  };
  const lacking = required.find((name) => !(name in parsed));
  if (lacking !== undefined) refuse("the server's actions need a field that the template lacks", lacking);
  const unknown = isClosed ? Object.keys(parsed).find((name) => !(name in properties)) : undefined;
  if (unknown !== undefined) refuse("the server's actions have no such field", unknown);
}

function fieldsOf({ properties, required, additionalProperties }: JsonObject) {
  return {
    properties: (isObject(properties) ? properties : {}) as Readonly<Record<string, Property>>,
    required: Array.isArray(required) ? required.map(String) : [],
    isClosed: isObject(properties) && additionalProperties === false,
  };
}

function hasPlaceholder(value: unknown): boolean {
  return strings(value).some((text) => PLACEHOLDER.test(text));
}

/** All strings in a JSON value. */
function strings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return isObject(value) || Array.isArray(value) ? Object.values(value).flatMap(strings) : [];
}

/** The value at a path; where the path leads out of the template, the last value on it. */
function at(template: unknown, path: readonly (string | number)[]): unknown {
  let value = template;
  for (const key of path) {
    if (typeof value === "string") return value;
    value = (value as Record<string | number, unknown> | null | undefined)?.[key];
  }
  return value;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
