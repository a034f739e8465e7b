// A model as RL sees it: an engine that samples (and trains) tokens, a tokenizer, and the encoding of chat turns.
import { UsageError } from "../errors.ts";
import type { TokenSampler } from "../gym/players/index.ts";
import type { Engine } from "../lm/engine/index.ts";
import type { Tokenizer, TurnEncoder } from "../lm/model/index.ts";
import type { GRPOConfig } from "./config.ts";

/** A model that can be sampled from. */
export interface SamplingModel {
  readonly engine: TokenSampler;
  readonly tokenizer: Tokenizer;
  readonly turns: TurnEncoder;
}

/** An engine whose weights and optimizer state can be checkpointed and restored, and whose reference can be moved. */
export interface TrainableEngine extends Engine {
  /** reference ← (1 − α) · reference + α · current; needed by sync_ref_model only. */
  mixReference?(alpha: number): Promise<void>;
  saveState?(dir: string): Promise<void>;
  loadState?(dir: string): Promise<void>;
  /** Whether the loss of data without `old_logp` uses the log-probs as sampled. @default false */
  readonly usesSampledLogprobs?: boolean;
}

export interface TrainableModel extends SamplingModel {
  readonly engine: TrainableEngine;
}

/** Throws UsageError if the config needs something that this model's engine lacks. */
export function checkTrainable({ engine }: TrainableModel, { sync_ref_model }: GRPOConfig): void {
  if (sync_ref_model && !engine.mixReference)
    throw new UsageError({ what: "sync_ref_model needs an engine with mixReference; this one has none" });
}
