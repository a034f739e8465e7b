// Messages between the page and its worker. The page draws; everything else runs in the worker.

import type { UnsureReason } from "../../../gym/ask/index.ts";
import type { Difficulty, Split } from "../../../gym/data/index.ts";
import type { Outcome, SQLAction, SQLObservation } from "../../../gym/env/index.ts";
import type { EpisodeRecord, StepRecord } from "../../../gym/evaluation/index.ts";
import type { EpisodeLine, MetricLine, TimingLine, Warning } from "../../../rl/run/records.ts";

export const DATA_KINDS = ["bundled", "starter", "practice"] as const;

/** A data set, generated from a seed. */
export interface DataChoice {
  readonly kind: (typeof DATA_KINDS)[number];
  readonly seed: number;
}

export const PLAYERS = ["random", "looker", "keyword", "oracle", "model"] as const;

/** A player and its random seed. */
export interface PlayerChoice {
  readonly name: (typeof PLAYERS)[number];
  readonly seed: number;
  /** The model's sampling temperature; 0 is greedy. */
  readonly temperature: number;
}

/** A question without its gold. */
export interface OpenQuestion {
  readonly question_id: string;
  readonly question_text: string;
  readonly database_name: string;
  readonly difficulty: Difficulty;
  readonly split: Split;
  /** Whether the database has training questions. */
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
  readonly columns: readonly SchemaColumn[];
}

export interface SchemaColumn {
  readonly name: string;
  readonly type: string;
  readonly primary_key: boolean;
  /** The column it refers to. */
  readonly target: { readonly table: string; readonly column: string } | null;
}

/** Rows per page of the database view. */
export const BROWSED_ROWS = 20;

/** Some rows of a table, as text. */
export interface TableRows {
  readonly rows: readonly (readonly string[])[];
  /** Why there are no rows. */
  readonly error: string | null;
}

/** A visitor's own database. */
export interface OwnDatabase {
  readonly name: string;
  readonly schema: readonly SchemaTable[];
  /** What reading the files changed or left out. */
  readonly notes: readonly string[];
}

export interface AskChoice {
  readonly question: string;
  /** Number of samples that must agree with the answer. */
  readonly samples: number;
}

/** A result as text. */
export interface ShownResult {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Number of rows that are not shown; null if there may be any number. */
  readonly more: number | null;
}

/** The answer to a question that has no gold. */
export interface OwnAnswer {
  /** Null if the episode ended without one. */
  readonly answer: string | null;
  /** The query that gave it; null if no single query did. */
  readonly sql: string | null;
  /** The query's result, if it is the answer. */
  readonly result: ShownResult | null;
  /** Such as "4 of 5 samples agree"; null without samples. */
  readonly agreement: string | null;
  /** Why the answer should not be trusted; null if nothing speaks against it. */
  readonly unsure: { readonly reason: UnsureReason; readonly text: string } | null;
  /** What samples answered instead, the most frequent first. */
  readonly others: readonly { readonly answer: string | null; readonly samples: number }[];
}

/** Questions written about the visitor's database. */
export interface OwnQuestions {
  readonly train: number;
  readonly eval: number;
  /** Some of them. */
  readonly examples: readonly string[];
  /** The question shown before and after training. */
  readonly watched: string;
  /** Tables and columns that no question uses, and why. */
  readonly left_out: readonly string[];
}

/** A started episode. */
export interface Started {
  readonly question: OpenQuestion;
  readonly observation: SQLObservation;
  readonly schema: readonly SchemaTable[];
  readonly budget: number;
}

/** A completed step; the last one includes the gold. */
export interface Stepped {
  readonly step: StepRecord;
  readonly outcome: Outcome;
  readonly gold: Gold | null;
}

export const DEVICE_WISHES = ["auto", "webgpu", "cpu"] as const;

/** Where the model should run: "auto" is a GPU if there is a real one, "webgpu" also one that is only emulated. */
export type DeviceWish = (typeof DEVICE_WISHES)[number];

/** What to load: the URL of a folder, or the files in one. */
export interface ModelChoice {
  readonly from: string | readonly File[];
  readonly device: DeviceWish;
}

export interface ModelFacts {
  readonly name: string;
  readonly parameters: number;
  /** Such as "the GPU (apple metal-3)" or "4 threads". */
  readonly device: string;
  readonly variant: string;
  /** Why it is not on a GPU; undefined if it is, or if the CPU was asked for. */
  readonly noGpu: string | undefined;
}

export interface TrainingChoice {
  readonly steps: number;
  readonly questions: number;
  readonly episodes: number;
  readonly learning_rate: number;
  readonly step_budget: number;
  readonly seed: number;
  /** The question shown before and after training. */
  readonly watched: string;
}

/** SFT on demonstrations. */
export interface TeachingChoice {
  readonly steps: number;
  readonly learning_rate: number;
  /** The question shown before and after. */
  readonly watched: string;
}

/** A greedy test: the model's episode on the watched question, and its right answers on the test questions. */
export interface Evaluation {
  readonly episode: EpisodeRecord;
  readonly right: number;
  readonly of: number;
}

/** A recorded episode. */
export interface Replay {
  /** One line for the list of replays. */
  readonly title: string;
  readonly record: EpisodeRecord;
}

/** The worker's calls: parameters and results. */
export interface Calls {
  open: { params: DataChoice; result: { readonly questions: readonly OpenQuestion[] } };
  reset: {
    params: { readonly question_id?: string; readonly split?: Split; readonly seed?: number; readonly budget: number };
    result: Started;
  };
  act: { params: SQLAction; result: Stepped };
  /**
   * One step of a player. Restarts the episode unless this player took all steps so far; `stepped` is null if the
   * player takes none.
   */
  playStep: { params: PlayerChoice; result: { readonly restarted: Started | null; readonly stepped: Stepped | null } };
  reveal: { params: null; result: Gold };
  /** Rows of a table, once the episode is over or its gold is revealed. */
  browse: { params: { readonly table: string; readonly offset: number }; result: TableRows };
  load: { params: ModelChoice; result: ModelFacts };
  train: {
    params: TrainingChoice;
    result: { readonly before: Evaluation; readonly after: Evaluation; readonly steps: number };
  };
  /** Reads a visitor's SQLite file or CSV files. */
  openOwn: { params: readonly File[]; result: OwnDatabase };
  /** Rows of one of its tables. */
  browseOwn: { params: { readonly table: string; readonly offset: number }; result: TableRows };
  /** Asks the model a question about it. */
  ask: { params: AskChoice; result: OwnAnswer };
  /** Writes questions about it. */
  writeQuestions: { params: null; result: OwnQuestions };
  /** Fine-tunes the model on demonstrations of these questions. */
  teach: { params: TeachingChoice; result: Calls["train"]["result"] };
  /** Stops the training and the question. */
  stop: { params: null; result: null };
  /** The trained model's weights as a safetensors file. */
  weights: { params: null; result: Blob };
  /** Episodes in a file's text. */
  read: { params: { readonly name: string; readonly text: string }; result: readonly Replay[] };
}

export type Call = keyof Calls;

/** What the worker reports without being called. */
export type WorkerEvent =
  | { readonly event: "loading"; readonly received: number; readonly total: number }
  | { readonly event: "sampled"; readonly text: string }
  /** A reply of the model is complete: its tokens, and the seconds from its prompt to its end. */
  | { readonly event: "replied"; readonly tokens: number; readonly seconds: number }
  | { readonly event: "asked" }
  | { readonly event: "askStep"; readonly step: StepRecord }
  | { readonly event: "askSample"; readonly done: number; readonly total: number }
  /** The GPU failed, and the model was loaded again, untrained, on the CPU. `repeats`: what it was doing starts over. */
  | { readonly event: "moved"; readonly facts: ModelFacts; readonly why: string; readonly repeats: boolean }
  | { readonly event: "phase"; readonly phase: "before" | "training" | "teaching" | "after" }
  /** A test of the model after a number of steps; 0 is before training. */
  | { readonly event: "tested"; readonly step: number; readonly evaluation: Evaluation }
  | {
      readonly event: "step";
      readonly metrics: MetricLine;
      readonly timing: TimingLine;
      readonly episodes: readonly EpisodeLine[];
    }
  | {
      readonly event: "taught";
      readonly step: number;
      readonly loss: number;
      readonly tokens: number;
      readonly seconds: number;
    }
  | { readonly event: "warning"; readonly warning: Warning };

export interface ToWorker {
  readonly id: number;
  readonly call: Call;
  readonly params: unknown;
}

export type FromWorker =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string }
  | WorkerEvent;
