// The model of a training as a player of SQL episodes, for code that takes players, such as `evaluate` and the
// playground.
import { modelPlayer, type Player } from "../../gym/players/index.ts";
import type { GRPOConfig } from "../config.ts";
import { evaluationConfig, samplingOptions } from "../model-policy.ts";
import type { Decoding } from "../run/records.ts";
import type { SamplingModel } from "../trainable-model.ts";

/** A player that takes the likeliest tokens, or samples as in training. */
export function sqlPlayer(model: SamplingModel, decoding: Decoding, config: GRPOConfig, name = "model"): Player {
  const { engine, tokenizer, turns } = model;
  const { prompt, shots } = config;
  return modelPlayer({
    ...samplingOptions(evaluationConfig(config), tokenizer),
    texts: prompt === "compact" ? undefined : tokenizer.texts,
    temperature: decoding === "greedy" ? 0 : config.temperature,
    prompt: { prompt, shots },
    engine,
    turns,
    name,
    key: [config.seed, "evaluation", decoding],
  });
}
