// Renders chat templates from model folders within limits: a template is a program, and a hostile one may hang.
import { Environment, Interpreter, Template } from "@huggingface/jinja";

/** Maximum characters of a template; the longest published ones have about 30,000. */
export const MAX_TEMPLATE_CHARACTERS = 100_000;
/** Maximum consecutive white-space characters: the library's lexer takes quadratic time for them. */
export const MAX_TEMPLATE_BLANKS = 1_000;
/**
 * Maximum expressions evaluated per rendering, plus four per loop iteration; Qwen3's template takes about 50 per
 * message.
 */
export const MAX_TEMPLATE_STEPS = 300_000;
const LOOP_STEPS = 4; // the library creates the scopes of all iterations before the first
/** Maximum characters and elements of a value, in addition to four times those of the messages. */
export const MAX_TEMPLATE_VALUE = 100_000;
/** Maximum number passed to a function or filter, such as the end of `range` or the width of `indent`. */
export const MAX_TEMPLATE_NUMBER = 100_000;
/** Time limit as a last resort for slow single steps, such as searching for one long text in another. */
const MAX_RENDER_MS = 10_000;

/** A template for `renderTemplate`. The type is our own, since the library's does not compile under nodenext. */
export interface ParsedTemplate {
  readonly program: unknown;
}

/** Parses a template; throws an Error that says what is wrong. */
export function parseTemplate(text: string): ParsedTemplate {
  if (text.length > MAX_TEMPLATE_CHARACTERS) throw new Error(`it has more than ${MAX_TEMPLATE_CHARACTERS} characters`);
  if (new RegExp(`\\s{${MAX_TEMPLATE_BLANKS + 1}}`).test(text)) {
    throw new Error(`it has more than ${MAX_TEMPLATE_BLANKS} blanks in a row`);
  }
  return { program: new Template(text).parsed };
}

/** Renders a template with variables; throws an Error if it fails or exceeds a limit. */
export function renderTemplate(template: ParsedTemplate, variables: Readonly<Record<string, unknown>>): string {
  const environment = new Environment();
  for (const [name, value] of Object.entries({ ...GLOBALS, ...variables })) environment.set(name, value);
  const room = MAX_TEMPLATE_VALUE + 4 * JSON.stringify(variables).length;
  return String(new LimitedInterpreter(environment, room).run(template.program as Template["parsed"]).value);
}

// Some templates print the current date; a fixed one gives the same chat the same ids.
const DATE: Readonly<Record<string, string>> = {
  "%Y": "2024",
  "%m": "07",
  "%d": "26",
  "%b": "Jul",
  "%B": "July",
  "%H": "00",
  "%M": "00",
  "%%": "%",
};
const strftime = (format: string) => format.replace(/%[YmdbBHM%]/g, (token) => DATE[token]!);

/** Variables available to every template: the library's own, except `range` and the clock. */
const GLOBALS = {
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
  raise_exception: (message: string) => {
    throw new Error(message);
  },
  range,
  strftime_now: strftime,
  date_string: strftime("%d %b %Y"),
};

function range(start: number, stop?: number, step = 1): number[] {
  const [from, to] = stop === undefined ? [0, start] : [start, stop];
  const length = Math.max(0, Math.ceil((to - from) / step));
  if (!(length <= MAX_TEMPLATE_NUMBER)) throw new Error(`range() gives more than ${MAX_TEMPLATE_NUMBER} numbers`);
  return Array.from({ length }, (_, i) => from + i * step);
}

/** The part of an interpreter value that matters here; the library's types do not resolve under Node's module rules. */
interface Value {
  readonly type: string;
  readonly value: unknown;
}

/** A node of a parsed template; a loop's iterable is its list, or a list with a condition. */
interface Node {
  readonly type: string;
  readonly iterable?: Node & { readonly lhs?: Node };
}

/**
 * The library's interpreter calls `evaluate` for every expression, so steps and the sizes of values are counted there.
 */
class LimitedInterpreter extends (Interpreter as new (
  environment: Environment,
) => {
  run(program: unknown): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
  evaluateArguments(nodes: unknown, environment: Environment): [Value[], Map<string, Value>];
}) {
  #steps = 0;
  readonly #room: number;
  readonly #end = performance.now() + MAX_RENDER_MS;
  /** Caches the sizes of lists and maps, which are immutable unless they contain a namespace. */
  readonly #sizes = new WeakMap<Value, number>();
  readonly #iterables = new WeakSet<Node>();

  constructor(environment: Environment, room: number) {
    super(environment);
    this.#room = room;
  }

  override evaluate(node: Node | undefined, environment: Environment): Value {
    if (this.#steps % 1_024 === 0) this.#checkClock();
    this.#charge(1);
    if (node?.type === "For") this.#iterables.add(node.iterable!.lhs ?? node.iterable!);
    const value = super.evaluate(node, environment);
    if (node && this.#iterables.has(node)) this.#charge(LOOP_STEPS * lengthOf(value));
    const size = this.#sizeOf(value);
    if (size > this.#room) throw new Error(`a value has more than ${this.#room} characters or elements`);
    if (size > 1_000) this.#checkClock();
    return value;
  }

  override evaluateArguments(nodes: unknown, environment: Environment): [Value[], Map<string, Value>] {
    const [positional, keywords] = super.evaluateArguments(nodes, environment);
    for (const { value } of [...positional, ...keywords.values()]) {
      if (typeof value === "number" && Math.abs(value) > MAX_TEMPLATE_NUMBER) {
        throw new Error(`a function gets a number beyond ${MAX_TEMPLATE_NUMBER}`);
      }
    }
    return [positional, keywords];
  }

  #charge(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MAX_TEMPLATE_STEPS) throw new Error(`it takes more than ${MAX_TEMPLATE_STEPS} steps`);
  }

  #checkClock(): void {
    if (performance.now() > this.#end) throw new Error(`it takes more than ${MAX_RENDER_MS / 1000} seconds`);
  }

  /**
   * Total characters and elements, counted as often as they would be printed: a list that contains another twice counts
   * it twice.
   */
  #sizeOf(value: Value): number {
    let fixed = true;
    const measure = (part: Value): number => {
      if (typeof part.value === "string") return 1 + part.value.length;
      const parts = Array.isArray(part.value) ? part.value : part.value instanceof Map ? [...part.value.values()] : [];
      if (part.type === "NamespaceValue") fixed = false;
      if (parts.length === 0) return 1;
      const known = this.#sizes.get(part);
      if (known !== undefined) return known;
      this.#charge(parts.length); // recounted every time if namespaces are involved
      const before = fixed;
      fixed = part.type !== "NamespaceValue";
      const size = (parts as Value[]).reduce((sum, inner) => sum + measure(inner), 1);
      if (fixed) this.#sizes.set(part, size);
      fixed &&= before;
      return size;
    };
    return measure(value);
  }
}

function lengthOf({ value }: Value): number {
  return Array.isArray(value) ? value.length : value instanceof Map ? value.size : 0;
}
