// Where a reply ends before its model ends it: a model that others trained likes to write the next action, or the result itself.

/**
 * Which lines end a reply that is one action. Nothing counts before the action has begun: a model may think first. All patterns
 * are about the beginning of a line, which they see one byte a character; they are data, and cross to other threads.
 */
export interface StopRule {
  /** Begins an action: the first such line begins the reply's, a second one is not part of the reply. */
  readonly begin: RegExp;
  /** Begins something that only the environment writes. */
  readonly before: RegExp;
  /** Of lines that begin an action: one that is over at the end of its line. */
  readonly oneLine: RegExp;
  /** Of lines that begin an action: one that is over at a semicolon at the end of a line. Every action is over at an empty line. */
  readonly statement: RegExp;
}

/** Characters of a line in which a pattern is looked for; no action's head is longer. */
const HEAD_CHARACTERS = 64;
const FENCE = /^[ \t]*```/;
const SEMICOLON = /;[ \t`]*$/;

/** Follows one reply as it grows. */
export class StopWatcher {
  readonly #rule: StopRule;
  /** Characters in the lines that are complete. */
  #complete = 0;
  #line = "";
  #action: "none" | "one-line" | "statement" | "other" = "none";
  /** Of the line that is being written: where the action's text begins; -1 before there is an action. */
  #from = -1;
  /** Whether the action has more than its head, and fences around nothing. */
  #isFilled = false;

  constructor(rule: StopRule) {
    this.#rule = rule;
  }

  /** Adds text; how many characters of the whole reply are to be kept, or -1 when it is not over. */
  add(text: string): number {
    for (let from = 0; from < text.length; ) {
      const at = text.indexOf("\n", from);
      const end = at < 0 ? text.length : at;
      this.#line += text.slice(from, end);
      from = end + 1;
      if (this.#isOverBefore()) return this.#complete;
      if (at < 0) break;
      const isOver = this.#isOverAfter();
      this.#complete += this.#line.length + 1;
      if (isOver) return this.#complete;
      this.#line = "";
      if (this.#action !== "none") this.#from = 0;
    }
    return -1;
  }

  /** Whether the line that is being written is not part of the reply any more. */
  #isOverBefore(): boolean {
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

  /** Whether the action is complete with the line that ends now. */
  #isOverAfter(): boolean {
    if (this.#action === "none") return false;
    const text = this.#line.slice(this.#from);
    const isFence = FENCE.test(text);
    if (this.#isFilled && (isFence || isBlank(text))) return true;
    if (!isFence && /[^ \t\r*_`"]/.test(text)) this.#isFilled = true;
    if (!this.#isFilled) return false;
    return this.#action === "one-line" || (this.#action === "statement" && SEMICOLON.test(text));
  }
}

/** Not `trim`, which takes bytes of other letters for blanks: texts have one byte a character. */
export function isBlank(text: string): boolean {
  return /^[ \t\r\n]*$/.test(text);
}

/** A whole reply, cut where it should have ended. */
export function cutReply(text: string, rule: StopRule | null): string {
  const kept = rule ? new StopWatcher(rule).add(text) : -1;
  return kept < 0 ? text : text.slice(0, kept).trimEnd();
}
