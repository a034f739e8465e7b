// Decodes tokens one by one into text that can be shown at once: a character is held back until all its bytes are there.
import type { Tokenizer } from "../model/text/tokenizer.ts";

const INCOMPLETE = "\ufffd"; // what invalid or unfinished UTF-8 decodes to

/** Decodes one reply. */
export class Detokenizer {
  readonly #tokenizer: Pick<Tokenizer, "decode">;
  /** Tokens whose text was returned, kept because decoders treat the first token differently; then those held back. */
  #tokens: number[] = [];
  #returned = 0;

  constructor(tokenizer: Pick<Tokenizer, "decode">) {
    this.#tokenizer = tokenizer;
  }

  /** Adds a token; returns the text that it completes, without special tokens. */
  add(token: number): string {
    this.#tokens.push(token);
    const text = this.#newText();
    if (text === "" || text.endsWith(INCOMPLETE)) return "";
    this.#tokens = this.#tokens.slice(this.#returned);
    this.#returned = this.#tokens.length;
    return text;
  }

  /** The text held back at the end of a reply. */
  end(): string {
    const text = this.#newText();
    this.#returned = this.#tokens.length;
    return text;
  }

  #newText(): string {
    return this.#decode(this.#tokens).slice(this.#decode(this.#tokens.slice(0, this.#returned)).length);
  }

  #decode(tokens: readonly number[]): string {
    return this.#tokenizer.decode(tokens, { skipSpecial: true });
  }
}
