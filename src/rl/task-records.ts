// Splits a file of tasks into its records: a JSON list, one record per line, or { "train": […], "eval": […] }.
import { messageOf, UsageError } from "../errors.ts";

export interface TaskRecord {
  readonly record: unknown;
  /** Where it is in the file, for messages. */
  readonly where: string;
}

/** The records of a file's text, not validated; those of { train, eval } get that `split`. */
export function taskRecords(text: string, file: string): TaskRecord[] {
  const records = recordsOf(text, file);
  if (records.length === 0) throw new UsageError({ what: "there are no tasks in", value: file });
  return records;
}

function recordsOf(text: string, file: string): TaskRecord[] {
  if (/^\s*\[/.test(text)) {
    return (parse(text, file) as unknown[]).map((record, i) => ({ record, where: `task ${i + 1}` }));
  }
  const splits = splitsOf(text);
  if (splits) {
    return splits.flatMap(([split, records]) =>
      records.map((record, i) => ({
        record: typeof record === "object" && record !== null ? { ...record, split } : record,
        where: `${split} ${i + 1}`,
      })),
    );
  }
  return text
    .split(/\r?\n/)
    .map((line, i) => ({ line, where: `line ${i + 1}` }))
    .filter(({ line }) => line.trim() !== "")
    .map(({ line, where }) => ({ record: parse(line, `${file}, ${where}`), where }));
}

/** The lists of { train, eval }; undefined if the text is something else. */
function splitsOf(text: string): (readonly [split: "train" | "eval", records: readonly unknown[]])[] | undefined {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof whole !== "object" || whole === null || !("train" in whole) || !Array.isArray(whole.train))
    return undefined;
  const held = "eval" in whole && Array.isArray(whole.eval) ? whole.eval : [];
  return [
    ["train", whole.train],
    ["eval", held],
  ];
}

function parse(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UsageError({
      what: `${where} is not JSON`,
      value: messageOf(cause),
      remedy: "give a list of tasks, one task per line, or lists of train and eval tasks",
      cause,
    });
  }
}
