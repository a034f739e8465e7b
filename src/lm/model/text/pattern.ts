// Checks regular expressions from tokenizer.json: rejects ones that could backtrack exponentially by their form, before
// they run. A time limit would need a thread, for which a web page cannot wait.

/** Maximum characters of a pattern; the longest published ones have about 800. */
export const MAX_PATTERN_CHARACTERS = 4_000;
const MAX_DEPTH = 20; // maximum nesting of groups
const FEW = 8; // more repetitions than this count as unbounded
/** Maximum ambiguous parts of one alternative: parts that can match in several ways before something that can fail. */
const MAX_CHOICES = 3;
// Maximum ambiguous parts of unbounded length: two would take quadratic time at every position of the text.
const MAX_LONG_CHOICES = 1;

/** Describes what is wrong with a pattern, as a clause; undefined if matching takes at most about quadratic time. */
export function patternFault(pattern: string): string | undefined {
  if (pattern.length > MAX_PATTERN_CHARACTERS) return `it has more than ${MAX_PATTERN_CHARACTERS} characters`;
  try {
    for (const sequence of new Parser(pattern).all()) check(choicesOf(sequence, false).choices);
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

class Fault extends Error {}

/** One element of a sequence with its repetition bounds. */
interface Item {
  /** Lookarounds and anchors consume no characters, but can fail. */
  readonly kind: "atom" | "group" | "look" | "anchor";
  readonly source: string;
  readonly min: number;
  readonly max: number;
  /** The alternatives of a group or lookaround. */
  readonly inside: readonly (readonly Item[])[];
}

/** A part that can match in several ways. */
interface Choice {
  /** Pattern of the characters it matches; undefined if unknown. */
  readonly source: string | undefined;
  readonly long: boolean;
  /** Whether something after it can fail, so that every alternative is tried. */
  readonly tried: boolean;
}

/** The ambiguous parts of a sequence, and whether something in it can fail. */
function choicesOf(items: readonly Item[], canFailAfter: boolean): { choices: Choice[]; fails: boolean } {
  const choices: Choice[] = [];
  let fails = canFailAfter;
  for (const { kind, source, min, max, inside } of items.toReversed()) {
    if (kind === "look") for (const sequence of inside) check(choicesOf(sequence, true).choices);
    if (kind === "group" && max > 1 && !inside.every(isFixed)) {
      throw new Fault(`it repeats a group that can match in several ways: ${source.slice(0, 80)}`);
    }
    if (kind === "group" && max > 1 && inside.length > 1)
      throw new Fault(`it repeats alternatives: ${source.slice(0, 80)}`);
    if (kind === "group" && max === 1) {
      for (const sequence of inside) choices.push(...choicesOf(sequence, fails).choices);
      if (inside.length > 1) choices.push({ source: undefined, long: true, tried: fails });
    }
    if (max > min) choices.push({ source: kind === "atom" ? source : undefined, long: max - min > FEW, tried: fails });
    if (min > 0 || kind === "look" || kind === "anchor") fails = true;
  }
  return { choices, fails };
}

/** Whether a sequence always matches the same number of characters, in exactly one way. */
function isFixed(sequence: readonly Item[]): boolean {
  return sequence.every(({ kind, min, max }) => kind === "atom" && min === max);
}

function check(choices: readonly Choice[]): void {
  const shared = choices.filter((one) => one.tried && choices.some((other) => other !== one && overlap(one, other)));
  if (shared.length > MAX_CHOICES || shared.filter(({ long }) => long).length > MAX_LONG_CHOICES) {
    const parts = shared.map(({ source }) => source ?? "alternatives").join(" and ");
    throw new Fault(`parts of it can share the same characters in too many ways: ${parts.slice(0, 80)}`);
  }
}

// One or two characters of each class that patterns distinguish, and all of ASCII.
const SAMPLES = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  ..."éßÄǅʰ中あا́ः٣½Ⅷ€—«»…\u00a0\u2028\u3000\u200d�😀",
];

function overlap(one: Choice, other: Choice): boolean {
  if (one.source === undefined || other.source === undefined) return true;
  const [taken, both] = [one, other].map(({ source }) => matcher(source!));
  return !taken || !both || SAMPLES.some((sample) => taken.test(sample) && both.test(sample));
}

function matcher(source: string): RegExp | undefined {
  try {
    return new RegExp(`^(?:${source})$`, "u");
  } catch {
    return undefined; // syntax that JavaScript lacks is assumed to match anything
  }
}

/** Parses the pattern syntax that the library translates to JavaScript. */
class Parser {
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  all(): Item[][] {
    const alternatives = this.#alternatives(0);
    if (this.#at < this.#text.length) throw new Fault("it has a bracket too many");
    return alternatives;
  }

  #alternatives(depth: number): Item[][] {
    if (depth > MAX_DEPTH) throw new Fault(`it has groups more than ${MAX_DEPTH} deep`);
    const alternatives: Item[][] = [[]];
    while (this.#at < this.#text.length && this.#text[this.#at] !== ")") {
      if (this.#text[this.#at] === "|") {
        this.#at++;
        alternatives.push([]);
      } else alternatives.at(-1)!.push(this.#item(depth));
    }
    return alternatives;
  }

  #item(depth: number): Item {
    const start = this.#at;
    const part = this.#part(depth);
    const source = this.#text.slice(start, this.#at);
    const [min, max] = this.#repeats();
    return { ...part, source, min, max };
  }

  #part(depth: number): Pick<Item, "kind" | "inside"> {
    const character = this.#text[this.#at]!;
    if (character === "(") return this.#group(depth);
    if (character === "[") return this.#class();
    if (character === "\\") return this.#escape();
    this.#at += String.fromCodePoint(this.#text.codePointAt(this.#at)!).length;
    return { kind: character === "^" || character === "$" ? "anchor" : "atom", inside: [] };
  }

  #group(depth: number): Pick<Item, "kind" | "inside"> {
    const opening = /^\((?:\?(?:[imsx-]*:|[imsx-]+(?=\))|>|<?[=!]|<\w+>))?/.exec(this.#text.slice(this.#at))![0];
    this.#at += opening.length;
    const inside = this.#alternatives(depth + 1);
    if (this.#text[this.#at] !== ")") throw new Fault("it has a group that does not end");
    this.#at++;
    return { kind: /^\(\?<?[=!]/.test(opening) ? "look" : "group", inside };
  }

  /** Parses a character class; nested classes are Oniguruma syntax. */
  #class(): Pick<Item, "kind" | "inside"> {
    let open = 0;
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at];
      if (character === "\\") this.#at++;
      else if (character === "[") open++;
      else if (character === "]" && --open === 0) {
        this.#at++;
        return { kind: "atom", inside: [] };
      }
    }
    throw new Fault("it has a class that does not end");
  }

  #escape(): Pick<Item, "kind" | "inside"> {
    const rest = this.#text.slice(this.#at, this.#at + 64);
    if (/^\\(?:[1-9]|k<)/.test(rest)) throw new Fault("it refers back to a group");
    const found = /^\\(?:[pP]\{[^}]*\}|x\{[^}]*\}|u\{[^}]*\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[\s\S])/u.exec(rest);
    if (!found) throw new Fault("it ends within an escape");
    this.#at += found[0].length;
    return { kind: /^\\[bBAzZG]$/.test(found[0]) ? "anchor" : "atom", inside: [] };
  }

  /** Parses a quantifier; lazy and possessive ones are treated as greedy. */
  #repeats(): readonly [number, number] {
    const found = /^(?:[*+?]|\{(\d*)(,?)(\d*)\})[?+]?/.exec(this.#text.slice(this.#at, this.#at + 32));
    if (!found || found[0].startsWith("{,}") || found[0].startsWith("{}")) return [1, 1];
    this.#at += found[0].length;
    if (/^[*+?]/.test(this.#text.slice(this.#at, this.#at + 1))) throw new Fault("it repeats a repetition");
    const [, least = "", comma = "", most = ""] = found;
    if (found[0][0] === "*") return [0, Number.POSITIVE_INFINITY];
    if (found[0][0] === "+") return [1, Number.POSITIVE_INFINITY];
    if (found[0][0] === "?") return [0, 1];
    return [Number(least), comma === "" ? Number(least) : most === "" ? Number.POSITIVE_INFINITY : Number(most)];
  }
}
