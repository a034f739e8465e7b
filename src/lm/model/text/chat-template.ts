// Encodes chats as token ids. The model's template is split once, so that turns are appended and nothing is tokenized
// twice. docs/decisions/0006-append-only-chat-encoding.md explains which templates are accepted and why.
import { ModelLoadError, messageOf, UsageError } from "../../../errors.ts";
import { type ParsedTemplate, parseTemplate, renderTemplate } from "./jinja.ts";
import type { Tokenizer } from "./tokenizer.ts";

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly reasoning_content?: string;
  /** Calls that the assistant made; the arguments are an object, not JSON text. */
  readonly tool_calls?: readonly {
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
  }[];
  /** Name of the tool or participant, for templates that show it. */
  readonly name?: string;
}

/** A function that the model may call, in the format of chat templates and OpenAI's API. */
export interface Tool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** JSON Schema. */
    readonly parameters?: Readonly<Record<string, unknown>>;
  };
}

export interface RenderOptions {
  /** @default none */
  readonly tools?: readonly Tool[] | undefined;
  readonly add_generation_prompt?: boolean;
  /** Passed to the template; templates without it ignore it. @default false */
  readonly enable_thinking?: boolean;
  readonly bos_token?: string | undefined;
  readonly eos_token?: string | undefined;
}

/** ChatML, for models without a template. */
export const CHATML_TEMPLATE =
  "{%- for message in messages %}" +
  "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
  "{%- endfor %}" +
  "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

/** Renders messages with a chat template. */
export function renderChat(
  template: string | ParsedTemplate,
  messages: readonly ChatMessage[],
  { tools, add_generation_prompt = true, enable_thinking = false, bos_token = "", eos_token = "" }: RenderOptions = {},
): string {
  try {
    const parsed = typeof template === "string" ? parseTemplate(template) : template;
    const variables = { messages, add_generation_prompt, enable_thinking, bos_token, eos_token };
    return renderTemplate(parsed, tools ? { ...variables, tools } : variables);
  } catch (error) {
    throw refused(`it cannot be rendered (${messageOf(error)})`, error);
  }
}

export interface NextOptions {
  /** Whether the model's last ids end with the token that closes its turn; see `closed(ids)`. */
  readonly closed: boolean;
  /** Who answers the model; `tool` requires an encoder with tools. @default "user" */
  readonly from?: "user" | "tool";
}

/** Encodes a chat piece by piece; ids returned earlier never change. */
export interface TurnEncoder {
  /** Encodes the start of the chat, up to the point where the model speaks. */
  start(system: string, user: string): number[];
  /**
   * Encodes what follows the model's ids: the end of its turn and the user's turn, up to the point where the model
   * speaks again.
   */
  next(user: string, options: NextOptions): number[];
  /** Encodes a whole turn of the model, including the token that closes it. */
  say(text: string): number[];
  /** Whether these sampled ids end with the token that closes a turn. */
  closed(ids: readonly number[]): boolean;
  /**
   * Returns an encoder for chats in which the model has these tools. Throws ModelLoadError if the template does not
   * support them.
   */
  withTools(tools: readonly Tool[]): TurnEncoder;
  /** Ids at which sampling stops: the closing token first, then all other end-of-text tokens. */
  readonly stopIds: readonly number[];
  /** Fixed text with which the generation prompt starts the model's turn but which the history omits; often empty. */
  readonly opening: string;
}

export interface TurnEncoderOptions {
  /** Additional ids at which sampling stops, such as those in generation_config.json. @default [] */
  readonly eosIds?: readonly number[];
}

/** A template in parts: the first prompt is `head system between user ask`, each later one `close user ask`. */
interface Pieces {
  readonly head: string;
  readonly between: string;
  /** From the end of the user's text to the start of the model's, including `opening`. */
  readonly ask: string;
  readonly opening: string;
  /** From the end of the model's text to the user's next text. */
  readonly close: string;
  /** The same parts around a tool's text, if there are tools. */
  readonly tool: { readonly close: string; readonly ask: string } | undefined;
  readonly trims: { readonly system: boolean; readonly user: boolean };
}

/** Maximum number of texts whose ids are cached: enough for the observations of a few training steps. */
const TEXTS_KEPT = 4_096;

/**
 * Splits a template and checks that it only appends; rejects one that rewrites earlier turns, with the reason.
 *
 * @example
 * const turns = createTurnEncoder(model.tokenizer); // ChatML
 * const ids = turns.start("You answer questions.", "How many customers are there?");
 */
export function createTurnEncoder(
  tokenizer: Tokenizer,
  template: string = CHATML_TEMPLATE,
  { eosIds = [] }: TurnEncoderOptions = {},
  tools?: readonly Tool[],
): TurnEncoder {
  const pieces = takeApart(template, tokenizer, tools);
  const cut = sectionCutter(tokenizer);
  const [first = ""] = cut(pieces.close);
  const closing = tokenizer.addedTokens.find(({ content, special }) => special && content === first);
  if (!closing && template === CHATML_TEMPLATE)
    throw new ModelLoadError({
      what: "the model has no chat template, and its vocabulary lacks the tokens of ChatML",
      value: first,
      remedy: "use the version of the model that was trained for chats, such as its Instruct version",
    });
  if (!closing)
    throw refused(`a model's turn is not closed by a special token, but by ${JSON.stringify(pieces.close)}`);
  const afterClosing = pieces.close.slice(closing.content.length);
  if (pieces.tool && !pieces.tool.close.startsWith(closing.content))
    throw refused(`before a tool's result a turn is closed by ${JSON.stringify(pieces.tool.close)}`);
  const ends = tokenizer.eosId === undefined ? eosIds : [tokenizer.eosId, ...eosIds];
  const stopIds = [...new Set([closing.id, ...ends])];
  const user = (text: string) => (pieces.trims.user ? text.trim() : text);
  const system = (text: string) => (pieces.trims.system ? text.trim() : text);

  // The episodes of a group begin with the same texts, and many explore the same tables.
  const texts = new Map<string, readonly number[]>();
  const encodeText = (text: string): readonly number[] => {
    const known = texts.get(text);
    if (known) return known;
    const ids = tokenizer.encodePlain(text);
    if (texts.size >= TEXTS_KEPT) texts.clear();
    texts.set(text, ids);
    return ids;
  };

  /**
   * Encodes template text (even indices) and content (odd indices). Text between special tokens is encoded in one
   * piece, as it would be in the template's output.
   */
  function encode(parts: readonly string[]): number[] {
    const ids: number[] = [];
    let run = "";
    const flush = () => {
      for (const id of encodeText(run)) ids.push(id);
      run = "";
    };
    parts.forEach((part, index) => {
      if (index % 2 === 1) {
        run += part;
        return;
      }
      for (const section of cut(part)) {
        const token = tokenizer.addedTokens.find(({ content }) => content === section);
        if (token) {
          flush();
          ids.push(token.id);
        } else {
          run += section;
        }
      }
    });
    flush();
    return ids;
  }

  const answers = {
    user: { before: afterClosing, after: pieces.ask },
    tool: pieces.tool && { before: pieces.tool.close.slice(closing.content.length), after: pieces.tool.ask },
  };
  const withTools = new Map<string, TurnEncoder>();

  return {
    start: (first, question) => encode([pieces.head, system(first), pieces.between, user(question), pieces.ask]),
    next: (text, { closed, from = "user" }) => {
      const answer = answers[from];
      if (!answer) throw new UsageError({ what: "this chat has no tools that could answer" });
      return [...(closed ? [] : [closing.id]), ...encode([answer.before, user(text), answer.after])];
    },
    say: (text) => [...(tools ? encodeCall(text, tokenizer) : tokenizer.encodePlain(text)), closing.id],
    withTools(given) {
      const key = JSON.stringify(given);
      const known = withTools.get(key) ?? createTurnEncoder(tokenizer, template, { eosIds }, given);
      withTools.set(key, known);
      return known;
    },
    closed: (ids) => ids.at(-1) === closing.id,
    stopIds,
    opening: pieces.opening,
  };
}

/** Encodes a reply; the tags of a tool call become single tokens if the vocabulary has them. */
function encodeCall(text: string, tokenizer: Tokenizer): number[] {
  return text.split(/(<\/?tool_call>)/).flatMap((part) => {
    const token = tokenizer.addedTokens.find(({ content }) => content === part);
    return token ? [token.id] : tokenizer.encodePlain(part);
  });
}

/**
 * Returns a function that splits template text at added tokens, which become their own sections; if two match, the
 * longer wins.
 */
function sectionCutter(tokenizer: Tokenizer): (text: string) => string[] {
  const contents = tokenizer.addedTokens.map(({ content }) => content).sort((a, b) => b.length - a.length);
  if (contents.length === 0) return (text) => (text === "" ? [] : [text]);
  const pattern = new RegExp(`(${contents.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "u");
  return (text) => text.split(pattern).filter((section) => section !== "");
}

// Two sets of texts to recognize in a template's output: words that no template changes, and texts with spaces and line
// breaks.
const SENTINELS = [
  { system: "Qsystemq", user: ["Quseroneq", "Qusertwoq", "Quserthreeq"], model: ["Qmodeloneq", "Qmodeltwoq"] },
  { system: "Zz", user: ["Zy\n\nZy", "Zx", "Zw Zw."], model: ["Zv: Zv;", "Zu\nZu"] },
] as const;

function takeApart(template: string, tokenizer: Tokenizer, tools?: readonly Tool[]): Pieces {
  let parsed: ParsedTemplate;
  try {
    parsed = parseTemplate(template);
  } catch (error) {
    throw refused(`it cannot be parsed (${messageOf(error)})`, error);
  }
  const render = (messages: readonly ChatMessage[]) =>
    renderChat(parsed, messages, { bos_token: tokenizer.bosToken, eos_token: tokenizer.eosToken, tools });
  const piecesOf = (texts: (typeof SENTINELS)[number]) => {
    const pieces = takeApartWith(render, texts, "user");
    if (!tools) return { ...pieces, tool: undefined };
    if (![pieces.head, pieces.between].some((part) => part.includes("<tool_call>"))) throw withoutTools();
    const { head, between, ask, close, toolAsk } = takeApartWith(render, texts, "tool");
    same([head, between, ask], [pieces.head, pieces.between, pieces.ask]);
    return { ...pieces, tool: { close, ask: toolAsk } };
  };
  const [one, two] = SENTINELS.map(piecesOf);
  if (JSON.stringify(one) !== JSON.stringify(two)) throw refused("what it puts around a text depends on the text");
  const { head, between, ask, close, tool } = one!;
  const used = [head, between, ask, close, tool?.close ?? "", tool?.ask ?? ""].flatMap(sectionCutter(tokenizer));
  const eats = tokenizer.addedTokens.find(
    ({ content, lstrip, rstrip, single_word }) => used.includes(content) && (lstrip || rstrip || single_word),
  );
  if (eats) throw refused(`its token ${eats.content} swallows spaces of the text beside it`);
  return { ...one!, trims: { system: trims(render, "system"), user: trims(render, "user") } };
}

type Render = (messages: readonly ChatMessage[]) => string;

type Taken = Omit<Pieces, "trims" | "tool"> & { readonly toolAsk: string };

/** Splits a template by rendering a chat in which the user or a tool answers the model. */
function takeApartWith(render: Render, texts: (typeof SENTINELS)[number], from: "user" | "tool"): Taken {
  const { system, user, model } = texts;
  const messages: ChatMessage[] = [
    { role: "system", content: system },
    { role: "user", content: user[0] },
  ];
  const first = around(render(messages), [system, user[0]]);
  const [head = "", between = "", ask = ""] = first;
  messages.push({ role: "assistant", content: model[0] }, { role: from, content: user[1] });
  const second = around(render(messages), [system, user[0], model[0], user[1]]);
  const [, , beforeModel = "", close = "", last = ""] = second;
  // The prompt may end with the start of the model's turn, which the history omits (Qwen3: an empty think block).
  if (!ask.startsWith(beforeModel)) {
    throw refused(`after a turn it writes ${JSON.stringify(beforeModel)} where the prompt had ${JSON.stringify(ask)}`);
  }
  const opening = ask.slice(beforeModel.length);
  if (!last.endsWith(opening))
    throw refused(`after a tool's result the model begins otherwise: ${JSON.stringify(last)}`);
  const toolAsk = from === "tool" ? last : ask;
  same(second, [head, between, beforeModel, close, toolAsk]);
  messages.push({ role: "assistant", content: model[1] }, { role: from, content: user[2] });
  const third = around(render(messages), [system, user[0], model[0], user[1], model[1], user[2]]);
  const again = toolAsk.slice(0, toolAsk.length - opening.length);
  same(third, [head, between, beforeModel, close, again, close, toolAsk]);
  return { head, between, ask, opening, close, toolAsk };
}

/** The text before, between and after the given parts, each of which must occur once and in this order. */
function around(text: string, parts: readonly string[]): string[] {
  const found: string[] = [];
  let rest = text;
  for (const part of parts) {
    const at = rest.indexOf(part);
    if (at < 0) throw refused(`it leaves out, changes or moves a message (${JSON.stringify(part)})`);
    found.push(rest.slice(0, at));
    rest = rest.slice(at + part.length);
  }
  if (parts.some((part) => [...found, rest].some((piece) => piece.includes(part)))) {
    throw refused("it writes a message twice");
  }
  return [...found, rest];
}

function same(pieces: readonly string[], expected: readonly string[]): void {
  const at = pieces.findIndex((piece, i) => piece !== expected[i]);
  if (at >= 0) {
    throw refused(
      `it rewrites earlier turns: ${JSON.stringify(expected[at])} becomes ${JSON.stringify(pieces[at])} when the chat continues`,
    );
  }
}

/** Whether the template trims the spaces around a message; rejects a template that trims only one side. */
function trims(render: Render, role: "system" | "user"): boolean {
  const padded = " \n Qtextq \n ";
  const messages: ChatMessage[] = [
    { role: "system", content: role === "system" ? padded : "Qotherq" },
    { role: "user", content: role === "user" ? padded : "Qotherq" },
  ];
  const plain = messages.map(({ role, content }) => ({ role, content: content.trim() }));
  const text = render(messages);
  if (text === render(plain)) return true;
  if (text === render(plain).replace("Qtextq", padded)) return false;
  throw refused(`it changes the spaces around a ${role} message`);
}

function withoutTools(): ModelLoadError {
  return new ModelLoadError({
    what: "the model's chat template has no section for tools that are called by <tool_call>",
    remedy: "use --prompt instruct",
  });
}

function refused(reason: string, cause?: unknown): ModelLoadError {
  return new ModelLoadError({
    what: `the chat template cannot be used turn by turn: ${reason}`,
    remedy: "use a model whose template only appends, or remove the template to get ChatML",
    cause,
  });
}
