// The policy of an episode: a model, sampled as the config says.
import { TextPolicy, type TextPolicyOptions } from "../gym/players/index.ts";
import type { Tokenizer } from "../lm/model/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { EnvironmentPrompt, EpisodePolicy, EpisodePolicyOptions, TextEnvironment } from "./environment.ts";
import type { SamplingModel } from "./trainable-model.ts";

export interface ModelPolicyOptions extends Omit<EpisodePolicyOptions, "turns"> {
  readonly model: SamplingModel;
  readonly prompt: EnvironmentPrompt;
}

/** The policy of the environment's next episode: its own, or the model's. */
export function policyFor(env: TextEnvironment, options: ModelPolicyOptions & EpisodePolicyOptions): EpisodePolicy {
  return env.policy?.(options) ?? modelPolicy(options);
}

/** The policy of one episode. */
export function modelPolicy(options: ModelPolicyOptions): TextPolicy {
  const { model, prompt, config, key, seed, greedy = false, signal } = options;
  const { engine, tokenizer, turns } = model;
  return new TextPolicy(
    {
      ...samplingOptions(config, tokenizer),
      engine,
      turns,
      prompt,
      texts: prompt.stop ? tokenizer.texts : undefined,
      temperature: greedy ? 0 : config.temperature,
      key,
    },
    { seed, signal },
  );
}

/** The config of evaluation episodes: with their step budget, and enough tokens for all its turns. */
export function evaluationConfig(config: GRPOConfig): GRPOConfig {
  const { eval_step_budget: step_budget, max_new_tokens, max_completion_length } = config;
  if (step_budget === null) return config;
  const all = step_budget * max_new_tokens;
  return { ...config, step_budget, max_completion_length: Math.max(max_completion_length, all) };
}

/** How the model is sampled in training and in sampled evaluations. */
export function samplingOptions(
  config: GRPOConfig,
  tokenizer: Tokenizer,
): Omit<TextPolicyOptions, "engine" | "turns" | "prompt" | "key" | "texts" | "temperature"> {
  const { top_k, top_p, min_p, max_new_tokens, max_completion_length, max_context_tokens } = config;
  return {
    decode: (ids) => tokenizer.decode(ids, { skipSpecial: true }),
    top_k,
    top_p,
    min_p: min_p ?? 0,
    max_new_tokens,
    max_completion_length,
    max_context_tokens,
  };
}
