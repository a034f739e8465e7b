// Generates one text for one request, without environment or turns.
import { type ChatOptions, type ChatUsage, chatClient } from "../chat.ts";
import type { ModelPlayerOptions } from "../model.ts";
import type { Turns } from "./conversation.ts";

export interface WriteRequest {
  readonly question_id: string;
  readonly system: string;
  readonly user: string;
  /** Seed of the sample's random numbers. */
  readonly key: string;
  readonly signal?: AbortSignal | undefined;
}

export interface Written {
  /** Null if the request does not fit the model's context. */
  readonly text: string | null;
  /** Null if not known. */
  readonly tokens: number | null;
  readonly prompt_tokens: number | null;
}

export interface Writer {
  readonly name: string;
  write(request: WriteRequest): Promise<Written>;
}

/** Writes with a local model; concurrent requests are sampled in one batch. */
export function modelWriter(
  options: Pick<ModelPlayerOptions, "engine" | "decode" | "name" | "temperature" | "top_p"> & {
    readonly turns: Pick<Turns, "start"> & { readonly stopIds: readonly number[] };
    readonly max_new_tokens: number;
    readonly max_context_tokens: number;
  },
): Writer {
  const { engine, turns, decode, name = "model", temperature = 0, top_p } = options;
  const { max_new_tokens, max_context_tokens } = options;
  return {
    name,
    async write({ system, user, key, signal }) {
      const prompt = turns.start(system, user);
      const prompt_tokens = prompt.length;
      if (prompt_tokens + max_new_tokens > max_context_tokens) return { text: null, tokens: 0, prompt_tokens };
      const { tokens } = await engine.sample({
        prompt,
        max_new_tokens,
        stop_ids: turns.stopIds,
        temperature,
        key: ["writer", key],
        ...(top_p === undefined ? {} : { top_p }),
        ...(signal ? { signal } : {}),
      });
      return { text: decode(tokens), tokens: tokens.length, prompt_tokens };
    },
  };
}

/** Writes with a model at an OpenAI-compatible endpoint. */
export function chatWriter(options: ChatOptions): Writer {
  const complete = chatClient(options);
  return {
    name: `chat:${options.model}`,
    async write({ system, user, key, signal }) {
      let usage: ChatUsage | undefined;
      const messages = [
        { role: "system", content: system },
        { role: "user", content: user },
      ] as const;
      const onUsage = (counted: ChatUsage) => {
        usage = counted;
      };
      const text = await complete(messages, { key, signal, onUsage });
      return { text, tokens: usage?.completion_tokens ?? null, prompt_tokens: usage?.prompt_tokens ?? null };
    },
  };
}
