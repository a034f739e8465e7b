// Applies a stop rule to a sample's tokens: decides how many are kept when the reply is over.
import { isBlank, type StopRule, StopWatcher } from "../../../stop-rule.ts";

/** A stop rule, and the text of every token id (the tokenizer's `texts`). */
export interface TextStop {
  readonly rule: StopRule;
  readonly texts: readonly string[];
}

/**
 * Follows one sample. Only whole tokens are kept, as sampled. A token with only white space after the end of the reply,
 * such as Qwen's `);\n\n`, is kept; trailing tokens of white space are dropped. A token with text on both sides of the
 * end is dropped; tokenizers that split at line breaks, such as Qwen's, Llama's and SmolLM's, have none.
 */
export class TokenStop {
  readonly #watcher: StopWatcher;
  readonly #texts: readonly string[];
  readonly #sampled: string[] = [];

  constructor({ rule, texts }: TextStop) {
    this.#watcher = new StopWatcher(rule);
    this.#texts = texts;
  }

  /** Adds a token. Returns how many tokens of the sample to keep, or -1 if the reply is not over. */
  add(token: number): number {
    const text = this.#texts[token] ?? "";
    this.#sampled.push(text);
    const characters = this.#watcher.add(text);
    if (characters < 0) return -1;
    let [kept, start] = [0, 0];
    for (const piece of this.#sampled) {
      if (!isBlank(piece.slice(Math.max(0, characters - start)))) break;
      kept++;
      start += piece.length;
    }
    while (kept > 1 && isBlank(this.#sampled[kept - 1]!)) kept--;
    return Math.max(1, kept);
  }
}
