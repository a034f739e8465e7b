// Chat with a model: messages become token ids, and ids become a completion with its ids, log-probs, text and tool calls.
// It knows nothing of HTTP: a server and a trainer of agents both build on it.
import { UsageError } from "../../errors.ts";
import type { Engine } from "../engine/index.ts";
import type { ModelConfig } from "../model/config.ts";
import { windowOf } from "../model/parameters.ts";
import type { ChatMessage, Tool, TurnEncoder } from "../model/text/chat-template.ts";
import type { Tokenizer } from "../model/text/tokenizer.ts";
import { Detokenizer } from "./detokenizer.ts";
import { ChatEncoder } from "./encode-chat.ts";
import { StopStrings } from "./stop-strings.ts";
import { type ParsedCall, type ReplyPart, ToolCallReader } from "./tool-calls.ts";

/** The parts of a loaded model that a chat needs. */
export interface ChatModel {
  readonly engine: Pick<Engine, "sample">;
  readonly tokenizer: Tokenizer;
  readonly turns: Pick<TurnEncoder, "stopIds" | "opening">;
  /** @default ChatML */
  readonly chatTemplate?: string | undefined;
  readonly config: ModelConfig;
}

export interface CompletionOptions {
  readonly max_new_tokens: number;
  /** 0 picks the likeliest token. @default 1 */
  readonly temperature?: number | undefined;
  readonly top_k?: number | undefined;
  readonly top_p?: number | undefined;
  readonly min_p?: number | undefined;
  /** Key of the random numbers: equal keys sample equal completions. */
  readonly key: readonly (string | number)[];
  /** The completion ends before any of these texts. @default none */
  readonly stop?: readonly string[] | undefined;
  /** How to treat <tool_call>: as text, as calls, or as one call that ends the completion. @default "text" */
  readonly calls?: "text" | "many" | "one" | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with each new part as it is sampled; the parts add up to the completion. */
  readonly onPart?: ((part: CompletionPart) => void) | undefined;
}

/** New tokens and what they add to the text and the calls. */
export interface CompletionPart extends ReplyPart {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}

export interface Completion {
  /** The context that was sampled from. */
  readonly prompt: readonly number[];
  /** All sampled tokens, with the one that closes the turn and, after a stop string, those that spell it. */
  readonly tokens: readonly number[];
  /** log π of each token at the temperature of sampling (at 0: at temperature 1), before top-k, top-p and min-p. */
  readonly logprobs: readonly number[];
  /** The text without special tokens, stop string and calls. */
  readonly content: string;
  readonly calls: readonly ParsedCall[];
  readonly finish_reason: "stop" | "length" | "tool_calls" | "aborted";
  /** Number of prompt tokens that were cached. */
  readonly cached_tokens: number;
}

/**
 * A model to chat with.
 *
 * @example
 * const chat = new Chat(await loadModelAndTokenizer("starter", { trains: false }));
 * const prompt = chat.encode([{ role: "user", content: "How many customers are there?" }]);
 * const { content, tokens, logprobs } = await chat.complete(prompt, { max_new_tokens: 64, temperature: 0, key: [7] });
 */
export class Chat {
  /** Maximum tokens of prompt and completion together. */
  readonly window: number;
  readonly tokenizer: Tokenizer;
  readonly #model: ChatModel;
  readonly #encoder: ChatEncoder;
  #longest: number | undefined;

  constructor(model: ChatModel) {
    const { tokenizer, chatTemplate: template, turns, config } = model;
    this.#model = model;
    this.tokenizer = tokenizer;
    this.window = windowOf(config);
    this.#encoder = new ChatEncoder({ tokenizer, template, opening: turns.opening });
  }

  /** Whether the model's template describes tools, to be called by <tool_call>. */
  get hasTools(): boolean {
    return this.#encoder.hasTools;
  }

  /**
   * Whether messages are certainly longer than the window. Counts characters, which is far faster than encoding: no
   * token stands for more than the longest one has, or twice as many where normalization shortens the text.
   */
  exceeds(messages: readonly ChatMessage[]): boolean {
    this.#longest ??= this.tokenizer.texts.reduce((longest, text) => Math.max(longest, text.length), 1);
    const characters = messages.reduce((sum, { content }) => sum + content.length, 0);
    return characters > 2 * this.#longest * this.window;
  }

  /** Encodes a chat up to the point where the model speaks. */
  encode(messages: readonly ChatMessage[], tools?: readonly Tool[]): number[] {
    if (tools && !this.hasTools)
      throw new UsageError({
        what: "the model's chat template has no section for tools that are called by <tool_call>",
        remedy: "use a model that has one, such as Qwen3",
      });
    return this.#encoder.encode(messages, tools);
  }

  /** Whether the model's template shows where a reply ends, which `extend` needs. */
  get canExtend(): boolean {
    const said = { role: "assistant", content: "Qprobeq" } as const;
    try {
      const asked = [{ role: "user", content: "Qprobeq" }, said, { role: "user", content: "Qprobeq" }] as const;
      return this.extend([], 1, asked) !== undefined;
    } catch (error) {
      if (error instanceof UsageError) return false;
      throw error;
    }
  }

  /**
   * Continues ids that end with a sampled reply, which is the assistant's message number `turn` (from 1): the ids with
   * those of the messages after it. Ids are never made again from text. Undefined if the template does not show where
   * the reply ends.
   */
  extend(
    ids: readonly number[],
    turn: number,
    messages: readonly ChatMessage[],
    tools?: readonly Tool[],
  ): number[] | undefined {
    const [closing] = this.#model.turns.stopIds;
    const token = this.tokenizer.addedTokens.find(({ id }) => id === closing);
    const more = token && this.#encoder.encodeAfter(turn, token.content, messages, tools);
    return more && [...ids, ...(ids.at(-1) === closing ? [] : [closing!]), ...more];
  }

  /** Samples a completion of encoded messages. */
  async complete(prompt: readonly number[], options: CompletionOptions): Promise<Completion> {
    const { max_new_tokens, temperature = 1, top_k = 0, top_p = 1, min_p = 0, key } = options;
    const { stop = [], calls = "text", signal, onPart } = options;
    const { engine, tokenizer, turns } = this.#model;
    const over = new AbortController(); // the reply ended before the model ended it
    const reader = new ReplyReader(tokenizer, { stop, calls, onPart });
    const take = (token: number, logprob: number) => {
      if (reader.add(token, logprob)) over.abort();
    };
    const isWatched = onPart !== undefined || stop.length > 0 || calls === "one";
    const sample = await engine.sample({
      prompt,
      max_new_tokens,
      stop_ids: turns.stopIds,
      ...{ temperature, top_k, top_p, min_p, key },
      signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal,
      ...(isWatched && { onToken: take }),
    });
    if (!isWatched) for (const [i, token] of sample.tokens.entries()) take(token, sample.logprobs[i]!);
    const { finish_reason, cached_tokens } = sample;
    const reason = over.signal.aborted ? "stop" : finish_reason;
    return { prompt, ...reader.end(reason), cached_tokens };
  }
}

/** Reads sampled tokens: decodes them, ends the reply at a stop string, and separates calls from text. */
class ReplyReader {
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopStrings;
  readonly #calls: ToolCallReader | undefined;
  readonly #isOneCall: boolean;
  readonly #onPart: CompletionOptions["onPart"];
  readonly #tokens: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #found: ParsedCall[] = [];
  #content = "";
  /** Number of tokens passed to `onPart`. */
  #passed = 0;
  #isOver = false;

  constructor(
    tokenizer: Tokenizer,
    { stop, calls, onPart }: Required<Pick<CompletionOptions, "stop" | "calls" | "onPart">>,
  ) {
    this.#detokenizer = new Detokenizer(tokenizer);
    this.#stops = new StopStrings(stop ?? []);
    this.#calls = calls === "text" ? undefined : new ToolCallReader();
    this.#isOneCall = calls === "one";
    this.#onPart = onPart;
  }

  /** Adds a token; true if it ends the reply. Tokens after that are dropped: the engine may be a few ahead. */
  add(token: number, logprob: number): boolean {
    if (this.#isOver) return false;
    this.#tokens.push(token);
    this.#logprobs.push(logprob);
    const text = this.#stops.add(this.#detokenizer.add(token));
    this.#pass(this.#calls ? this.#calls.add(text) : { content: text, calls: [] });
    this.#isOver = this.#stops.isOver || (this.#isOneCall && this.#found.length > 0);
    return this.#isOver;
  }

  /** Ends the reply for this reason; returns the completion. */
  end(reason: "stop" | "length" | "aborted"): Omit<Completion, "prompt" | "cached_tokens"> {
    const isDone = this.#isOneCall && this.#found.length > 0;
    const rest = isDone ? "" : this.#stops.add(this.#detokenizer.end()) + this.#stops.end();
    const isWhole = reason === "stop" || this.#stops.isOver;
    if (!isDone) {
      const last = this.#calls?.add(rest) ?? { content: rest, calls: [] };
      const held = this.#calls?.end(isWhole) ?? { content: "", calls: [] };
      this.#pass({ content: last.content + held.content, calls: [...last.calls, ...held.calls] }, true);
    }
    return {
      tokens: this.#tokens,
      logprobs: this.#logprobs,
      content: this.#content,
      calls: this.#found,
      finish_reason: isWhole && this.#found.length > 0 ? "tool_calls" : isWhole ? "stop" : reason,
    };
  }

  #pass({ content, calls }: ReplyPart, isLast = false): void {
    this.#content += content;
    this.#found.push(...calls);
    const isNew = content !== "" || calls.length > 0 || (isLast && this.#passed < this.#tokens.length);
    if (!this.#onPart || !isNew) return;
    const tokens = this.#tokens.slice(this.#passed);
    const logprobs = this.#logprobs.slice(this.#passed);
    this.#passed = this.#tokens.length;
    this.#onPart({ content, calls, tokens, logprobs });
  }
}
