// Answers an agent's requests in the shape of OpenAI's API.
import { UsageError } from "../../errors.ts";
import type { Chat, Completion, CompletionPart } from "../../lm/chat/index.ts";
import { LlmError } from "../../lm/chat/openai/error.ts";
import {
  completionReply,
  firstChunk,
  lastChunk,
  partChunk,
  type ReplyHead,
  usageChunk,
} from "../../lm/chat/openai/reply.ts";
import { type ChatRequest, parseRequest } from "../../lm/chat/openai/request.ts";

/** A call of the model that waits for its turn. */
export interface ModelCall {
  readonly request: ChatRequest;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
  /** Called when sampling begins. */
  readonly onPrompt?: (prompt: readonly number[]) => void;
  readonly onPart?: (part: CompletionPart) => void;
}

/** Resolves with the model's reply; rejects with LlmError if the call is refused. */
export type Complete = (call: ModelCall) => Promise<Completion>;

export interface OpenAiCalls {
  readonly chat: Chat;
  /** Name of the model. */
  readonly model: string;
  readonly complete: Complete;
}

/** Answers the body of POST /chat/completions. */
export async function answerCompletion(body: string, signal: AbortSignal, calls: OpenAiCalls): Promise<Response> {
  const { chat, model, complete } = calls;
  try {
    const request = parseRequest(body);
    refuse(request, chat, model);
    const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model };
    if (request.streams) return await stream(request, head, signal, calls);
    return Response.json(completionReply(head, [await complete({ request, signal })], request, chat));
  } catch (error) {
    return errorOf(error).response;
  }
}

/** Answers every request of an agent in this process. */
export function agentFetch(
  calls: OpenAiCalls,
): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  return async (input, init) => {
    const request = new Request(input, init);
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/chat/completions")) return answerCompletion(await request.text(), request.signal, calls);
    if (pathname.endsWith("/models"))
      return Response.json({ object: "list", data: [{ id: calls.model, object: "model" }] });
    return new LlmError(404, { message: `there is no ${pathname} here, only /chat/completions and /models` }).response;
  };
}

function refuse({ n, tools }: ChatRequest, chat: Chat, model: string): void {
  if (n > 1)
    throw new LlmError(400, {
      message: "n: a recorded rollout has one choice per call",
      param: "n",
      code: "unsupported_parameter",
    });
  if (tools && !chat.hasTools)
    throw new LlmError(400, {
      message: `tools: the chat template of ${model} does not support tools that are called by <tool_call>; use a model that does, such as Qwen3, or send the actions as text`,
      param: "tools",
      code: "unsupported_parameter",
    });
}

/** Server-sent events. Resolves when sampling begins, so that a call that is refused has its status. */
async function stream(
  request: ChatRequest,
  head: ReplyHead,
  signal: AbortSignal,
  calls: OpenAiCalls,
): Promise<Response> {
  const { chat, complete } = calls;
  const gone = new AbortController();
  const encoder = new TextEncoder();
  let send: (text: string) => void = () => {};
  let end = () => {};
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      send = (text) => gone.signal.aborted || controller.enqueue(encoder.encode(text));
      end = () => gone.signal.aborted || controller.close();
    },
    cancel: () => gone.abort(),
  });
  const event = (data: object) => send(`data: ${JSON.stringify(data)}\n\n`);
  let count = 0;
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const completion = complete({
    request,
    signal: AbortSignal.any([signal, gone.signal]),
    onPrompt: (prompt) => {
      event(firstChunk(head, 0, prompt, request));
      begin();
    },
    onPart: (part) => {
      event(partChunk(head, 0, part, count, request, chat));
      count += part.calls.length;
    },
  });
  const sent = completion.then(
    (done) => {
      event(lastChunk(head, 0, done));
      if (request.includesUsage) event(usageChunk(head, [done]));
      send("data: [DONE]\n\n");
    },
    (error: unknown) => event(errorOf(error).body),
  );
  sent.then(end);
  await Promise.race([begun, completion]);
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}

function errorOf(error: unknown): LlmError {
  if (error instanceof LlmError) return error;
  if (error instanceof UsageError) return new LlmError(400, { message: error.message, param: "messages" });
  return new LlmError(500, { message: "the model failed; the training's log says why" });
}
