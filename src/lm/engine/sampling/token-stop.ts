// A stop rule on a sample's tokens: which are kept when the text says that the reply is over.
import { isBlank, type StopRule, StopWatcher } from "../../../stop.ts";

/** A rule, and the text of every token id: the tokenizer's `texts`. */
export interface TextStop {
  readonly rule: StopRule;
  readonly texts: readonly string[];
}

/**
 * Follows one sample. Only whole tokens are kept, as sampled: those with nothing but whitespace after the end of the reply,
 * such as Qwen's `);\n\n`; trailing tokens of whitespace are dropped. A token with text on both sides of the end is dropped;
 * tokenizers that split at line ends, such as those of Qwen, Llama and SmolLM, have none.
 */
export class TokenStop {
  readonly #watcher: StopWatcher;
  readonly #texts: readonly string[];
  readonly #sampled: string[] = [];

  constructor({ rule, texts }: TextStop) {
    this.#watcher = new StopWatcher(rule);
    this.#texts = texts;
  }

  /** Adds a token; returns how many tokens of the sample are kept, or -1 when it is not over. */
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
