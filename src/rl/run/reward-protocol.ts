// Messages between the training's thread and the reward functions' thread.
import type { Message } from "../../gym/players/index.ts";
import type { Episode } from "./records.ts";

/** Episodes to be scored; kept until the next come. */
export interface RewardBatch {
  readonly completions: readonly (readonly Message[])[];
  readonly episodes: readonly Episode[];
  readonly prompts: readonly string[];
}

export type ToRewards =
  | { readonly batch: RewardBatch }
  | { readonly id: number; readonly exported: string; readonly step: number };

export type FromRewards =
  /** Exports that are functions, with the names they have. */
  | { readonly loaded: readonly { readonly exported: string; readonly name: string }[] }
  | { readonly failed: string }
  | { readonly id: number; readonly scores: unknown; readonly logged: readonly (readonly [string, number])[] }
  | { readonly id: number; readonly error: string }
  /** An error nobody waited for. */
  | { readonly stray: string };
