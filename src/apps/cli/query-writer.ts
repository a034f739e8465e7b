// Query writers by the player's name: models that see the schema and write one query, and the gold query itself.
import { UsageError } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import { chatWriter, modelWriter, type Writer } from "../../gym/players/index.ts";
import type { LoadedModel } from "../../lm/engine/index.node.ts";
import { windowOf } from "../../lm/model/parameters.ts";
import { MODEL_SOURCES } from "./options/common.ts";
import { deviceOptions } from "./options/device.ts";
import { contextWithin, type PlayerFlags, turnTokens } from "./options/player.ts";

/** A writer with the resources it holds. */
export type LoadedWriter = Writer & { close?: () => Promise<void> };

/** Default limit of schema, question and query in tokens, because each takes memory in the KV cache. */
const MAX_CONTEXT = 8192;

/** The writer for a player's name; throws UsageError for players that only act. */
export async function writerNamed(name: string, flags: PlayerFlags, data: DataSet): Promise<LoadedWriter> {
  const { model, baseUrl, temperature, topP, apiKeyEnv, timeout } = flags;
  if (name === "oracle") return goldWriter(data);
  if (name !== "chat" && name !== "model")
    throw new UsageError({ what: "--schema given needs a model", value: name, remedy: "give --model" });
  if (model === undefined)
    throw new UsageError({ what: "--schema given needs --model", remedy: `give ${MODEL_SOURCES}` });
  const maxTokens = turnTokens(name, flags);
  if (name === "chat") {
    if (baseUrl === undefined)
      throw new UsageError({ what: "the chat player needs --base-url", remedy: "give a URL that ends in /v1" });
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

/** The context's length; closes the engine if it does not fit. */
async function contextOf({ engine, config }: LoadedModel, { maxContextTokens }: PlayerFlags): Promise<number> {
  try {
    return contextWithin(windowOf(config), maxContextTokens, MAX_CONTEXT);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Writes the gold queries, to check that they score as correct. */
function goldWriter({ questions }: DataSet): Writer {
  const golds = new Map(questions.map(({ question_id, gold_sql }) => [question_id, gold_sql]));
  return {
    name: "oracle",
    write: async ({ question_id }) => ({ text: golds.get(question_id)!, tokens: null, prompt_tokens: null }),
  };
}
