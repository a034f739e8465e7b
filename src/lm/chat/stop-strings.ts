// Ends a reply at the first stop string. Text that may still become one is held back.

/** Applies stop strings to one reply. */
export class StopStrings {
  readonly #stops: readonly string[];
  #held = "";
  #isOver = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** Whether a stop string has ended the reply; it is not part of the text. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Adds text; returns what is certainly part of the reply. */
  add(text: string): string {
    if (this.#isOver) return "";
    const all = this.#held + text;
    // The string that ends first, so that it does not matter how the text was cut into pieces; then the longest.
    const found = this.#stops.map((stop) => ({ start: all.indexOf(stop), length: stop.length }));
    const [first] = found
      .filter(({ start }) => start >= 0)
      .sort((a, b) => a.start + a.length - (b.start + b.length) || b.length - a.length);
    if (first) {
      this.#isOver = true;
      this.#held = "";
      return all.slice(0, first.start);
    }
    const kept = all.length - Math.max(0, ...this.#stops.map((stop) => overlap(all, stop)));
    this.#held = all.slice(kept);
    return all.slice(0, kept);
  }

  /** The text held back at the end of a reply. */
  end(): string {
    const text = this.#held;
    this.#held = "";
    return text;
  }
}

/** Length of the longest end of `text` with which `whole` begins, but not all of `whole`. */
export function overlap(text: string, whole: string): number {
  for (let length = Math.min(text.length, whole.length - 1); length > 0; length--)
    if (text.endsWith(whole.slice(0, length))) return length;
  return 0;
}
