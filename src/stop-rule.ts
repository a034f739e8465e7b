// Stop rules: end a model's reply before the model does. Pretrained models tend to write the next action too, or to
// invent its result.

/**
 * A stop rule: which lines end a reply that is one action. Nothing matches before the action has begun, since a model may
 * think first. All patterns match the beginning of a line, with one byte per character; they are data and are sent to
 * other threads.
 */
export interface StopRule {
  /** Begins an action: the first such line begins the reply's action, a second one ends the reply. */
  readonly begin: RegExp;
  /** Begins a line that only the environment writes; it ends the reply. */
  readonly before: RegExp;
  /** Matches actions that end with their line. */
  readonly oneLine: RegExp;
  /** Matches actions that end with a semicolon at the end of a line. Every action ends at an empty line. */
  readonly statement: RegExp;
}

/** Characters of a line that patterns are matched with; no action's head is longer. */
const HEAD_CHARACTERS = 64;
const FENCE = /^[ \t]*```/;
const SEMICOLON = /;[ \t`]*$/;

/** Applies a stop rule to one reply while it is generated. */
export class StopWatcher {
  readonly #rule: StopRule;
  /** Characters in the lines that are complete. */
  #complete = 0;
  #line = "";
  #action: "none" | "one-line" | "statement" | "other" = "none";
  /** Where the action's text begins in the current line; -1 before there is an action. */
  #from = -1;
  /** Whether the action has text besides its head and code fences. */
  #isFilled = false;

  constructor(rule: StopRule) {
    this.#rule = rule;
  }

  /** Adds text; returns how many characters of the whole reply to keep, or -1 while it continues. */
  add(text: string): number {
    for (let from = 0; from < text.length; ) {
      const at = text.indexOf("\n", from);
      const end = at < 0 ? text.length : at;
      this.#line += text.slice(from, end);
      from = end + 1;
      if (this.#endsBeforeLine()) return this.#complete;
      if (at < 0) break;
      const isLast = this.#endsAfterLine();
      this.#complete += this.#line.length + 1;
      if (isLast) return this.#complete;
      this.#line = "";
      if (this.#action !== "none") this.#from = 0;
    }
    return -1;
  }

  /** Whether the reply ended before the current line. */
  #endsBeforeLine(): boolean {
    if (this.#from > 0) return false; // the action's own first line
    const { begin, before, oneLine, statement } = this.#rule;
    const head = this.#line.slice(0, HEAD_CHARACTERS);
    const begins = begin.exec(head);
    if (this.#action !== "none") return begins !== null || before.test(head);
    if (begins) {
      this.#action = oneLine.test(head) ? "one-line" : statement.test(head) ? "statement" : "other";
      this.#from = begins[0].length;
    }
    return false;
  }

  /** Whether the reply ends with the current line. */
  #endsAfterLine(): boolean {
    if (this.#action === "none") return false;
    const text = this.#line.slice(this.#from);
    const isFence = FENCE.test(text);
    if (this.#isFilled && (isFence || isBlank(text))) return true;
    if (!isFence && /[^ \t\r*_`"]/.test(text)) this.#isFilled = true;
    if (!this.#isFilled) return false;
    return this.#action === "one-line" || (this.#action === "statement" && SEMICOLON.test(text));
  }
}

/** Not `trim`, which treats bytes of some letters as blanks: texts have one byte per character. */
export function isBlank(text: string): boolean {
  return /^[ \t\r\n]*$/.test(text);
}

/** A complete reply, truncated where the stop rule ends it. */
export function cutReply(text: string, rule: StopRule | null): string {
  const kept = rule ? new StopWatcher(rule).add(text) : -1;
  return kept < 0 ? text : text.slice(0, kept).trimEnd();
}
