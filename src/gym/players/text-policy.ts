// A language model's side of one episode: text in, text out, recorded token by token. It knows nothing of SQL.

import type { StopRule } from "../../stop-rule.ts";
import { type ChatPrompt, Conversation, type Turns } from "./prompts/conversation.ts";

/** The part of an engine that a policy needs. */
export interface TokenSampler {
  sample(request: {
    readonly prompt: readonly number[];
    readonly max_new_tokens: number;
    readonly stop_ids: readonly number[];
    readonly stop?: { readonly rule: StopRule; readonly texts: readonly string[] };
    readonly temperature: number;
    readonly top_k?: number;
    readonly top_p?: number;
    readonly min_p?: number;
    readonly key: readonly (string | number)[];
    readonly signal?: AbortSignal;
  }): Promise<{
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
    /** @default "length" if the tokens do not end with the token that closes a turn */
    readonly finish_reason?: "stop" | "length" | "aborted";
  }>;
}

export interface TextPolicyOptions {
  readonly engine: TokenSampler;
  readonly turns: Turns & { readonly stopIds: readonly number[] };
  /** Decodes sampled ids, without special tokens. */
  readonly decode: (ids: readonly number[]) => string;
  /** The text of every token id (the tokenizer's `texts`), for prompts with stop rules. @default no stop rules */
  readonly texts?: readonly string[] | undefined;
  /** The system prompt, examples, tools and the stop rule of replies. */
  readonly prompt: ChatPrompt & { readonly stop: StopRule | null };
  /** 0 is greedy. @default 0 */
  readonly temperature?: number;
  readonly top_k?: number;
  readonly top_p?: number;
  readonly min_p?: number;
  /** New tokens per turn. @default 256 */
  readonly max_new_tokens?: number;
  /** New tokens per episode; the episode ends when they are used up. @default no limit */
  readonly max_completion_length?: number;
  /** @default 2048 */
  readonly max_context_tokens?: number;
  /** First part of the random numbers' key; the episode's seed follows. @default [0] */
  readonly key?: readonly (string | number)[];
}

/**
 * A part of an episode whose tokens are exactly the context that was sampled from. Truncating the history starts a new
 * segment.
 */
export interface Segment {
  readonly tokens: number[];
  /** 1 for tokens the model generated, 0 elsewhere. */
  readonly mask: (0 | 1)[];
  /** log π of the model's tokens at sampling time, 0 elsewhere. */
  readonly logprobs: number[];
}

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** One turn of the model. */
export interface Reply {
  readonly text: string;
  /** Number of generated tokens, and of new prompt tokens before them. */
  readonly tokens: number;
  readonly prompt_tokens: number;
}

export interface TextEpisode {
  /** Last part of the random numbers' key. */
  readonly seed: string | number;
  readonly signal?: AbortSignal | undefined;
}

/** A model's policy in one episode. */
export class TextPolicy {
  readonly segments: Segment[] = [];
  /** The conversation, without the prompt's examples. */
  readonly messages: Message[];
  /** Number of tokens the model has generated. */
  written = 0;
  /** Whether the last turn was truncated, or no tokens are left. */
  truncated = false;
  readonly #options: TextPolicyOptions;
  readonly #episode: TextEpisode;
  readonly #conversation: Conversation;
  /** Number of tokens in the current segment that the model has read or generated. */
  #known = 0;

  constructor(options: TextPolicyOptions, episode: TextEpisode) {
    const { max_context_tokens = 2048, max_new_tokens = 256, turns, prompt } = options;
    this.#options = options;
    this.#episode = episode;
    this.messages = [{ role: "system", content: prompt.system }];
    this.#conversation = new Conversation(turns, { max_context_tokens, max_new_tokens, prompt });
  }

  /** The model's reply to a text from the environment; null if its tokens are used up or the context is full. */
  async reply(observed: string): Promise<Reply | null> {
    const { engine, turns, decode, texts, temperature = 0, top_k, top_p, min_p, key = [0] } = this.#options;
    const { max_new_tokens = 256, max_completion_length = Number.POSITIVE_INFINITY } = this.#options;
    const { max_context_tokens = 2048, prompt } = this.#options;
    const context = this.#conversation.prompt(observed);
    // A single text may exceed the context.
    const fits = max_context_tokens - context.length;
    const room = Math.min(max_new_tokens, max_completion_length - this.written, fits);
    if (room <= 0) {
      this.truncated = true;
      return null;
    }
    this.messages.push({ role: "user", content: observed });
    const segment = this.#addPrompt(context);
    const prompt_tokens = segment.tokens.length - this.#known;
    const { stop } = prompt;
    const { tokens, logprobs, finish_reason } = await engine.sample({
      prompt: context,
      max_new_tokens: room,
      stop_ids: turns.stopIds,
      temperature,
      ...(stop && texts ? { stop: { rule: stop, texts } } : {}),
      ...(top_k === undefined ? {} : { top_k }),
      ...(top_p === undefined ? {} : { top_p }),
      ...(min_p === undefined ? {} : { min_p }),
      // Positions repeat after a truncation, and must not reuse random numbers.
      key: [...key, this.#episode.seed, ...(this.#conversation.cuts > 0 ? [this.#conversation.cuts] : [])],
      ...(this.#episode.signal ? { signal: this.#episode.signal } : {}),
    });
    this.#conversation.said(tokens);
    push(segment, tokens, 1, logprobs);
    this.#known = segment.tokens.length;
    this.written += tokens.length;
    this.truncated = finish_reason === undefined ? !turns.closed(tokens) : finish_reason !== "stop";
    const text = decode(tokens);
    this.messages.push({ role: "assistant", content: text });
    return { text, tokens: tokens.length, prompt_tokens };
  }

  /** Adds new prompt tokens to the current segment, or to a new one after a truncation. */
  #addPrompt(prompt: readonly number[]): Segment {
    if (this.segments.length === this.#conversation.cuts) {
      this.segments.push({ tokens: [], mask: [], logprobs: [] });
      this.#known = 0;
    }
    const segment = this.segments.at(-1)!;
    push(segment, prompt.slice(segment.tokens.length), 0);
    return segment;
  }
}

function push({ tokens, mask, logprobs }: Segment, ids: readonly number[], mark: 0 | 1, logp?: readonly number[]) {
  for (let i = 0; i < ids.length; i++) {
    tokens.push(ids[i]!);
    mask.push(mark);
    logprobs.push(logp?.[i] ?? 0);
  }
}
