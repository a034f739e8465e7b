// Errors that a user can act on: what went wrong, with which value, and the remedy.

export interface ErrorParts {
  /** What went wrong, one clause without a full stop. */
  readonly what: string;
  /** The offending value as it should be shown; long values are cut. */
  readonly value?: string | number | undefined;
  /** What the reader can do about it. */
  readonly remedy?: string | undefined;
  readonly cause?: unknown;
}

const MAX_SHOWN_VALUE = 200; // characters; an error line should fit a terminal

/**
 * Base of every error this package throws on purpose; `code` is stable, the message is for people.
 *
 * @example
 * try {
 *   presetNamed("startr");
 * } catch (error) {
 *   if (error instanceof SqlEnvError) console.error(error.code, error.message);
 * }
 */
export class SqlEnvError extends Error {
  readonly code: string;
  readonly what: string;
  readonly value: string | undefined;
  readonly remedy: string | undefined;

  constructor(code: string, { what, value, remedy, cause }: ErrorParts) {
    const shown = value === undefined ? undefined : cut(String(value));
    super([shown === undefined ? what : `${what}: ${shown}`, remedy].filter(Boolean).join("; "), { cause });
    this.name = new.target.name;
    this.code = code;
    this.what = what;
    this.value = shown;
    this.remedy = remedy;
  }
}

/**
 * A question file, data set or database that cannot be used.
 *
 * @example
 * await openDataSet("questions.json").catch((error) => {
 *   if (error instanceof QuestionLoadError) console.error(error.message);
 * });
 */
export class QuestionLoadError extends SqlEnvError {
  constructor(parts: ErrorParts, code = "question_load") {
    super(code, parts);
  }
}

/**
 * A model that cannot be found, read, used or written.
 *
 * @example
 * await loadModelAndTokenizer("org/name").catch((error) => {
 *   if (error instanceof ModelLoadError) console.error(error.message); // what, which, and what to do
 * });
 */
export class ModelLoadError extends SqlEnvError {
  constructor(parts: ErrorParts, code = "model_load") {
    super(code, parts);
  }
}

/**
 * A model, batch or context that does not fit into memory.
 *
 * @example
 * await loadModelAndTokenizer("Qwen/Qwen3-8B").catch((error) => {
 *   if (error instanceof OOMError) console.error("choose a smaller model");
 * });
 */
export class OOMError extends SqlEnvError {
  constructor(parts: ErrorParts) {
    super("out_of_memory", parts);
  }
}

/**
 * A file that could not be downloaded; `status` is the server's last response, if there was one.
 *
 * @example
 * await importDataSet("https://example.org/spider.zip").catch((error) => {
 *   if (error instanceof DownloadError) console.error(error.status);
 * });
 */
export class DownloadError extends SqlEnvError {
  readonly status: number | undefined;

  constructor(parts: ErrorParts & { readonly status?: number | undefined }) {
    super("download", parts);
    this.status = parts.status;
  }
}

/**
 * Model output that is not `ACTION_TYPE: argument`; a value in the episode's record, never thrown.
 *
 * @example
 * const { error } = parseAction("I would look at the tables first.");
 * if (error instanceof ActionParseError) console.log(error.message);
 */
export class ActionParseError extends SqlEnvError {
  constructor(parts: ErrorParts) {
    super("action_parse", parts);
  }
}

/**
 * A player that cannot decide, such as one whose endpoint is down. Thrown by a player it ends the episode, which is
 * recorded and not scored; any other error of a player ends the evaluation or training.
 *
 * @example
 * throw new PlayerError("no_reply", { what: "the endpoint did not answer", value: url });
 */
export class PlayerError extends SqlEnvError {}

/**
 * A server that could not be reached or refused a request; `code` is the server's (EXECUTION_ERROR …) where it sent one.
 *
 * @example
 * await new SQLEnvClient("http://localhost:8000").reset().catch((error) => {
 *   if (error instanceof ServerError) console.error(error.code);
 * });
 */
export class ServerError extends SqlEnvError {}

/**
 * A remote engine that could not be reached, refused a request, failed, or answered with something else than expected.
 * `code` is engine_unreachable, engine_refused, engine_failed, engine_timeout or engine_reply; the message has the
 * server's words.
 *
 * @example
 * const { engine } = await loadRemoteModel("starter", { url: "http://localhost:8000" });
 * await engine.optimStep({ learning_rate: 1e-4 }).catch((error) => {
 *   if (error instanceof EngineError) console.error(error.code, error.message);
 * });
 */
export class EngineError extends SqlEnvError {}

/**
 * Wrong use of a command or function: a misspelt option, a value out of range.
 *
 * @example
 * try {
 *   resolveConfig({ learning_rate: -1 });
 * } catch (error) {
 *   if (error instanceof UsageError) console.error(error.message); // names the key, the value and a remedy
 * }
 */
export class UsageError extends SqlEnvError {
  constructor(parts: ErrorParts) {
    super("usage", parts);
  }
}

function cut(text: string): string {
  return text.length <= MAX_SHOWN_VALUE ? text : `${text.slice(0, MAX_SHOWN_VALUE)}… (${text.length} characters)`;
}

/** The message of any thrown value; never empty. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : textOf(error);
}

/** Any value as a message shows it, also one that JSON cannot write. */
export function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  try {
    return JSON.stringify(value) ?? Object.prototype.toString.call(value);
  } catch {
    return Object.prototype.toString.call(value); // such as one that contains itself
  }
}

/** Any value as a message shows it, with text in quotes: a text "1" is not the number 1. */
export function quoted(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : textOf(value);
}

/** The candidate nearest to a misspelt name, or undefined when none is near (at most a third of the letters differ). */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Levenshtein distance; stops early and returns `limit` when it cannot be below `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, previous[j]! + 1, row[j - 1]! + 1));
    }
    if (Math.min(...row) >= limit) return limit;
    previous = row;
  }
  return previous[b.length]!;
}
