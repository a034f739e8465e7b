import { expect, test } from "vitest";
import { checkTemplate, defaultTemplate, parseTemplate } from "./action-template.ts";

test.each([
  ['{"message": "{text}"}', 'say "hi"\n', { message: 'say "hi"\n' }],
  ['{"a": {"b": ["x", "It says: {text}!"]}, "n": 3}', "yes", { a: { b: ["x", "It says: yes!"] }, n: 3 }],
  ['{"type": "{word}", "argument": "{rest}"}', " QUERY: SELECT 1\n", { type: "QUERY", argument: "SELECT 1" }],
  ['{"type": "{word}", "argument": "{rest}"}', "stop", { type: "stop", argument: "" }],
  ['{"action_id": "{number}"}', " -2.5 ", { action_id: -2.5 }],
  ['{"moves": "{json}"}', "[1, 2]", { moves: [1, 2] }],
  ['"{json}"', '{"tool": "look"}', { tool: "look" }],
  ['{"message": "{text}"}', "{text} {word}", { message: "{text} {word}" }],
  ['{"message": "{text}"}', '", "admin": true, "x": "$&', { message: '", "admin": true, "x": "$&' }],
])("%s makes an action of a reply", (template, reply, action) => {
  expect(parseTemplate(template).fill(reply)).toEqual({ action });
});

test.each([
  ['{"id": "{number}"}', "three", "The reply must be a number."],
  ['{"id": "{number}"}', " ", "The reply must be a number."],
  ['{"id": "{json}"}', "{", "The reply must be JSON."],
  ['"{json}"', "[1]", "The reply must be a JSON object."],
])("%s tells the model what is wrong with the reply %s", (template, reply, problem) => {
  expect(parseTemplate(template).fill(reply)).toEqual({ problem });
});

test.each([
  ["{text}", /not JSON: \{text\}; for example/],
  ['["{text}"]', /not a JSON object/],
  ['{"message": "hello"}', /no place for the model's reply.*\{text\}, \{word\}/],
  ['{"id": "move {number}"}', /a whole string of action_template.*move \{number\}/],
])("the template %s is refused", (template, message) => {
  expect(() => parseTemplate(template)).toThrow(message);
});

const schema = (properties: object, required: string[] = Object.keys(properties)) => ({
  additionalProperties: false,
  properties: { metadata: { type: "object" }, ...properties },
  required,
});

test("a server whose actions have one field needs no template", () => {
  const of = (properties: object, required?: string[]) => defaultTemplate(schema(properties, required)).text;
  expect(of({ message: { type: "string" } })).toBe('{"message":"{text}"}');
  expect(of({ action_id: { type: "integer" }, game: { type: "string" } }, ["action_id"])).toBe(
    '{"action_id":"{number}"}',
  );
  expect(of({ move: { $ref: "#/$defs/Move" } }, [])).toBe('{"move":"{json}"}');
  expect(() => of({ kind: { type: "string" }, argument: { type: "string" } })).toThrow(
    /the fields are: kind, argument; for example --action-template '\{"kind":"\{word\}","argument":"\{rest\}"\}'/,
  );
  expect(() => defaultTemplate({})).toThrow("not described by the server");
});

test("a template that the server would always refuse is refused before", () => {
  const check = (template: string) => () => checkTemplate(parseTemplate(template), schema({ kind: {}, argument: {} }));
  expect(check('{"kind": "{word}", "argument": "{rest}"}')).not.toThrow();
  expect(check('{"kind": "{text}"}')).toThrow(/need a field that the template lacks.*argument.*fields are .*kind/s);
  expect(check('{"kind": "{word}", "argument": "", "x": 1}')).toThrow(/no such field.*: x;/s);
});
