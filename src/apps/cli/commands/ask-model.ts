// The players of `sqlenv ask`: one for the answer, which is greedy, and one for the samples. A trained model plays as it
// was trained.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { OOMError, UsageError } from "../../../errors.ts";
import { DEFAULT_RULES, DEFAULT_STEP_BUDGET, type EnvironmentRules, rulesOf } from "../../../gym/env/index.ts";
import type { Player } from "../../../gym/players/index.ts";
import { resolveModel } from "../../../lm/model/formats/hub.node.ts";
import { evaluationConfig } from "../../../rl/model-policy.ts";
import { CONFIG_FILE, resumedConfig } from "../../../rl/run/config-file.node.ts";
import { trainedModel } from "../../../rl/run/evaluate-run.node.ts";
import { readModelMetadata } from "../../../rl/run/model-metadata.node.ts";
import { PRETRAINED_METADATA } from "../../../rl/run/model-metadata.ts";
import { loadPlayingModel, type ModelUse, type PlayerFlags, playerNamed } from "../options/player.ts";
import { type RulesFlags, rulesNamed } from "../options/rules.ts";
import type { Choice } from "./ask-choice.ts";

/** Players that can answer a question without a gold query. */
export const ASK_PLAYERS = ["model", "chat", "keyword", "looker", "random"] as const;

/** Temperature of samples, unless a training says otherwise. */
const TEMPERATURE = 0.7;
/** Samples of a model, which agree or not; scripted players have nothing to sample. */
const SAMPLES = 5;

export interface AskModelFlags extends Omit<PlayerFlags, "temperature">, RulesFlags {
  readonly player?: string;
  readonly temperature?: number;
  readonly stepBudget?: number;
  readonly samples?: number;
}

export interface AskModel {
  readonly name: string;
  /** Plays the episode whose answer is given. */
  readonly player: Player;
  readonly sampler: Player;
  readonly samples: number;
  readonly rules: EnvironmentRules;
  readonly step_budget: number;
  close(): Promise<void>;
}

/** How a model plays, in SQL. */
interface SqlUse extends ModelUse {
  readonly rules: EnvironmentRules;
  readonly step_budget?: number | undefined;
  readonly temperature?: number;
}

/** Loads the players. `choose` finds models if none is named; the result has the one that was taken. */
export async function loadAskModel(
  flags: AskModelFlags,
  choose: () => readonly Choice[],
): Promise<AskModel & { readonly choice?: Choice }> {
  const name = flags.player ?? (flags.baseUrl === undefined ? "model" : "chat");
  if (name === "oracle" || name === "teacher")
    throw new UsageError({
      what: "this player knows the gold query, and your own question has none",
      value: name,
      remedy: `use ${ASK_PLAYERS.join(", ")}`,
    });
  checkSampling(flags);
  if (name !== "model") return otherPlayer(name, flags);
  if (flags.model !== undefined) return ownModel(flags.model, flags);
  if (flags.engine !== undefined)
    throw new UsageError({ what: "--engine needs --model", remedy: "name the model whose tokenizer the server uses" });
  const choices = choose();
  for (const [i, choice] of choices.entries()) {
    try {
      return { ...(await ownModel(choice.model, flags)), choice };
    } catch (error) {
      if (!(error instanceof OOMError) || i === choices.length - 1) throw error; // else a smaller one is tried
    }
  }
  throw new Error("no model to choose from");
}

function checkSampling({ temperature, samples = SAMPLES }: AskModelFlags): void {
  if (temperature === 0 && samples > 0)
    throw new UsageError({
      what: "samples at --temperature 0 are all equal, so their agreement says nothing about the answer",
      remedy: "raise it, or leave them out with --samples 0",
    });
}

/** A chat endpoint or a scripted player. */
async function otherPlayer(name: string, flags: AskModelFlags): Promise<AskModel> {
  const isChat = name === "chat";
  const { prompt, shots } = PRETRAINED_METADATA.prompt;
  const own = {
    ...flags,
    prompt: flags.prompt ?? prompt,
    ...(flags.promptFile === undefined && { shots: flags.shots ?? shots }),
  };
  const player = await playerNamed(name, { ...(isChat ? own : flags), temperature: 0 });
  const { temperature = TEMPERATURE, stepBudget = DEFAULT_STEP_BUDGET, samples = isChat ? SAMPLES : 0 } = flags;
  return {
    name: player.name,
    player,
    sampler: isChat && samples > 0 ? await playerNamed(name, { ...own, temperature }) : player,
    samples,
    rules: rulesNamed(flags, isChat ? PRETRAINED_METADATA.rules : DEFAULT_RULES),
    step_budget: stepBudget,
    close: async () => {},
  };
}

/** A model that runs here, or on the server that --engine names. */
async function ownModel(name: string, flags: AskModelFlags): Promise<AskModel> {
  const { folder, use } = await useOf(name);
  const { at, close } = await loadPlayingModel(folder, use, flags);
  const { temperature = use.temperature ?? TEMPERATURE, samples = SAMPLES, stepBudget } = flags;
  return {
    name,
    player: at(0),
    sampler: at(temperature),
    samples,
    rules: rulesNamed(flags, use.rules),
    step_budget: stepBudget ?? use.step_budget ?? DEFAULT_STEP_BUDGET,
    close,
  };
}

/** A run's model plays as the run evaluated it, a saved one as its folder says, any other as pretrained models do. */
async function useOf(name: string): Promise<{ readonly folder: string; readonly use: SqlUse }> {
  if (existsSync(join(name, CONFIG_FILE))) return useOfRun(name);
  return { folder: name, use: readModelMetadata(await resolveModel(name)) ?? PRETRAINED_METADATA };
}

function useOfRun(run: string): { readonly folder: string; readonly use: SqlUse } {
  const config = evaluationConfig(resumedConfig(run));
  if (config.env !== null)
    throw new UsageError({ what: "the run was trained in another environment than SQL", value: run });
  const { prompt, shots, top_k, top_p, min_p, step_budget, temperature } = config;
  const { max_new_tokens, max_completion_length, max_context_tokens } = config;
  return {
    folder: trainedModel(run),
    use: {
      prompt: { prompt, shots },
      rules: rulesOf(config),
      sampling: { top_k, top_p, min_p: min_p ?? 0 },
      lengths: { max_new_tokens, max_completion_length, max_context_tokens },
      step_budget,
      temperature,
    },
  };
}
