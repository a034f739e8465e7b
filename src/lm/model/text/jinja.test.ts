// Tests templates that try to hang, fill the memory or grow: each ends in an error after a bounded amount of work.
import { expect, test } from "vitest";
import { ModelLoadError } from "../../../errors.ts";
import { CHATML_TEMPLATE, renderChat } from "./chat-template.ts";
import { MAX_TEMPLATE_CHARACTERS, parseTemplate, renderTemplate } from "./jinja.ts";

const render = (text: string, variables = {}) => renderTemplate(parseTemplate(text), variables);

const DOUBLE = "{% set ns.x = [ns.x, ns.x] %}";
const NAMESPACES = Array.from(
  { length: 60 },
  (_, i) => `{% set n${i + 1} = namespace() %}{% set a${i + 1} = [n${i + 1}, n${i + 1}] %}`,
).join("");
const LINKS = Array.from({ length: 59 }, (_, i) => `{% set n${i + 2}.x = a${i + 1} %}`).join("");

test.each([
  [
    "nested loops",
    "{% for a in range(30000) %}{% for b in range(30000) %}{% endfor %}{% endfor %}",
    /more than 300000 steps/,
  ],
  [
    "loops that break at once",
    "{% set r = range(30000) %}{% for a in r %}{% for b in r %}{% break %}{% endfor %}{% endfor %}",
    /more than 300000 steps/,
  ],
  [
    "loops with a condition",
    "{% set r = range(30000) %}{% for a in r %}{% for b in r if false %}{% endfor %}{% endfor %}",
    /more than 300000 steps/,
  ],
  ["a loop without end in range", "{{ range(0, 1, 0.0000000001) }}", /range\(\) gives more than 100000 numbers/],
  ["a huge range", "{{ range(99999999999) | length }}", /a number beyond 100000/],
  ["a range of no step", "{{ range(0, 10, 0) }}", /range\(\) gives more than/],
  [
    "a text that doubles",
    `{% set ns = namespace(x='ab') %}${"{% set ns.x = ns.x ~ ns.x %}".repeat(60)}{{ ns.x }}`,
    /a value has more than/,
  ],
  ["a list that doubles", `{% set ns = namespace(x=[1]) %}${DOUBLE.repeat(60)}{{ ns.x }}`, /a value has more than/],
  [
    "a map that doubles",
    `{% set ns = namespace(x={}) %}${"{% set ns.x = {'a': ns.x, 'b': ns.x} %}".repeat(60)}{{ ns.x | tojson }}`,
    /a value has more than/,
  ],
  ["namespaces that double", `${NAMESPACES}${LINKS}{{ n60 }}`, /more than 300000 steps|a value has more than/],
  ["a macro that calls itself", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", /./],
  ["macros that double", macros(40), /more than 300000 steps|a value has more than/],
  ["a wide indent", "{{ 'a\\nb' | indent(500000000) }}", /a number beyond 100000/],
  ["a wide JSON", "{{ [1] | tojson(indent=500000000) }}", /a number beyond 100000/],
  [
    "output that grows",
    "{% for a in range(9999) %}{{ '0123456789012345678901234567890123456789' }}{% endfor %}",
    /a value has more than \d+/,
  ],
])("%s ends in an error", (_, template, message) => {
  let error: unknown;
  try {
    renderChat(template, []);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(ModelLoadError);
  expect((error as ModelLoadError).message).toMatch(message);
});

/** Macros that each call the next one twice. */
function macros(count: number): string {
  const one = (i: number) => `{% macro f${i}() %}{{ f${i + 1}() }}{{ f${i + 1}() }}{% endmacro %}`;
  return `${Array.from({ length: count }, (_, i) => one(i)).join("")}{% macro f${count}() %}x{% endmacro %}{{ f0() }}`;
}

test("templates that are too long, or have blanks that take the lexer minutes, are refused before parsing", () => {
  expect(() => parseTemplate("x".repeat(MAX_TEMPLATE_CHARACTERS + 1))).toThrow(/more than 100000 characters/);
  expect(() => parseTemplate(`a${" ".repeat(1_001)}b`)).toThrow(/more than 1000 blanks in a row/);
  expect(() => renderChat("\n".repeat(90_000), [])).toThrow(ModelLoadError);
});

test("ordinary templates have what they need, and the date is always the same", () => {
  expect(render("{% for i in range(3) %}{{ i }}{% endfor %}{{ range(5, 1, -2) }}")).toBe("012[5, 3]");
  expect(render("{{ strftime_now('%d %B %Y, %H:%M, 100%%') }} {{ date_string }}")).toBe(
    "26 July 2024, 00:00, 100% 26 Jul 2024",
  );
  expect(render("{{ none is none and None is none }} {{ True }} {{ false }}")).toBe("true true false");
  expect(() => render("{{ raise_exception('no system message') }}")).toThrow("no system message");
  const ns = "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}";
  expect(render(ns, { messages: [{}, {}, {}] })).toBe("3");
});

test("long chats render: the limits grow with the messages", () => {
  const messages = Array.from({ length: 200 }, (_, i) => ({
    role: i % 2 ? ("assistant" as const) : ("user" as const),
    content: "SELECT count(*) FROM pets;\n".repeat(400),
  }));
  const text = renderChat(CHATML_TEMPLATE, messages);
  expect(text.length).toBeGreaterThan(200 * 400 * 27);
});
