// The token ids of one rollout. A history that continues an earlier one keeps its ids, prompt and sampled; only what
// follows is encoded. Any other history begins a new segment.
import type { Segment } from "../../gym/players/index.ts";
import type { Chat, ChatMessage, Completion, Tool } from "../../lm/chat/index.ts";

/** The history after a reply. */
interface Point {
  /** Its messages, the reply included, each as one text that is equal for equal messages. */
  readonly messages: readonly string[];
  readonly tools: string;
  readonly ids: readonly number[];
  /** Index of its segment. */
  readonly segment: number;
  /** Number of assistant messages in it. */
  readonly turns: number;
}

/** What the model reads for a call. */
export interface Context {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly Tool[] | undefined;
  readonly ids: readonly number[];
  /** Messages that no earlier call of the same segment had. */
  readonly added: readonly ChatMessage[];
  /** Index of the segment it continues; null: it begins one. */
  readonly segment: number | null;
  /** Whether it begins like an earlier history, but then has replies that the model did not give. */
  readonly isAltered: boolean;
}

/** The calls of one rollout, as segments to learn from. */
export class RecordedChat {
  readonly segments: Segment[] = [];
  readonly #chat: Chat;
  readonly #points: Point[] = [];

  constructor(chat: Chat) {
    this.#chat = chat;
  }

  /** The context of a call. Throws UsageError if the chat template refuses the messages. */
  contextOf(messages: readonly ChatMessage[], tools: readonly Tool[] | undefined): Context {
    const keys = messages.map(keyOf);
    const known = this.#continued(keys, JSON.stringify(tools ?? []));
    const ids = known && this.#chat.extend(known.ids, known.turns, messages, tools);
    if (!known || !ids) {
      const common = Math.max(0, ...this.#points.map((point) => commonLength(point.messages, keys)));
      const isElsewhere = this.#hasReply(keys) || (common > 0 && messages.slice(common).some(isReply));
      const isAltered = known !== undefined || isElsewhere;
      return { messages, tools, ids: this.#chat.encode(messages, tools), added: messages, segment: null, isAltered };
    }
    const isLast = known.ids.length === this.segments[known.segment]!.tokens.length;
    const segment = isLast ? known.segment : null; // else it branches off in the middle of a segment, and begins its own
    return { messages, tools, ids, added: messages.slice(known.messages.length), segment, isAltered: false };
  }

  /** Adds the model's reply to a context. */
  add({ messages, tools, ids, segment }: Context, { tokens, logprobs, content, calls }: Completion): void {
    const index = segment ?? this.segments.length;
    this.segments[index] ??= { tokens: [], mask: [], logprobs: [] };
    const into = this.segments[index];
    for (const id of ids.slice(into.tokens.length)) push(into, id, 0, 0);
    for (const [i, id] of tokens.entries()) push(into, id, 1, logprobs[i]!);
    const tool_calls = calls.map((call) => ({ type: "function" as const, function: call }));
    const reply: ChatMessage = { role: "assistant", content, tool_calls };
    this.#points.push({
      messages: [...messages, reply].map(keyOf),
      tools: JSON.stringify(tools ?? []),
      ids: [...ids, ...tokens],
      segment: index,
      turns: 1 + messages.filter(isReply).length,
    });
  }

  /** Whether the model gave one of these messages, in whatever history. */
  #hasReply(keys: readonly string[]): boolean {
    const replies = new Set(this.#points.map(({ messages }) => messages.at(-1)));
    return keys.some((key) => replies.has(key));
  }

  /** The longest earlier history that these messages continue. */
  #continued(keys: readonly string[], tools: string): Point | undefined {
    return this.#points
      .filter((point) => point.tools === tools && commonLength(point.messages, keys) === point.messages.length)
      .reduce<Point | undefined>(
        (best, point) => (best && best.messages.length >= point.messages.length ? best : point),
        undefined,
      );
  }
}

function push({ tokens, mask, logprobs }: Segment, id: number, mine: 0 | 1, logprob: number): void {
  tokens.push(id);
  mask.push(mine);
  logprobs.push(logprob);
}

function isReply({ role }: ChatMessage): boolean {
  return role === "assistant";
}

/** A message as text: keys in a fixed order, without what is empty. */
function keyOf({ role, content, reasoning_content = "", tool_calls = [], name = "" }: ChatMessage): string {
  const calls = tool_calls.map((call) => [call.function.name, sorted(call.function.arguments)]);
  return JSON.stringify([role, content, reasoning_content, calls, name]);
}

/** A JSON value with the keys of its objects in order, since clients may send a call's arguments in another order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => [key, sorted(item)]);
}

function commonLength(a: readonly string[], b: readonly string[]): number {
  const end = a.findIndex((key, i) => key !== b[i]);
  return end < 0 ? a.length : end;
}
