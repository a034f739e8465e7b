// What the page and its worker say to each other. The page draws; everything else happens in the worker.

import type { Difficulty, Split } from "../../../gym/data/index.ts";
import type { Outcome, SQLAction, SQLObservation } from "../../../gym/env/index.ts";
import type { EpisodeRecord, StepRecord } from "../../../gym/evaluation/index.ts";
import type { EpisodeLine, MetricLine, TimingLine, Warning } from "../../../rl/run/records.ts";

export const DATA_KINDS = ["bundled", "starter", "practice"] as const;

/** Which questions: made by code from a seed. */
export interface DataChoice {
  readonly kind: (typeof DATA_KINDS)[number];
  readonly seed: number;
}

export const PLAYERS = ["random", "looker", "keyword", "oracle", "model"] as const;

/** Who plays, and by which random numbers. */
export interface PlayerChoice {
  readonly name: (typeof PLAYERS)[number];
  readonly seed: number;
  /** Of the model; 0 takes the likeliest words. */
  readonly temperature: number;
}

/** A question without its gold. */
export interface OpenQuestion {
  readonly question_id: string;
  readonly question_text: string;
  readonly database_name: string;
  readonly difficulty: Difficulty;
  readonly split: Split;
  /** Whether training has questions on its database. */
  readonly seen: boolean;
}

export interface Gold {
  readonly sql: string;
  readonly answer: string;
}

export interface SchemaTable {
  readonly name: string;
  readonly kind: string;
  readonly rows: number | null;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly note: string }[];
}

/** An episode that has begun. */
export interface Started {
  readonly question: OpenQuestion;
  readonly observation: SQLObservation;
  readonly schema: readonly SchemaTable[];
  readonly budget: number;
}

/** A step that was taken; the gold comes with the last. */
export interface Stepped {
  readonly step: StepRecord;
  readonly outcome: Outcome;
  readonly gold: Gold | null;
}

export interface ModelFacts {
  readonly name: string;
  readonly parameters: number;
  readonly threads: number;
  readonly variant: string;
}

export interface TrainingChoice {
  readonly steps: number;
  readonly questions: number;
  readonly episodes: number;
  readonly learning_rate: number;
  readonly step_budget: number;
  readonly seed: number;
  /** The question played before and after. */
  readonly watched: string;
}

/** How the model does: the watched question, and how many of some others it gets right. */
export interface Standing {
  readonly episode: EpisodeRecord;
  readonly right: number;
  readonly of: number;
}

/** An episode that was played elsewhere or before. */
export interface Replay {
  /** One line for a list. */
  readonly title: string;
  readonly record: EpisodeRecord;
}

/** Calls, with what they take and give. */
export interface Calls {
  open: { take: DataChoice; give: { readonly questions: readonly OpenQuestion[] } };
  reset: {
    take: { readonly question_id?: string; readonly split?: Split; readonly seed?: number; readonly budget: number };
    give: Started;
  };
  act: { take: SQLAction; give: Stepped };
  /** One move of a player. It starts the episode over unless it made all moves so far; null when it has nothing to say. */
  move: { take: PlayerChoice; give: { readonly restarted: Started | null; readonly stepped: Stepped | null } };
  reveal: { take: null; give: Gold };
  /** From the address of a folder, or from files a person chose. */
  load: { take: string | readonly File[]; give: ModelFacts };
  train: {
    take: TrainingChoice;
    give: { readonly before: Standing; readonly after: Standing; readonly steps: number };
  };
  stop: { take: null; give: null };
  /** The trained model's weights as a safetensors file. */
  weights: { take: null; give: Blob };
  /** Episodes in the text of a file. */
  read: { take: { readonly name: string; readonly text: string }; give: readonly Replay[] };
}

export type Call = keyof Calls;

/** What the worker tells on its own. */
export type News =
  | { readonly news: "loading"; readonly received: number; readonly total: number }
  | { readonly news: "said"; readonly text: string }
  | { readonly news: "phase"; readonly phase: "before" | "training" | "after"; readonly standing: Standing | null }
  | {
      readonly news: "step";
      readonly metrics: MetricLine;
      readonly timing: TimingLine;
      readonly episodes: readonly EpisodeLine[];
    }
  | { readonly news: "warning"; readonly warning: Warning };

export interface ToWorker {
  readonly id: number;
  readonly call: Call;
  readonly take: unknown;
}

export type FromWorker =
  | { readonly id: number; readonly give: unknown }
  | { readonly id: number; readonly error: string }
  | News;
