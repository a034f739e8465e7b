// A data set: questions and the databases they are about, with what could not be used and why.
import type { DatabaseShelf } from "../sql/index.ts";
import type { QuestionRecord } from "./record.ts";

/** Why a question cannot be used. */
export const REJECTION_REASONS = [
  "database_missing",
  "database_bad", // the file is there but cannot be read
  "gold_fails", // the gold query is refused or fails
  "gold_empty", // it gives no rows: an empty answer would be right by accident
  "gold_only_nulls",
  "gold_mismatch", // the file's gold_answer is not what the gold query gives
  "duplicate_id",
  "malformed", // a field is missing or of the wrong type
] as const;

export type RejectionReason = (typeof REJECTION_REASONS)[number];

export interface Rejection {
  readonly question_id: string;
  readonly reason: RejectionReason;
  /** What exactly: SQLite's message, the field, both values. */
  readonly detail: string;
}

export interface DataSet {
  readonly name: string;
  /** Usable questions only: each gold query was run and gave an answer. */
  readonly questions: readonly QuestionRecord[];
  readonly databases: DatabaseShelf;
  readonly rejected: readonly Rejection[];
}
