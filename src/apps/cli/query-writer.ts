// Writers by the name of the player: models that are asked once, and the gold itself.

import { UsageError } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import { chatWriter, modelWriter, type Writer } from "../../gym/players/index.ts";
import type { LoadedModel } from "../../lm/engine/index.node.ts";
import { windowOf } from "../../lm/model/parameters.ts";
import { deviceOptions } from "./options/device.ts";
import { contextWithin, type PlayerFlags, turnTokens } from "./options/player.ts";

/** A writer, with what must be given back at the end. */
export type LoadedWriter = Writer & { close?: () => Promise<void> };

/** Tokens of schema, question and query together, where the model has room for more: the key-value cache is paid for each of them. */
const MAX_CONTEXT = 8192;

/** The writer behind a player's name; throws UsageError for players that do not write. */
export async function writerNamed(name: string, flags: PlayerFlags, data: DataSet): Promise<LoadedWriter> {
  const { model, baseUrl, temperature, topP, apiKeyEnv, timeout } = flags;
  if (name === "oracle") return goldWriter(data);
  if (name !== "chat" && name !== "model")
    throw new UsageError({ what: "--schema given needs a model", value: name, remedy: "give --model" });
  if (model === undefined)
    throw new UsageError({ what: "--schema given needs --model", remedy: "give a model folder, or a name on the Hub" });
  const maxTokens = turnTokens(name, flags);
  if (name === "chat") {
    if (baseUrl === undefined)
      throw new UsageError({ what: "the chat player needs --base-url", remedy: "give one ending in /v1" });
    const apiKey = process.env[apiKeyEnv] || undefined;
    const sampling = { temperature, maxTokens, ...(topP !== undefined && { topP }) };
    return chatWriter({ baseUrl, model, apiKey, ...sampling, timeoutMs: timeout * 1000 });
  }
  const { loadModelAndTokenizer } = await import("../../lm/engine/index.node.ts");
  const loaded = await loadModelAndTokenizer(model, { ...deviceOptions(flags), trains: false });
  const { engine, tokenizer, turns } = loaded;
  const max_context_tokens = await contextOf(loaded, flags);
  const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
  const sampling = { temperature, ...(topP !== undefined && { top_p: topP }) };
  const options = { engine, turns, decode, ...sampling, max_new_tokens: maxTokens, max_context_tokens };
  return { ...modelWriter({ ...options, name: model }), close: () => engine.close() };
}

/** The context's length; the engine is closed where it cannot be. */
async function contextOf({ engine, config }: LoadedModel, { maxContextTokens }: PlayerFlags): Promise<number> {
  try {
    return contextWithin(windowOf(config), maxContextTokens, MAX_CONTEXT);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Writes the gold queries: the check that they pass. */
function goldWriter({ questions }: DataSet): Writer {
  const golds = new Map(questions.map(({ question_id, gold_sql }) => [question_id, gold_sql]));
  return {
    name: "oracle",
    write: async ({ question_id }) => ({ text: golds.get(question_id)!, tokens: null, prompt_tokens: null }),
  };
}
