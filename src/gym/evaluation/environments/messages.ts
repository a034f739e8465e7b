// Messages between the main thread and environment threads. An observation repeats the question, the schema and the
// whole history, so only its difference from the previous one is sent.

import type { QuestionRecord } from "../../data/index.ts";
import type { EnvironmentOptions, Outcome, SQLAction, SQLObservation } from "../../env/index.ts";

/** Initial data of a thread; database files are sent when needed. */
export interface EnvironmentThreadData {
  readonly name: string;
  readonly questions: readonly QuestionRecord[];
  readonly databases: readonly string[];
  readonly doubleQuotedStrings: boolean;
  /** Questions whose gold queries are run while the thread is idle. */
  readonly ahead: readonly string[];
}

export type ToEnvironments =
  /** A database file in shared memory, sent before the first question about it. */
  | { readonly database: string; readonly bytes: Uint8Array }
  /** Starts an episode; the main thread assigns its number. */
  | {
      readonly id: number;
      readonly episode: number;
      readonly question_id: string;
      readonly options: EnvironmentOptions;
    }
  | { readonly id: number; readonly episode: number; readonly action: SQLAction }
  | { readonly close: number };

export type FromEnvironments =
  | { readonly ready: true }
  | ({ readonly id: number /** Seconds the request took. */; readonly seconds: number } & (
      | { readonly news: ObservationDiff; readonly outcome: Outcome }
      | { readonly error: { readonly code: string | undefined; readonly message: string } }
    ));

/** The fields of an observation that differ from the previous one, and the new lines of its history. */
export type ObservationDiff = Partial<Omit<SQLObservation, "action_history">> & { readonly history: readonly string[] };

/** Computes the difference between an observation and the previous one. */
export function diffObservation(before: SQLObservation | undefined, observation: SQLObservation): ObservationDiff {
  const { action_history, ...fields } = observation;
  const history = action_history.slice(before?.action_history.length ?? 0);
  if (!before) return { ...fields, history };
  const changed = Object.entries(fields).filter(([key, value]) => value !== before[key as keyof typeof fields]);
  return { ...Object.fromEntries(changed), history };
}

/** Applies a difference. Keys keep their order, so that records have the same bytes with and without threads. */
export function applyDiff(before: SQLObservation | undefined, { history, ...fields }: ObservationDiff): SQLObservation {
  const known = before ?? NO_OBSERVATION;
  return { ...known, ...fields, action_history: [...known.action_history, ...history] };
}

const NO_OBSERVATION = {
  question: "",
  schema_info: "",
  result: "",
  error: null,
  error_class: null,
  step_count: 0,
  budget_remaining: 0,
  action_history: [],
  reward_breakdown: undefined as never,
  done: false,
  reward: null,
} satisfies SQLObservation;
