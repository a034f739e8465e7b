// Replies of the LLM endpoint in the shape of OpenAI's API.
import type { Chat, Completion, CompletionPart, ParsedCall } from "../index.ts";
import type { ChatRequest } from "./request.ts";

/** What all parts of a reply have in common. */
export interface ReplyHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A whole completion. */
export function completionReply(
  head: ReplyHead,
  completions: readonly Completion[],
  request: ChatRequest,
  chat: Chat,
): object {
  return {
    ...head,
    object: "chat.completion",
    choices: completions.map(({ content, calls, tokens, logprobs, finish_reason }, index) => ({
      index,
      message: {
        role: "assistant",
        content: content === "" && calls.length > 0 ? null : content,
        refusal: null,
        ...(calls.length > 0 && { tool_calls: calls.map((call, i) => callReply(head, index, i, call)) }),
      },
      logprobs: request.logprobs ? logprobsReply(chat, tokens, logprobs) : null,
      finish_reason,
      ...(request.returnsIds && { token_ids: tokens }),
    })),
    usage: usageOf(completions),
    ...(request.returnsIds && { prompt_token_ids: completions[0]!.prompt }),
  };
}

/** The first part of a streamed choice. */
export function firstChunk(head: ReplyHead, index: number, prompt: readonly number[], request: ChatRequest): object {
  const ids = request.returnsIds && index === 0 ? { prompt_token_ids: prompt } : {};
  return { ...chunk(head, index, { role: "assistant", content: "" }, null), ...ids };
}

/** A part of a streamed choice; `calls` is the number of calls before it. */
export function partChunk(
  head: ReplyHead,
  index: number,
  { content, calls, tokens, logprobs }: CompletionPart,
  before: number,
  request: ChatRequest,
  chat: Chat,
): object {
  const delta = {
    ...(content !== "" && { content }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, i) => ({ index: before + i, ...callReply(head, index, before + i, call) })),
    }),
  };
  const more = {
    ...(request.logprobs && { logprobs: logprobsReply(chat, tokens, logprobs) }),
    ...(request.returnsIds && { token_ids: tokens }),
  };
  return chunk(head, index, delta, null, more);
}

/** The last part of a streamed choice. */
export function lastChunk(head: ReplyHead, index: number, { finish_reason }: Completion): object {
  return chunk(head, index, {}, finish_reason);
}

/** The part after all choices, for `stream_options.include_usage`. */
export function usageChunk(head: ReplyHead, completions: readonly Completion[]): object {
  return { ...head, object: "chat.completion.chunk", choices: [], usage: usageOf(completions) };
}

function chunk(head: ReplyHead, index: number, delta: object, finish_reason: string | null, more: object = {}): object {
  const choice = { index, delta, logprobs: null, finish_reason, ...more };
  return { ...head, object: "chat.completion.chunk", choices: [choice] };
}

function callReply({ id }: ReplyHead, choice: number, place: number, { name, arguments: args }: ParsedCall): object {
  const random = id.replace(/^chatcmpl-/, "").slice(0, 8);
  return {
    id: `call_${random}_${choice}_${place}`,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  };
}

function logprobsReply({ tokenizer }: Chat, tokens: readonly number[], logprobs: readonly number[]): object {
  const content = tokens.map((id, i) => {
    const bytes = tokenizer.bytesOf(id);
    return { token: decoder.decode(bytes), logprob: logprobs[i]!, bytes: [...bytes], top_logprobs: [] };
  });
  return { content, refusal: null };
}

function usageOf(completions: readonly Completion[]): object {
  const prompt_tokens = completions[0]!.prompt.length;
  const completion_tokens = completions.reduce((sum, { tokens }) => sum + tokens.length, 0);
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: Math.min(...completions.map(({ cached_tokens }) => cached_tokens)) },
  };
}
