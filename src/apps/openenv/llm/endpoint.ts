// The LLM endpoint: GET /v1/models and POST /v1/chat/completions for one local model, as OpenAI's API has them.
import { randomUUID } from "node:crypto";
import { messageOf, UsageError } from "../../../errors.ts";
import type { Chat, Completion } from "../../../lm/chat/index.ts";
import { LlmError } from "../../../lm/chat/openai/error.ts";
import {
  completionReply,
  firstChunk,
  lastChunk,
  partChunk,
  type ReplyHead,
  usageChunk,
} from "../../../lm/chat/openai/reply.ts";
import { type ChatRequest, parseRequest } from "../../../lm/chat/openai/request.ts";
import type { HeldBytes } from "../held-bytes.ts";
import { COMPLETIONS, COMPLETIONS_PER_CLIENT, RUNNING_COMPLETIONS } from "../limits.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { EventStream } from "./event-stream.ts";
import { CompletionQueue } from "./queue.ts";

/** A model to serve. */
export interface ServedModel {
  /** The model's name in requests. */
  readonly name: string;
  readonly chat: Chat;
  /** Tokens of contexts sampled at once; the engine's `facts.cacheTokens`. @default 16384 */
  readonly cacheTokens?: number | undefined;
}

export interface EndpointOptions {
  readonly held: HeldBytes;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Who sends a request. */
export interface LlmCaller {
  readonly client: string;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

/** A request that is ready to run. */
interface Work extends LlmCaller {
  readonly request: ChatRequest;
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly head: ReplyHead;
}

/** Serves one model. */
export class LlmEndpoint {
  readonly queue: CompletionQueue;
  readonly #model: ServedModel;
  readonly #options: EndpointOptions;
  readonly #context: number;
  readonly #created = now();

  constructor(model: ServedModel, options: EndpointOptions) {
    const { cacheTokens = 16_384 } = model;
    this.#model = model;
    this.#options = options;
    this.#context = Math.min(model.chat.window, cacheTokens);
    this.queue = new CompletionQueue({
      tokens: cacheTokens,
      running: RUNNING_COMPLETIONS,
      perClient: COMPLETIONS_PER_CLIENT,
      total: COMPLETIONS,
    });
  }

  /** GET /v1/models. */
  models(): object {
    const { name: id } = this.#model;
    const model = { id, object: "model", created: this.#created, owned_by: "sqlenv", max_model_len: this.#context };
    return { object: "list", data: [model] };
  }

  /** POST /v1/chat/completions. */
  async answer(body: string, caller: LlmCaller): Promise<Response> {
    try {
      const work = this.#prepare(body, caller);
      if (work.request.streams) return this.#stream(work);
      const completions = await this.#completeAll(work);
      return Response.json(completionReply(work.head, completions, work.request, this.#model.chat));
    } catch (error) {
      return this.#errorOf(error).response;
    }
  }

  /** Refuses new requests; resolves when the others are done, after `seconds` at most. */
  drain(seconds: number): Promise<void> {
    return this.queue.drain(seconds);
  }

  /** Checks a request and encodes its messages. */
  #prepare(body: string, caller: LlmCaller): Work {
    const { name, chat } = this.#model;
    const request = parseRequest(body);
    if (request.model !== name)
      throw new LlmError(404, {
        message: `the model ${JSON.stringify(request.model.slice(0, 100))} does not exist here; this server has ${name}`,
        param: "model",
        code: "model_not_found",
      });
    if (request.tools && !chat.hasTools)
      throw new LlmError(400, {
        message: `tools: the chat template of ${name} does not support tools that are called by <tool_call>; use a model that does, such as Qwen3, or send the actions as text`,
        param: "tools",
        code: "unsupported_parameter",
      });
    this.queue.check(caller.client, request.n);
    if (chat.exceeds(request.messages))
      throw new LlmError(400, {
        message: `the messages are far longer than the context of ${name}, which has ${this.#context} tokens`,
        param: "messages",
        code: "context_length_exceeded",
      });
    const prompt = this.#encode(request);
    const room = this.#context - prompt.length;
    const { maxTokens = Math.max(1, room) } = request;
    if (maxTokens > room)
      throw new LlmError(400, {
        message: `the messages have ${prompt.length} tokens and max_tokens is ${maxTokens}, but the context of ${name} has ${this.#context}`,
        param: "messages",
        code: "context_length_exceeded",
      });
    const head = { id: `chatcmpl-${randomUUID()}`, created: now(), model: name };
    return { ...caller, request, prompt, maxTokens, head };
  }

  #encode({ messages, tools }: ChatRequest): number[] {
    try {
      return this.#model.chat.encode(messages, tools);
    } catch (error) {
      if (error instanceof UsageError) throw new LlmError(400, { message: error.message, param: "messages" });
      throw error;
    }
  }

  #completeAll(work: Work): Promise<Completion[]> {
    return Promise.all(Array.from({ length: work.request.n }, (_, index) => this.#complete(work, index)));
  }

  /** Samples one choice; in a stream, sends its parts. */
  async #complete(work: Work, index: number, stream?: EventStream): Promise<Completion> {
    const { request, prompt, maxTokens, head, client, signal } = work;
    const { chat } = this.#model;
    const { temperature, topP: top_p, topK: top_k, minP: min_p, stop, seed, tools, callsOne } = request;
    stream?.send(firstChunk(head, index, prompt, request));
    let calls = 0;
    const completion = await this.queue.run({ client, signal, tokens: prompt.length + maxTokens }, async (signal) => {
      const done = await chat.complete(prompt, {
        temperature,
        top_p,
        top_k,
        min_p,
        stop,
        signal,
        max_new_tokens: maxTokens,
        key: ["chat", seed ?? head.id, index],
        calls: tools ? (callsOne ? "one" : "many") : "text",
        onPart:
          stream &&
          ((part) => {
            stream.send(partChunk(head, index, part, calls, request, chat));
            calls += part.calls.length;
          }),
      });
      if (done.finish_reason === "aborted") signal.throwIfAborted();
      return done;
    });
    this.#options.metrics.count("sqlenv_completions_total", { finish_reason: completion.finish_reason });
    stream?.send(lastChunk(head, index, completion));
    return completion;
  }

  #stream(work: Work): Response {
    const { client, request, head } = work;
    const gone = new AbortController();
    const stream = new EventStream({ client, held: this.#options.held, onCancel: () => gone.abort() });
    const signal = AbortSignal.any([work.signal, gone.signal]);
    const choices = Array.from({ length: request.n }, (_, i) => this.#complete({ ...work, signal }, i, stream));
    Promise.all(choices).then(
      (completions) => {
        if (request.includesUsage) stream.send(usageChunk(head, completions));
        stream.done();
      },
      (error: unknown) => {
        if (!signal.aborted) stream.send(this.#errorOf(error).body);
        gone.abort(); // stops the other choices
        stream.end();
      },
    );
    return new Response(stream.body, {
      headers: {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
      },
    });
  }

  #errorOf(error: unknown): LlmError {
    if (error instanceof LlmError) return error;
    if (error instanceof DOMException && error.name === "AbortError")
      return new LlmError(400, { message: "the client has closed the connection" });
    this.#options.log("error", "completion_failed", { message: messageOf(error) });
    return new LlmError(500, { message: "the model failed; the server's log says why" });
  }
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
