// A data set: questions, their databases, and the rejected questions with reasons.
import type { DatabasePool } from "../sql/index.ts";
import type { QuestionRecord, Split } from "./question.ts";

/** Why a question cannot be used. */
export const REJECTION_REASONS = [
  "database_missing",
  "database_bad", // the file is there but cannot be read
  "gold_fails", // the gold query is refused or fails
  "gold_empty", // it gives no rows: an empty answer would be right by accident
  "gold_only_nulls",
  "gold_too_long", // the answer has more characters than an answer may have
  "gold_mismatch", // the file's gold_answer or answer_type is not what the gold query gives
  "duplicate_id",
  "malformed", // a field is missing or of the wrong type
] as const;

export type RejectionReason = (typeof REJECTION_REASONS)[number];

export interface Rejection {
  readonly question_id: string;
  readonly split: Split;
  readonly reason: RejectionReason;
  /** Details: SQLite's message, the field, both values. */
  readonly detail: string;
}

/** Folder layouts that can be read. "questions" is the native one, the others are published ones with known flaws. */
export const LAYOUTS = ["questions", "spider", "bird"] as const;

export type Layout = (typeof LAYOUTS)[number];

export interface DataSet {
  readonly name: string;
  /** Usable questions only: each gold query was run and gave an answer. */
  readonly questions: readonly QuestionRecord[];
  readonly databases: DatabasePool;
  readonly rejected: readonly Rejection[];
  /** Where it came from; rejected questions are expected in the published layouts. @default "questions" */
  readonly layout?: Layout;
  /** The file of a database, needed to export the data set. */
  readonly file?: (database: string) => Uint8Array;
}
