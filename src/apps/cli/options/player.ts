// Players by the name a person types, and the options of those behind an endpoint.
import { type Command, InvalidArgumentError, Option } from "commander";
import { nearest, UsageError } from "../../../errors.ts";
import type { EnvironmentRules } from "../../../gym/env/index.ts";
import {
  chatPlayer,
  checkRoom,
  keywordPlayer,
  lookerPlayer,
  modelPlayer,
  oraclePlayer,
  type Player,
  type PromptChoice,
  randomPlayer,
  teacherPlayer,
} from "../../../gym/players/index.ts";
import { windowOf } from "../../../lm/model/parameters.ts";
import { readModelMetadata } from "../../../rl/run/model-metadata.node.ts";
import { wholeNumber } from "../terminal/output.ts";
import { addDeviceOptions, type DeviceFlags, deviceOptions } from "./device.ts";
import { addPromptOptions, type PromptFlags, promptChoice } from "./prompt.ts";

export interface PlayerFlags extends DeviceFlags, PromptFlags {
  readonly baseUrl?: string;
  readonly model?: string;
  readonly apiKeyEnv: string;
  readonly temperature: number;
  readonly topP?: number;
  readonly maxTokens?: number;
  readonly maxContextTokens?: number;
  readonly timeout: number;
}

/** A player, with what must be given back when it has played. */
export type LoadedPlayer = Player & {
  close?: () => Promise<void>;
  /** The environment's rules that it was trained by, where it says so. */
  readonly trainedRules?: EnvironmentRules;
  /** Where a model of ours runs. */
  readonly device?: string;
};

const PLAYERS: Readonly<Record<string, (flags: PlayerFlags) => LoadedPlayer | Promise<LoadedPlayer>>> = {
  random: randomPlayer,
  looker: lookerPlayer,
  keyword: keywordPlayer,
  oracle: oraclePlayer,
  teacher: () => teacherPlayer(),
  chat,
  model,
};

export const PLAYER_NAMES = Object.keys(PLAYERS);

/** Episodes played at once unless told otherwise: those of a model are sampled together. */
export const CONCURRENCY: Readonly<Record<string, number>> = { chat: 8, model: 32 };

/** The player of that name; throws UsageError with the nearest one. */
export async function playerNamed(name: string, flags: PlayerFlags): Promise<LoadedPlayer> {
  const make = Object.hasOwn(PLAYERS, name) ? PLAYERS[name] : undefined;
  if (make) return make(flags);
  const guess = nearest(name, PLAYER_NAMES);
  throw new UsageError({
    what: "no such player",
    value: name,
    remedy: guess ? `did you mean ${guess}?` : `there are ${PLAYER_NAMES.join(", ")}`,
  });
}

/** Tokens of context and reply unless told otherwise, where the model's window has as many. */
const CONTEXT_TOKENS = 2048;
/** Three examples take over a thousand tokens. */
const CONTEXT_WITH_EXAMPLES = 4096;
/** Tokens of one turn, likewise: of a model here, and of one behind an endpoint, which may think first. */
const TURN_TOKENS = { model: 256, chat: 1024 };

/** Tokens of one turn: as the flags say, or what the player has without them. */
export function turnTokens(name: string, { maxTokens }: Pick<PlayerFlags, "maxTokens">): number {
  return maxTokens ?? (name === "model" ? TURN_TOKENS.model : TURN_TOKENS.chat);
}

function chat(flags: PlayerFlags): Player {
  const { baseUrl, model, apiKeyEnv, temperature, topP, timeout } = flags;
  const maxTokens = turnTokens("chat", flags);
  if (!baseUrl || !model) {
    throw new UsageError({
      what: "the chat player needs --base-url and --model",
      remedy: "for example --base-url http://localhost:11434/v1 --model qwen3:0.6b",
    });
  }
  const apiKey = process.env[apiKeyEnv] || undefined;
  const prompt = promptChoice(flags, { prompt: "instruct" });
  const sampling = { temperature, maxTokens, ...(topP !== undefined && { topP }) };
  return chatPlayer({ baseUrl, model, apiKey, ...sampling, prompt, timeoutMs: timeout * 1000 });
}

/** A model in this process, from a folder or the Hub. */
async function model(flags: PlayerFlags): Promise<LoadedPlayer> {
  if (!flags.model) {
    throw new UsageError({
      what: "the model player needs --model",
      remedy: "give a model folder, or a name on the Hub",
    });
  }
  // The other players do without.
  const { loadModelAndTokenizer } = await import("../../../lm/engine/index.node.ts");
  const { resolveModel } = await import("../../../lm/model/formats/hub.node.ts");
  const folder = await resolveModel(flags.model);
  const use = readModelMetadata(folder);
  const prompt = promptChoice(flags, use?.prompt ?? { prompt: "compact" });
  const { engine, tokenizer, turns, config } = await loadModelAndTokenizer(flags.model, {
    ...deviceOptions(flags),
    trains: false,
  });
  try {
    const { temperature, topP: top_p } = flags;
    const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
    const words = { turns, decode, prompt, ...(prompt.prompt !== "compact" && { texts: tokenizer.texts }) };
    const sampling = { temperature, ...(top_p !== undefined && { top_p }) };
    const lengths = lengthsOf(flags, prompt, windowOf(config));
    checkRoom(turns, prompt, lengths);
    const options = { engine, ...words, ...sampling, ...lengths };
    const player = modelPlayer({ ...options, name: flags.model });
    const { device } = engine.facts;
    return { ...player, ...(use && { trainedRules: use.rules }), device, close: () => engine.close() };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Tokens of a context and of a turn, within the model's window. */
function lengthsOf({ maxContextTokens, maxTokens }: PlayerFlags, { shots, custom }: PromptChoice, window: number) {
  const usual = (custom?.shots ?? shots) ? CONTEXT_WITH_EXAMPLES : CONTEXT_TOKENS;
  const max_context_tokens = contextWithin(window, maxContextTokens, usual);
  const max_new_tokens = maxTokens ?? Math.max(1, Math.min(TURN_TOKENS.model, Math.floor(max_context_tokens / 4)));
  if (max_new_tokens > max_context_tokens / 2)
    throw new UsageError({
      what: "--max-tokens leaves less than half of the context to what the model is shown",
      value: `${max_new_tokens} of ${max_context_tokens}`,
      remedy: "lower it, or raise --max-context-tokens",
    });
  return { max_context_tokens, max_new_tokens };
}

/** Tokens of a context: as given, or as usual where the window has as many. */
export function contextWithin(window: number, given: number | undefined, usual: number): number {
  if (given === undefined) return Math.min(usual, window);
  if (given <= window) return given;
  throw new UsageError({ what: `--max-context-tokens is above the model's window of ${window}`, value: given });
}

/** Adds the options of the players that speak. */
export function addPlayerOptions(command: Command): Command {
  return addPromptOptions(addDeviceOptions(command))
    .option("--base-url <url>", "chat: where /chat/completions lives, such as http://localhost:8000/v1")
    .option(
      "--model <name>",
      "chat: the model's name there; model: a folder, a GGUF file, ollama:NAME, or a name on the Hub",
    )
    .option("--api-key-env <variable>", "chat: environment variable that holds the key", "OPENAI_API_KEY")
    .addOption(new Option("--temperature <number>", "chat, model: 0 is greedy").default(0).argParser(temperature))
    .addOption(
      new Option("--top-p <number>", "chat, model: sample from the likeliest tokens with this share").argParser(topP),
    )
    .option(
      "--max-tokens <number>",
      `chat, model: of one turn (default: chat ${TURN_TOKENS.chat}, model ${TURN_TOKENS.model})`,
      wholeNumber("--max-tokens"),
    )
    .option(
      "--max-context-tokens <number>",
      `model: of everything it is shown and a turn (default: ${CONTEXT_TOKENS}, with examples ${CONTEXT_WITH_EXAMPLES}, or the model's window)`,
      wholeNumber("--max-context-tokens"),
    )
    .option("--timeout <seconds>", "chat: of one request", wholeNumber("--timeout"), 120);
}

function temperature(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number >= 0 && number <= 2)) throw new InvalidArgumentError("give a number from 0 to 2");
  return number;
}

function topP(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number > 0 && number <= 1))
    throw new InvalidArgumentError("give a number above 0, to 1");
  return number;
}
