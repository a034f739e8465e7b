// --player and --model: players by name, and the options of those that are language models.
import { type Command, InvalidArgumentError, Option } from "commander";
import { nearest, UsageError } from "../../../errors.ts";
import type { EnvironmentRules } from "../../../gym/env/index.ts";
import {
  chatPlayer,
  checkRoom,
  modelPlayer,
  type Player,
  type PromptChoice,
  SCRIPTED_PLAYERS,
  type ScriptedName,
  type TextPolicyOptions,
} from "../../../gym/players/index.ts";
import { windowOf } from "../../../lm/model/parameters.ts";
import { readModelMetadata } from "../../../rl/run/model-metadata.node.ts";
import { countFromOne } from "../terminal/output.ts";
import { addAlias } from "./alias.ts";
import { MODEL_SOURCES } from "./common.ts";
import { addDeviceOptions, type DeviceFlags, deviceOptions } from "./device.ts";
import { addPromptOptions, type PromptFlags, promptChoice } from "./prompt.ts";
import { addRemoteOptions, type RemoteFlags, remoteOptions } from "./remote.ts";

export interface PlayerFlags extends DeviceFlags, PromptFlags, RemoteFlags {
  readonly baseUrl?: string;
  readonly model?: string;
  readonly apiKeyEnv: string;
  readonly temperature: number;
  readonly topP?: number;
  readonly maxNewTokens?: number;
  readonly maxContextTokens?: number;
  readonly timeout: number;
}

/** A player with the resources it holds. */
export type LoadedPlayer = Player & {
  close?: () => Promise<void>;
  /** The environment's rules it was trained with, if its folder records them. */
  readonly trainedRules?: EnvironmentRules;
  /** The device of a local model. */
  readonly device?: string;
};

/** The scripted players worth measuring; the others are for SFT demonstrations. */
const SCRIPTED = ["random", "looker", "keyword", "oracle", "teacher"] as const satisfies readonly ScriptedName[];

export const PLAYER_NAMES: readonly string[] = [...SCRIPTED, "chat", "model"];

/** Default number of concurrent episodes: those of a model are sampled in one batch. */
export const CONCURRENCY: Readonly<Record<string, number>> = { chat: 8, model: 32 };

/** The player of this name; throws UsageError that suggests the nearest one. */
export async function playerNamed(name: string, flags: PlayerFlags): Promise<LoadedPlayer> {
  if (name === "chat") return chat(flags);
  if (name === "model") return model(flags);
  const scripted = SCRIPTED.find((known) => known === name);
  if (scripted) return SCRIPTED_PLAYERS[scripted]();
  const guess = nearest(name, PLAYER_NAMES);
  throw new UsageError({
    what: "no such player",
    value: name,
    remedy: guess ? `did you mean ${guess}?` : `use ${PLAYER_NAMES.join(", ")}`,
  });
}

/** Default context length, the turn included, unless the model's window is shorter. */
const CONTEXT_TOKENS = 2048;
/** Default context length with examples: three of them take over a thousand tokens. */
const CONTEXT_WITH_EXAMPLES = 4096;
/** Default number of new tokens per turn: for a local model, and for a model at an endpoint, which may think first. */
const TURN_TOKENS = { model: 256, chat: 1024 };

/** New tokens per turn: the flag's, or the player's default. */
export function turnTokens(name: string, { maxNewTokens }: Pick<PlayerFlags, "maxNewTokens">): number {
  return maxNewTokens ?? (name === "model" ? TURN_TOKENS.model : TURN_TOKENS.chat);
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

/** How a model plays: as its folder or its training says, where flags do not say otherwise. */
export interface ModelUse {
  readonly prompt: PromptChoice;
  /** @default what most models need */
  readonly lengths?: TurnLengths;
  /** Which tokens are sampled. @default all */
  readonly sampling?: Pick<TextPolicyOptions, "top_k" | "top_p" | "min_p">;
}

type TurnLengths = Required<Pick<TextPolicyOptions, "max_context_tokens" | "max_new_tokens">> &
  Pick<TextPolicyOptions, "max_completion_length">;

/** A model in memory, from which players are made. */
export interface PlayingModel {
  /** A player that samples at this temperature; 0 is greedy. */
  readonly at: (temperature: number) => Player;
  readonly device: string;
  close(): Promise<void>;
}

/** A model that runs in this process, or on the server that --engine names. */
async function model(flags: PlayerFlags): Promise<LoadedPlayer> {
  const { model: name, temperature } = flags;
  if (!name) throw new UsageError({ what: "the model player needs --model", remedy: `give ${MODEL_SOURCES}` });
  const { resolveModel } = await import("../../../lm/model/formats/hub.node.ts");
  const use = readModelMetadata(await resolveModel(name));
  const { at, device, close } = await loadPlayingModel(name, use ?? { prompt: { prompt: "compact" } }, flags);
  return { ...at(temperature), ...(use && { trainedRules: use.rules }), device, close };
}

/** Loads a model. Throws before it is loaded if a flag does not fit, and closes the engine if its lengths do not. */
export async function loadPlayingModel(
  name: string,
  use: ModelUse,
  flags: Omit<PlayerFlags, "temperature">,
): Promise<PlayingModel> {
  const prompt = promptChoice(flags, use.prompt);
  // Imported here: the other players need no engine.
  const { connectRemoteModel, loadModelAndTokenizer } = await import("../../../lm/engine/index.node.ts");
  const { engine, tokenizer, turns, config } =
    flags.engine === undefined
      ? await loadModelAndTokenizer(name, { ...deviceOptions(flags), trains: false })
      : await connectRemoteModel(name, remoteOptions(flags, flags.engine));
  try {
    const { topP: top_p } = flags;
    const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
    const text = { turns, decode, prompt, ...(prompt.prompt !== "compact" && { texts: tokenizer.texts }) };
    const sampling = { ...use.sampling, ...(top_p !== undefined && { top_p }) };
    const lengths = lengthsOf(flags, prompt, windowOf(config), use.lengths);
    checkRoom(turns, prompt, lengths);
    const options = { engine, ...text, ...sampling, ...lengths, name };
    const at = (temperature: number) => modelPlayer({ ...options, temperature });
    return { at, device: engine.facts.device, close: () => engine.close() };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Lengths of the context and of a turn, within the model's window; those of its training if it has any. */
function lengthsOf(
  { maxContextTokens, maxNewTokens }: Pick<PlayerFlags, "maxContextTokens" | "maxNewTokens">,
  { shots, custom }: PromptChoice,
  window: number,
  trained: TurnLengths | undefined,
): TurnLengths {
  if (trained && maxContextTokens === undefined && maxNewTokens === undefined) return trained;
  const usual = (custom?.shots ?? shots) ? CONTEXT_WITH_EXAMPLES : CONTEXT_TOKENS;
  const max_context_tokens = contextWithin(window, maxContextTokens, trained?.max_context_tokens ?? usual);
  const own = trained?.max_new_tokens ?? TURN_TOKENS.model;
  const max_new_tokens = maxNewTokens ?? Math.max(1, Math.min(own, Math.floor(max_context_tokens / 4)));
  if (max_new_tokens > max_context_tokens / 2)
    throw new UsageError({
      what: "--max-new-tokens takes more than half of the context",
      value: `${max_new_tokens} of ${max_context_tokens} tokens`,
      remedy: "lower it, or raise --max-context-tokens",
    });
  return { max_context_tokens, max_new_tokens };
}

/**
 * The length of the context: the given one, which must fit the model's window, or the default, capped to the window.
 */
export function contextWithin(window: number, given: number | undefined, usual: number): number {
  if (given === undefined) return Math.min(usual, window);
  if (given <= window) return given;
  throw new UsageError({ what: `--max-context-tokens exceeds the model's window of ${window}`, value: given });
}

/** What a command says of options whose meaning or default is its own. */
export interface PlayerWords {
  readonly model?: string;
  readonly temperature?: { readonly description: string; readonly default?: number };
  /** The default prompt of models that were not trained here. */
  readonly prompt?: string;
}

const GREEDY = { description: "sampling temperature; 0 is greedy", default: 0 };

/** Adds the options of players that are language models, and the device options. */
export function addPlayerOptions(
  command: Command,
  { model = MODEL_SOURCES, temperature: own = GREEDY, prompt }: PlayerWords = {},
): Command {
  command
    .optionsGroup("Model options (players chat and model):")
    .option("--model <name>", `${model}; chat: the endpoint's name for it`)
    .option("--base-url <url>", "chat: the endpoint, such as http://localhost:8000/v1")
    .option("--api-key-env <variable>", "chat: environment variable with the key", "OPENAI_API_KEY")
    .option("--timeout <seconds>", "chat: seconds per request", countFromOne("--timeout"), 120);
  addPromptOptions(command, prompt)
    .addOption(new Option("--temperature <number>", own.description).default(own.default).argParser(temperature))
    .addOption(new Option("--top-p <number>", "nucleus sampling threshold").argParser(topP))
    .option(
      "--max-new-tokens <number>",
      `new tokens per turn (default: ${TURN_TOKENS.model}, chat ${TURN_TOKENS.chat})`,
      countFromOne("--max-new-tokens"),
    )
    .option(
      "--max-context-tokens <number>",
      `model: context length, the turn included (default: ${CONTEXT_TOKENS}, with examples ${CONTEXT_WITH_EXAMPLES})`,
      countFromOne("--max-context-tokens"),
    );
  addRemoteOptions(command);
  return addDeviceOptions(addAlias(command, "--max-tokens", "--max-new-tokens"));
}

function temperature(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number >= 0 && number <= 2)) throw new InvalidArgumentError("give a number from 0 to 2");
  return number;
}

function topP(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number > 0 && number <= 1))
    throw new InvalidArgumentError("give a number above 0, at most 1");
  return number;
}
