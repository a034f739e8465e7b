// Encodes a whole chat as token ids, by the model's own template. Unlike a turn encoder it takes messages in any order
// that the template accepts; where both apply, the ids are equal.
import { UsageError } from "../../errors.ts";
import {
  CHATML_TEMPLATE,
  type ChatMessage,
  renderChat,
  type Tool,
  type TurnEncoder,
} from "../model/text/chat-template.ts";
import { type ParsedTemplate, parseTemplate } from "../model/text/jinja.ts";
import type { Tokenizer } from "../model/text/tokenizer.ts";

export interface ChatEncoderOptions {
  readonly tokenizer: Tokenizer;
  /** @default ChatML */
  readonly template?: string | undefined;
  /** What the generation prompt writes on the model's behalf; see `TurnEncoder`. */
  readonly opening: TurnEncoder["opening"];
}

const PROBE: readonly ChatMessage[] = [{ role: "user", content: "Qprobeq" }];
const PROBE_TOOL: Tool = {
  type: "function",
  function: { name: "qtoolq", description: "", parameters: { type: "object", properties: {} } },
};

/** Encodes chats for one model. */
export class ChatEncoder {
  /** Whether the template describes tools, to be called by <tool_call>. */
  readonly hasTools: boolean;
  readonly #tokenizer: Tokenizer;
  readonly #template: ParsedTemplate;
  readonly #opening: string;
  /** What precedes the model's text: the generation prompt without the opening; empty if the template has none. */
  readonly #header: string;
  readonly #ids: ReadonlyMap<string, number>;
  readonly #tokens: RegExp | undefined;
  readonly #special: RegExp | undefined;

  constructor({ tokenizer, template = CHATML_TEMPLATE, opening }: ChatEncoderOptions) {
    this.#tokenizer = tokenizer;
    this.#template = parseTemplate(template);
    this.#opening = opening;
    this.#ids = new Map(tokenizer.addedTokens.map(({ content, id }) => [content, id]));
    this.#tokens = anyOf([...this.#ids.keys()]);
    this.#special = anyOf(tokenizer.addedTokens.flatMap(({ content, special }) => (special ? [content] : [])));
    const before = this.#render(PROBE, undefined, false);
    const after = this.#render(PROBE, undefined, true);
    const asked = after.startsWith(before) ? after.slice(before.length) : "";
    this.#header = asked.endsWith(opening) ? asked.slice(0, asked.length - opening.length) : "";
    this.hasTools = this.#describes(PROBE_TOOL);
  }

  /**
   * Encodes the chat up to the point where the model speaks. Only the template makes special tokens: a message that
   * contains their text stays text. Throws UsageError if the template refuses the messages.
   */
  encode(messages: readonly ChatMessage[], tools?: readonly Tool[]): number[] {
    const { parts, mark } = this.#partsOf(messages, tools);
    return parts.flatMap((part) => this.#encodePart(part, mark));
  }

  /**
   * Encodes what follows one of the assistant's messages (`turn`, from 1) up to the point where the model speaks again:
   * from after the token that closes that message. Nothing before it is encoded. Undefined if the template does not
   * show where the message ends.
   */
  encodeAfter(
    turn: number,
    closing: string,
    messages: readonly ChatMessage[],
    tools?: readonly Tool[],
  ): number[] | undefined {
    const { parts, mark } = this.#partsOf(messages, tools);
    const said = messages.filter(({ role }) => role === "assistant").length;
    const [part = "", ...rest] = parts.slice(turn);
    const end = part.indexOf(closing);
    if (parts.length !== said + 2 || turn > said || end < 0) return undefined;
    return [part.slice(end + closing.length), ...rest].flatMap((text) => this.#encodePart(text, mark));
  }

  /**
   * The rendered chat, split where the model begins to speak. Where a message contains the text of a special token, `mark`
   * is inserted after its first character, so that it is not encoded as that token; it is removed when encoding.
   */
  #partsOf(messages: readonly ChatMessage[], tools: readonly Tool[] | undefined): { parts: string[]; mark: string } {
    const mark = unusedCharacter(JSON.stringify([messages, tools ?? []]));
    const split = (text: string, pattern: RegExp | undefined) =>
      pattern ? text.replace(pattern, (token) => token[0]! + mark + token.slice(1)) : text;
    const guarded = <T>(value: T, pattern = this.#tokens): T => mapStrings(value, (text) => split(text, pattern)) as T;
    // The model's own text may contain tokens that are not special, such as <think>.
    const given = messages.map((message) =>
      message.role === "assistant"
        ? { ...guarded(message), content: split(message.content, this.#special) }
        : { ...message, content: split(message.content, this.#tokens) },
    );
    let text: string;
    try {
      text = this.#render(given, tools && guarded(tools), true);
    } catch (cause) {
      const reason = cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause);
      throw new UsageError({ what: "the model's chat template refuses these messages", value: reason, cause });
    }
    return { parts: this.#withOpenings(text), mark };
  }

  /**
   * Splits the text where the model begins to speak: there its tokens begin, which never merge with the template's.
   * Earlier turns keep the opening (docs/decisions/0006-append-only-chat-encoding.md).
   */
  #withOpenings(text: string): string[] {
    if (this.#header === "") return [text];
    const opening = this.#opening;
    const firstWord = opening.trim().split(/\s/)[0]!;
    const [head = "", ...turns] = text.split(this.#header);
    let before = head;
    const parts: string[] = [];
    for (const turn of turns) {
      const hasOpening = opening === "" || turn.startsWith(opening);
      const thinks = !hasOpening && turn.startsWith(firstWord);
      parts.push(before + this.#header + (thinks ? "" : opening));
      before = hasOpening ? turn.slice(opening.length) : turn;
    }
    return [...parts, before];
  }

  #encodePart(part: string, mark: string): number[] {
    const ids: number[] = [];
    const plain = (text: string) => {
      for (const id of this.#tokenizer.encodePlain(text.replaceAll(mark, ""))) ids.push(id);
    };
    let from = 0;
    for (const { 0: token, index } of this.#tokens ? part.matchAll(this.#tokens) : []) {
      plain(part.slice(from, index));
      ids.push(this.#ids.get(token)!);
      from = index + token.length;
    }
    plain(part.slice(from));
    return ids;
  }

  #render(
    messages: readonly ChatMessage[],
    tools: readonly Tool[] | undefined,
    add_generation_prompt: boolean,
  ): string {
    const { bosToken: bos_token, eosToken: eos_token } = this.#tokenizer;
    return renderChat(this.#template, messages, { tools, add_generation_prompt, bos_token, eos_token });
  }

  #describes(tool: Tool): boolean {
    try {
      const text = this.#render(PROBE, [tool], true);
      return text.includes(tool.function.name) && text.includes("<tool_call>");
    } catch {
      return false;
    }
  }
}

/** A pattern that matches any of these texts, the longest first. */
function anyOf(texts: readonly string[]): RegExp | undefined {
  if (texts.length === 0) return undefined;
  const longestFirst = [...texts].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "gu");
}

/** A private-use character that does not occur in a text. */
function unusedCharacter(text: string): string {
  for (let code = 0xe000; code <= 0xf8ff; code++) {
    const character = String.fromCharCode(code);
    if (!text.includes(character)) return character;
  }
  throw new UsageError({ what: "the messages use all private-use characters", remedy: "leave some out" });
}

/** Applies a function to every text in a JSON value, keys included. */
function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapStrings(item, change)]));
}
