// Players by the name a person types, and the options of those behind an endpoint.
import { type Command, InvalidArgumentError, Option } from "commander";
import { nearest, UsageError } from "../errors.ts";
import { chatPlayer, keywordPlayer, lookerPlayer, oraclePlayer, type Player, randomPlayer } from "../players/index.ts";
import { wholeNumber } from "./output.ts";

export interface PlayerFlags {
  readonly baseUrl?: string;
  readonly model?: string;
  readonly apiKeyEnv: string;
  readonly temperature: number;
  readonly maxTokens: number;
  readonly timeout: number;
}

const PLAYERS: Readonly<Record<string, (flags: PlayerFlags) => Player>> = {
  random: randomPlayer,
  looker: lookerPlayer,
  keyword: keywordPlayer,
  oracle: oraclePlayer,
  chat,
};

export const PLAYER_NAMES = Object.keys(PLAYERS);

/** The player of that name; throws UsageError with the nearest one. */
export function playerNamed(name: string, flags: PlayerFlags): Player {
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

/** Adds the options of the chat player. */
export function addPlayerOptions(command: Command): Command {
  return command
    .option("--base-url <url>", "chat: where /chat/completions lives, such as http://localhost:8000/v1")
    .option("--model <name>", "chat: the model's name there")
    .option("--api-key-env <variable>", "chat: environment variable that holds the key", "OPENAI_API_KEY")
    .addOption(new Option("--temperature <number>", "chat: 0 is greedy").default(0).argParser(temperature))
    .option("--max-tokens <number>", "chat: of one turn", wholeNumber("--max-tokens"), 1024)
    .option("--timeout <seconds>", "chat: of one request", wholeNumber("--timeout"), 120);
}

function temperature(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number >= 0 && number <= 2)) throw new InvalidArgumentError("give a number from 0 to 2");
  return number;
}
