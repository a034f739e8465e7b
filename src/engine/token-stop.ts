// A stop rule on a sample's tokens: which of them are kept when the text says that the reply is over.
import { type StopRule, StopWatcher } from "../stop.ts";

/** A rule, and the text of every token id: the tokenizer's `texts`. */
export interface TextStop {
  readonly rule: StopRule;
  readonly texts: readonly string[];
}

/**
 * Follows one sample. Only whole tokens are kept, as they were sampled: those that end where the reply ends or before it,
 * without blank ones at the end. What a token has before the end and after it is lost; tokenizers that split at line ends,
 * as those of Qwen, Llama and SmolLM do, have no such token.
 */
export class TokenStop {
  readonly #watcher: StopWatcher;
  readonly #texts: readonly string[];
  readonly #sampled: string[] = [];

  constructor({ rule, texts }: TextStop) {
    this.#watcher = new StopWatcher(rule);
    this.#texts = texts;
  }

  /** Adds a token; how many tokens of the sample are kept, or -1 when it is not over. */
  add(token: number): number {
    const text = this.#texts[token] ?? "";
    this.#sampled.push(text);
    const characters = this.#watcher.add(text);
    if (characters < 0) return -1;
    let kept = 0;
    for (let end = this.#sampled[0]!.length; end <= characters && kept < this.#sampled.length; ) {
      kept++;
      end += this.#sampled[kept]?.length ?? 0;
    }
    while (kept > 1 && this.#sampled[kept - 1]!.trim() === "") kept--;
    return Math.max(1, kept);
  }
}
