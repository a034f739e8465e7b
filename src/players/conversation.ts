// An episode as the token ids a model sees: turns are appended, never encoded again. When the context is full it is cut to
// the system prompt, the question and the last three observations with what the model said to them, and goes on from there.
import type { SQLObservation } from "../env/index.ts";
import { formatObservation, getSystemPrompt } from "./prompt.ts";

/** What the conversation needs of a model's turn encoder. */
export interface Turns {
  start(system: string, user: string): number[];
  next(user: string, options: { readonly closed: boolean }): number[];
  closed(ids: readonly number[]): boolean;
}

/** An observation and the model's answer to it. */
interface Pair {
  readonly observation: SQLObservation;
  readonly said: readonly number[];
}

/** Pairs that survive a cut. */
const KEPT_PAIRS = 3;

export interface ConversationOptions {
  /** Tokens of context and answer together. */
  readonly max_context_tokens: number;
  /** Room to leave for an answer. */
  readonly max_new_tokens: number;
}

/** The context of one episode. */
export class Conversation {
  /** How often the context was cut: each cut begins a new segment. */
  cuts = 0;
  readonly #turns: Turns;
  readonly #options: ConversationOptions;
  readonly #pairs: Pair[] = [];
  #ids: number[] = [];
  #first: SQLObservation | undefined;
  #open: SQLObservation | undefined;

  constructor(turns: Turns, options: ConversationOptions) {
    this.#turns = turns;
    this.#options = options;
  }

  /** The whole context, up to where the model speaks, after it was shown an observation. */
  prompt(observation: SQLObservation): readonly number[] {
    this.#open = observation;
    if (!this.#first) {
      this.#first = observation;
      this.#ids = this.#turns.start(getSystemPrompt(), formatObservation(observation));
      return this.#ids;
    }
    const closed = this.#turns.closed(this.#pairs.at(-1)!.said);
    const longer = [...this.#ids, ...this.#turns.next(formatObservation(observation), { closed })];
    this.#ids = longer.length + this.#options.max_new_tokens <= this.#options.max_context_tokens ? longer : this.#cut();
    return this.#ids;
  }

  /** What the model said. */
  said(ids: readonly number[]): void {
    this.#pairs.push({ observation: this.#open!, said: ids });
    this.#ids = [...this.#ids, ...ids];
  }

  /** As many of the last pairs as fit, at most three, behind the question. */
  #cut(): number[] {
    this.cuts++;
    const { max_context_tokens, max_new_tokens } = this.#options;
    for (let kept = Math.min(KEPT_PAIRS, this.#pairs.length - 1); kept > 0; kept--) {
      const ids = this.#contextOf(this.#pairs.slice(-kept));
      if (ids.length + max_new_tokens <= max_context_tokens) return ids;
    }
    return this.#contextOf([]);
  }

  #contextOf(pairs: readonly Pair[]): number[] {
    const shown = [...pairs.map(({ observation }) => observation), this.#open!];
    const question = formatObservation(this.#first!);
    const [first, ...rest] = shown.map((observation) => formatObservation(observation));
    const ids = this.#turns.start(getSystemPrompt(), first === question ? question : `${question}\n…\n${first}`);
    for (const [i, text] of rest.entries()) {
      const { said } = pairs[i]!;
      ids.push(...said, ...this.#turns.next(text, { closed: this.#turns.closed(said) }));
    }
    return ids;
  }
}
