// A data set: questions, their databases, and the rejected questions with reasons.
import type { DatabasePool } from "../sql/index.ts";
import type { QuestionRecord, Split } from "./question.ts";

/** Why a question cannot be used. */
export const REJECTION_REASONS = [
  "database_missing",
  "database_bad", // the file exists but cannot be read
  "gold_fails", // the gold query is refused or fails
  "gold_empty", // the gold query returns no rows, so an empty answer would be right by accident
  "gold_only_nulls",
  "gold_too_long", // the answer exceeds MAX_ANSWER_LENGTH
  "gold_mismatch", // the file's gold_answer or answer_type differs from the gold query's result
  "duplicate_id",
  "malformed", // a field is missing or of the wrong type
] as const;

export type RejectionReason = (typeof REJECTION_REASONS)[number];

export interface Rejection {
  readonly question_id: string;
  readonly split: Split;
  readonly reason: RejectionReason;
  /** SQLite's message, the field's name, or both values. */
  readonly detail: string;
}

/**
 * Folder layouts that can be read: "questions" is the native one, the others are published data sets with known flaws.
 */
export const LAYOUTS = ["questions", "spider", "bird"] as const;

export type Layout = (typeof LAYOUTS)[number];

export interface DataSet {
  readonly name: string;
  /** Usable questions only: each gold query was run and returned an answer. */
  readonly questions: readonly QuestionRecord[];
  readonly databases: DatabasePool;
  readonly rejected: readonly Rejection[];
  /** Layout it was loaded from; published layouts are expected to contain rejected questions. @default "questions" */
  readonly layout?: Layout;
  /** Returns a database file's bytes; needed to export the data set. */
  readonly file?: (database: string) => Uint8Array;
}
