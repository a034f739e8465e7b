// Messages between the training's thread and the reward functions' thread.
import type { Message } from "../../gym/players/index.ts";
import type { Episode } from "./records.ts";

/** Episodes to score; kept until the next batch arrives. */
export interface RewardBatch {
  readonly completions: readonly (readonly Message[])[];
  readonly episodes: readonly Episode[];
  readonly prompts: readonly string[];
}

export type ToRewards =
  | { readonly batch: RewardBatch }
  | { readonly id: number; readonly exported: string; readonly step: number };

export type FromRewards =
  /** Exports that are functions, with the functions' own names. */
  | { readonly loaded: readonly { readonly exported: string; readonly name: string }[] }
  | { readonly failed: string }
  | { readonly id: number; readonly scores: unknown; readonly logged: readonly (readonly [string, number])[] }
  | { readonly id: number; readonly error: string }
  /** An error outside of any call. */
  | { readonly stray: string };
