// An engine whose model can be saved and checkpointed: in a thread of this process, or on a server.
import type { Engine } from "./engine.ts";
import type { EngineFacts, EngineMemory } from "./thread/protocol.ts";

export interface ModelEngine extends Engine {
  readonly facts: EngineFacts;
  /** Whether the loss of data without `old_logp` uses the log-probs as sampled. @default false */
  readonly usesSampledLogprobs?: boolean;
  /** reference ← (1 − α) · reference + α · current. */
  mixReference?(alpha: number): Promise<void>;
  /** Saves a Hugging Face folder with merged adapters. */
  saveModel(dir: string, options?: { readonly dtype?: "F32" | "BF16"; readonly card?: string }): Promise<void>;
  /** Saves the adapters in PEFT's format; `base` names the model they adapt. */
  saveAdapter(dir: string, base: string, options?: { readonly card?: string }): Promise<void>;
  /** Saves a checkpoint: trained values and optimizer state. */
  saveState(dir: string): Promise<void>;
  loadState(dir: string, options?: { readonly optimizer?: boolean }): Promise<void>;
  /** Only of engines on this machine. */
  memory?(): Promise<EngineMemory>;
}
