// Keeps an episode as token ids of the model's context. Turns are appended and never encoded again. A full context is
// truncated to the system prompt, the examples, the question and the last three observations with the model's replies.

import { UsageError } from "../../../errors.ts";
import type { EnvironmentRules } from "../../env/index.ts";
import { type Prompt, type PromptChoice, promptFor } from "./prompt.ts";
import type { ActionTool } from "./tools.ts";

/** The part of a model's turn encoder that the conversation needs. */
export interface Turns {
  start(system: string, user: string): number[];
  next(user: string, options: { readonly closed: boolean; readonly from?: "user" | "tool" }): number[];
  /** Encodes a complete, closed turn of the model, for an example. */
  say(text: string): number[];
  closed(ids: readonly number[]): boolean;
  /** Returns an encoder with tools; required only for prompts with tools. */
  withTools?(tools: readonly ActionTool[]): Turns;
}

/** The part of a prompt that does not come from the environment. */
export type ChatPrompt = Pick<Prompt, "system" | "examples" | "tools">;

/** An environment text and the model's reply to it. */
interface Pair {
  readonly text: string;
  readonly said: readonly number[];
}

/** Maximum pairs kept when the context is truncated. */
const KEPT_PAIRS = 3;

export interface ConversationOptions {
  /** Maximum tokens of context and reply together. */
  readonly max_context_tokens: number;
  /** Tokens reserved for a reply. */
  readonly max_new_tokens: number;
  /** @default the compact prompt */
  readonly prompt?: ChatPrompt;
}

/** The context of one episode. */
export class Conversation {
  /** Number of truncations so far; each starts a new segment. */
  cuts = 0;
  readonly #turns: Turns;
  readonly #options: ConversationOptions;
  readonly #prompt: ChatPrompt;
  readonly #pairs: Pair[] = [];
  #ids: number[] = [];
  #first: string | undefined;
  #open = "";

  constructor(turns: Turns, options: ConversationOptions) {
    this.#options = options;
    this.#prompt = options.prompt ?? promptFor();
    this.#turns = turnsFor(turns, this.#prompt);
  }

  /** Adds a text from the environment; returns the whole context, ready for the model's reply. */
  prompt(text: string): readonly number[] {
    this.#open = text;
    if (this.#first === undefined) {
      this.#first = text;
      this.#ids = this.#openWith(text);
      return this.#ids;
    }
    const closed = this.#turns.closed(this.#pairs.at(-1)!.said);
    const longer = [...this.#ids, ...this.#next(text, closed)];
    this.#ids = longer.length + this.#options.max_new_tokens <= this.#options.max_context_tokens ? longer : this.#cut();
    return this.#ids;
  }

  /** Adds the model's reply. */
  said(ids: readonly number[]): void {
    this.#pairs.push({ text: this.#open, said: ids });
    this.#ids = [...this.#ids, ...ids];
  }

  /** Encodes the turn after the model's reply: from the user, or from the tool that was called. */
  #next(text: string, closed: boolean): number[] {
    return this.#turns.next(text, { closed, from: this.#prompt.tools ? "tool" : "user" });
  }

  /** Encodes the examples and the first turn, ready for the model's reply. */
  #openWith(text: string, examples = this.#prompt.examples): number[] {
    if (examples.length === 0) return this.#turns.start(this.#prompt.system, text);
    return [...exampleIds(this.#turns, this.#prompt, examples), ...this.#turns.next(text, { closed: true })];
  }

  /**
   * Truncates to the question and as many of the last pairs as fit, at most KEPT_PAIRS; drops the examples if there is
   * no room.
   */
  #cut(): number[] {
    this.cuts++;
    const { max_context_tokens, max_new_tokens } = this.#options;
    for (let kept = Math.min(KEPT_PAIRS, this.#pairs.length - 1); kept > 0; kept--) {
      const ids = this.#contextOf(this.#pairs.slice(-kept));
      if (ids.length + max_new_tokens <= max_context_tokens) return ids;
    }
    const ids = this.#contextOf([]);
    return ids.length + max_new_tokens <= max_context_tokens ? ids : this.#contextOf([], []);
  }

  #contextOf(pairs: readonly Pair[], examples = this.#prompt.examples): number[] {
    const question = this.#first!;
    const [first, ...rest] = [...pairs.map(({ text }) => text), this.#open];
    const ids = this.#openWith(first === question ? question : `${question}\n…\n${first}`, examples);
    for (const [i, text] of rest.entries()) {
      const { said } = pairs[i]!;
      ids.push(...said, ...this.#next(text, this.#turns.closed(said)));
    }
    return ids;
  }
}

/** The turn encoder for a prompt. */
function turnsFor(turns: Turns, { tools }: ChatPrompt): Turns {
  if (!tools) return turns;
  if (turns.withTools) return turns.withTools(tools);
  throw new UsageError({ what: "this model cannot be given tools", remedy: "use --prompt instruct" });
}

/** Caches the ids of the latest examples per encoder, since every episode begins with them. */
const encoded = new WeakMap<Turns, { readonly key: string; readonly ids: readonly number[] }>();

/** Encodes the system prompt and the examples, to the end of the last reply. */
function exampleIds(turns: Turns, { system, tools }: ChatPrompt, examples: Prompt["examples"]): readonly number[] {
  const key = JSON.stringify([system, examples]);
  const known = encoded.get(turns);
  if (known?.key === key) return known.ids;
  const from = (isFirst = false) => (tools && !isFirst ? "tool" : "user");
  const ids = examples.flatMap(({ user, assistant, isFirst }, i) => [
    ...(i === 0 ? turns.start(system, user) : turns.next(user, { closed: true, from: from(isFirst) })),
    ...turns.say(assistant),
  ]);
  encoded.set(turns, { key, ids });
  return ids;
}

/** Tokens of the shortest question, and of an episode that needs no truncation. */
const QUESTION_TOKENS = 32;
const EPISODE_TOKENS = 800;

/** Throws if a prompt leaves no room for an episode; a chat template may also refuse tools. */
export function checkRoom(
  turns: Turns,
  choice: PromptChoice | undefined,
  { max_context_tokens, max_new_tokens }: Pick<ConversationOptions, "max_context_tokens" | "max_new_tokens">,
  rules?: EnvironmentRules,
): void {
  const prompt = promptFor(choice, rules);
  const counts = { step_count: 0, budget_remaining: 1, done: false };
  const first = prompt.format({ question: "", schema_info: "", result: "", error: null, error_class: null, ...counts });
  const conversation = new Conversation(turns, { max_context_tokens, max_new_tokens, prompt });
  const taken = conversation.prompt(first).length;
  if (taken + max_new_tokens + QUESTION_TOKENS <= max_context_tokens) return;
  throw new UsageError({
    what: `the prompt ${prompt.id} takes ${taken} tokens, a turn up to ${max_new_tokens}: there is no room to play in a context of`,
    value: max_context_tokens,
    remedy: `raise max_context_tokens to ${taken + max_new_tokens + EPISODE_TOKENS} or more, lower max_new_tokens, use fewer shots, or the prompt compact where the model was trained with it`,
  });
}
