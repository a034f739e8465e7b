// Executes an action of an episode: describes and samples tables, runs queries, verifies answers. The environment
// computes the rewards.

import { type Database, MAX_INSTRUCTIONS, quoteName, type ResultTable, type RunResult } from "../sql/index.ts";
import { isLastReference, type SQLAction, tableName, tableNames } from "./action.ts";
import type { EpisodeState } from "./episode-state.ts";
import { hintFor, severalTablesHint } from "./hints.ts";
import type { ErrorClass } from "./observation.ts";
import { computeProgress } from "./progress.ts";
import { renderDescription, renderResult } from "./render.ts";
import type { EnvironmentRules } from "./rules.ts";
import { type Gold, MAX_GOLD } from "./verifier/gold.ts";
import { rowsWanted, verifyAnswer, verifyResult } from "./verifier/verify.ts";

/**
 * Maximum tables per DESCRIBE under the rule `describe_many`; more would not fit the length limit of a shown result.
 */
export const MAX_DESCRIBED = 8;

/**
 * A statement may use this many times the gold query's instructions, whatever `max_instructions` says: few queries are
 * as cheap as the gold one.
 */
export const GOLD_MARGIN = 10;

/** The result of an action, before rewards. */
export interface Effect {
  readonly result?: string;
  readonly error?: string;
  readonly error_class?: ErrorClass;
  readonly isNew?: boolean;
  readonly phi?: number;
  /** The verdict on an answer; null if there is no gold. */
  readonly correct?: boolean | null;
  /** Whether the action was invalid and not tried at all. */
  readonly isEmpty?: boolean;
}

/** What executing an action needs. */
export interface ExecutionContext {
  readonly episode: EpisodeState;
  readonly database: Database;
  /** Null in an environment that does not judge. */
  readonly gold: Gold | null;
  readonly rules: EnvironmentRules;
  /** The environment's `max_instructions`. */
  readonly maxInstructions: number;
}

export function executeAction({ action_type, argument }: SQLAction, context: ExecutionContext): Effect {
  switch (action_type) {
    case "ANSWER":
      if (context.rules.answer_last && isLastReference(argument)) return answerLast(context);
      return { result: "", correct: context.gold && verifyAnswer(argument, context.gold) };
    case "QUERY":
      return query(argument, context);
    case "DESCRIBE":
      return describeMany(argument, context) ?? showTable(action_type, argument, context);
    case "SAMPLE":
      return showTable(action_type, argument, context);
  }
}

/** Describes several tables, one after the other; undefined if the rules or the argument call for one table. */
function describeMany(argument: string, context: ExecutionContext): Effect | undefined {
  const { database, rules } = context;
  if (!rules.describe_many || database.table(argument.trim())) return undefined;
  const names = tableNames(argument);
  if (names.length === 0) return undefined;
  if (names.length === 1) return showTable("DESCRIBE", names[0]!, context); // `singer, singer` names one table
  if (names.length > MAX_DESCRIBED) {
    return { error: `describe at most ${MAX_DESCRIBED} tables in one action`, error_class: "bad_action" };
  }
  // An unknown name fails the whole action: a table that is not shown must not count as seen.
  const unknown = names.find((name) => !database.table(name));
  if (unknown !== undefined) return showTable("DESCRIBE", unknown, context);
  const effects = names.map((name) => showTable("DESCRIBE", name, context));
  return {
    result: effects.map(({ result }) => result).join("\n\n"),
    isNew: effects.some(({ isNew }) => isNew),
  };
}

/** Shows one table's columns or its first rows. */
function showTable(
  action_type: "DESCRIBE" | "SAMPLE",
  argument: string,
  { episode, database, rules }: ExecutionContext,
): Effect {
  const name = tableName(argument);
  const table = database.table(argument.trim()) ?? database.table(name);
  if (!table) {
    const names = database.tables.map((known) => quoteName(known.name));
    const isOne = action_type === "SAMPLE" || !rules.describe_many;
    const hint = rules.error_hints && isOne ? severalTablesHint(argument, database) : "";
    return { error: `no such table: ${name}${hint}; tables: ${names.join(", ")}`, error_class: "unknown_table" };
  }
  const { seen, described } = episode;
  const isNew = !seen.has(`table ${table.name}`);
  seen.add(`table ${table.name}`);
  if (action_type === "DESCRIBE") {
    described.add(table.name);
    return { result: renderDescription(table, database.rowCount(table)), isNew };
  }
  const sampled = database.sample(table);
  return sampled.ok ? { result: renderResult(sampled.table), isNew } : failed(sampled);
}

function query(sql: string, context: ExecutionContext): Effect {
  const { episode, database, gold, rules } = context;
  const result = database.run(sql, { maxInstructions: instructionLimit(context) });
  if (!result.ok) return failedQuery(result, sql, context);
  const { seen } = episode;
  if (rules.answer_last) episode.last = { sql, right: gold && isRight(result.table, gold) };
  const key = `result ${hashRows(result.table)}`;
  const isNew = result.table.rows.length > 0 && !seen.has(key);
  seen.add(key);
  return { result: renderResult(result.table), isNew, ...(gold && { phi: computeProgress(result.table, gold) }) };
}

function failedQuery(result: Failure, sql: string, { episode, database, rules }: ExecutionContext): Effect {
  const effect = failed(result);
  if (!rules.error_hints) return effect;
  return { ...effect, error: `${effect.error}${hintFor(result.error, sql, database, episode.described)}` };
}

/** Answers with the last result, whose verdict is already known. A truncated result is run again in full. */
function answerLast(context: ExecutionContext): Effect {
  const { episode, database, gold } = context;
  const { last } = episode;
  if (!last) {
    const error = "there is no last result: no QUERY has worked yet";
    return { error, error_class: "bad_action", isEmpty: true };
  }
  if (last.right !== null || !gold) return { result: "", correct: last.right };
  const whole = database.run(last.sql, { ...MAX_GOLD, maxInstructions: instructionLimit(context) });
  if (!whole.ok) return failed(whole);
  return { result: "", correct: whole.table.truncated === null && verifyResult(whole.table, gold) };
}

/** Maximum virtual-machine instructions for a statement on this question. */
function instructionLimit({ gold, maxInstructions }: ExecutionContext): number {
  return Math.min(MAX_INSTRUCTIONS, Math.max(maxInstructions, GOLD_MARGIN * (gold?.instructions ?? 0)));
}

/**
 * Whether a result is right; null if that depends on rows that were not read. A truncated cell is wrong: it is longer
 * than any gold cell.
 */
function isRight(table: ResultTable, gold: Gold): boolean | null {
  if (table.truncated === null) return verifyResult(table, gold);
  return table.cut_at === undefined && rowsWanted(gold) > table.rows.length ? null : false;
}

type Failure = Extract<RunResult, { ok: false }>;

function failed({ error }: Failure): Effect {
  return { error: error.message, error_class: error.error_class };
}

/** Computes a 64-bit hash of a result's rows, to recognize a result without storing it. */
function hashRows({ rows }: ResultTable): string {
  let [a, b] = [0x811c9dc5, 0x1b873593];
  for (const row of rows) {
    for (const cell of row) {
      const text = `${typeof cell}${cell}\u0001`;
      for (let i = 0; i < text.length; i++) {
        a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
        b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b) + a;
      }
    }
    a = Math.imul(a ^ 2, 0x01000193);
  }
  return `${(a >>> 0).toString(16)}${(b >>> 0).toString(16)}`;
}
