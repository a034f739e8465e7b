// Limits of sources, each with its reason.
import { QuestionLoadError } from "../../../errors.ts";

/** Largest database in bytes: the file is held in WebAssembly memory, whole and once per worker thread, and its address space is 4 GB. */
export const MAX_DATABASE_BYTES = 500_000_000;

/** Maximum bytes of a database that is checked for damage before it is used; a larger one would take seconds. */
export const MAX_CHECKED_BYTES = 50_000_000;

/** Rows per table that are imported without --max-rows. More give no better questions, since answers are short. */
export const DEFAULT_MAX_ROWS = 50_000;

/** Maximum columns of a table: the limit of the SQL sandbox. */
export const MAX_SOURCE_COLUMNS = 500;

/** Refuses a file that is larger than a worker can hold. */
export function tooLarge(value: string, bytes: number): QuestionLoadError {
  return new QuestionLoadError({
    what: `the database has ${Math.round(bytes / 1e6)} MB, and ${MAX_DATABASE_BYTES / 1e6} MB is the limit, since it is held in WebAssembly memory once per worker`,
    value,
    remedy: "export its tables to CSV files in a folder and give that: large tables are sampled while they are read",
  });
}
