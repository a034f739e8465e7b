// Players by the name a person types, and the options of those behind an endpoint.
import { type Command, InvalidArgumentError, Option } from "commander";
import { nearest, UsageError } from "../errors.ts";
import {
  chatPlayer,
  keywordPlayer,
  lookerPlayer,
  modelPlayer,
  oraclePlayer,
  type Player,
  randomPlayer,
  teacherPlayer,
} from "../players/index.ts";
import { addDeviceOptions, type DeviceFlags, deviceOptions } from "./device.ts";
import { wholeNumber } from "./output.ts";

export interface PlayerFlags extends DeviceFlags {
  readonly baseUrl?: string;
  readonly model?: string;
  readonly apiKeyEnv: string;
  readonly temperature: number;
  readonly maxTokens: number;
  readonly timeout: number;
}

/** A player, with what must be given back when it has played. */
export type SeatedPlayer = Player & { close?: () => Promise<void> };

const PLAYERS: Readonly<Record<string, (flags: PlayerFlags) => SeatedPlayer | Promise<SeatedPlayer>>> = {
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
export async function playerNamed(name: string, flags: PlayerFlags): Promise<SeatedPlayer> {
  const make = Object.hasOwn(PLAYERS, name) ? PLAYERS[name] : undefined;
  if (make) return make(flags);
  const guess = nearest(name, PLAYER_NAMES);
  throw new UsageError({
    what: "no such player",
    value: name,
    remedy: guess ? `did you mean ${guess}?` : `there are ${PLAYER_NAMES.join(", ")}`,
  });
}

function chat({ baseUrl, model, apiKeyEnv, temperature, maxTokens, timeout }: PlayerFlags): Player {
  if (!baseUrl || !model) {
    throw new UsageError({
      what: "the chat player needs --base-url and --model",
      remedy: "for example --base-url http://localhost:11434/v1 --model qwen3:0.6b",
    });
  }
  const apiKey = process.env[apiKeyEnv] || undefined;
  return chatPlayer({ baseUrl, model, apiKey, temperature, maxTokens, timeoutMs: timeout * 1000 });
}

/** A model in this process, from a folder or the Hub. */
async function model(flags: PlayerFlags): Promise<SeatedPlayer> {
  if (!flags.model) {
    throw new UsageError({
      what: "the model player needs --model",
      remedy: "give a model folder, or a name on the Hub",
    });
  }
  const { loadModelAndTokenizer } = await import("../engine/index.node.ts"); // the other players do without
  const { engine, tokenizer, turns, config } = await loadModelAndTokenizer(flags.model, {
    ...deviceOptions(flags),
    trains: false,
  });
  const { temperature } = flags;
  const max_context_tokens = Math.min(2048, config.max_position_embeddings);
  const max_new_tokens = Math.min(flags.maxTokens, 256, Math.floor(max_context_tokens / 4));
  const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
  const options = { engine, turns, decode, temperature, max_new_tokens, max_context_tokens };
  return { ...modelPlayer({ ...options, name: flags.model }), close: () => engine.close() };
}

/** Adds the options of the players that speak. */
export function addPlayerOptions(command: Command): Command {
  return addDeviceOptions(command)
    .option("--base-url <url>", "chat: where /chat/completions lives, such as http://localhost:8000/v1")
    .option(
      "--model <name>",
      "chat: the model's name there; model: a folder, a GGUF file, ollama:NAME, or a name on the Hub",
    )
    .option("--api-key-env <variable>", "chat: environment variable that holds the key", "OPENAI_API_KEY")
    .addOption(new Option("--temperature <number>", "chat, model: 0 is greedy").default(0).argParser(temperature))
    .option("--max-tokens <number>", "chat, model (at most 256): of one turn", wholeNumber("--max-tokens"), 1024)
    .option("--timeout <seconds>", "chat: of one request", wholeNumber("--timeout"), 120);
}

function temperature(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number >= 0 && number <= 2)) throw new InvalidArgumentError("give a number from 0 to 2");
  return number;
}
