// The environment: one question, one database, a few actions, and an answer at the end.
import { nearest, UsageError } from "../../errors.ts";
import { random } from "../../random.ts";
import type { DataSet, QuestionRecord, Split } from "../data/index.ts";
import {
  type Database,
  isUnscorable,
  MAX_INSTRUCTIONS,
  quoteName,
  type ResultTable,
  type RunResult,
  sharingTime,
} from "../sql/index.ts";
import {
  ACTION_TYPES,
  actionSchema,
  isLastReference,
  MAX_ARGUMENT_LENGTH,
  normalizeAction,
  type SQLAction,
  tableName,
  tableNames,
} from "./action.ts";
import { hintFor, severalTablesHint } from "./hints.ts";
import type { ErrorClass, SQLObservation } from "./observation.ts";
import { progressOf } from "./progress.ts";
import { renderDescription, renderResult, renderSchema } from "./render.ts";
import {
  NO_REWARD,
  operationalOf,
  type RewardBreakdown,
  type RewardConfig,
  RewardMeter,
  rewardSchema,
  sumOf,
} from "./reward.ts";
import { type EnvironmentRules, rulesOf } from "./rules.ts";
import { type Gold, goldOf, MAX_GOLD } from "./verifier/gold.ts";
import { rowsWanted, verifyAnswer, verifyResult } from "./verifier/verify.ts";

export const DEFAULT_STEP_BUDGET = 10;

/** Tables one DESCRIBE may show where several are allowed; more would not fit what a model is shown of a result. */
export const MAX_DESCRIBED = 8;

/** A statement may take this many times what the gold query takes, whatever `max_instructions` is: nobody writes the cheapest query. */
export const GOLD_MARGIN = 10;

/** The rules are settings too: `error_hints`, `end_after_failures`, `answer_last`, `describe_many`. @default DEFAULT_RULES */
export interface EnvironmentOptions extends Partial<EnvironmentRules> {
  /** Actions an episode may take. @default 10 */
  readonly step_budget?: number;
  /** Amounts other than the defaults of `rewardSchema`. */
  readonly rewards?: Partial<RewardConfig>;
  /** Seed of the questions drawn by `reset()` without options. @default 0 */
  readonly seed?: number;
  /**
   * Virtual-machine instructions one QUERY may take, at least GOLD_MARGIN times those of the gold query and at most
   * MAX_INSTRUCTIONS. @default MAX_INSTRUCTIONS
   */
  readonly max_instructions?: number;
}

/** Which question to ask: by id; by place in a split; or drawn by a seed. */
export interface ResetOptions {
  readonly question_id?: string;
  readonly split?: Split;
  readonly index?: number;
  readonly seed?: number | string;
}

export const DONE_REASONS = ["answered", "budget", "stuck"] as const;

/** Why an episode ended; `stuck` by the rule `end_after_failures`. */
export type DoneReason = (typeof DONE_REASONS)[number];

/** How an episode stands; the three rewards GRPO reads. `null` where a crash or the clock made it unscorable. */
export interface Outcome {
  readonly correctness: 0 | 1 | null;
  readonly progress: number | null;
  readonly operational: number | null;
  readonly done_reason: DoneReason | null;
}

export interface EnvironmentState {
  readonly episode_id: string;
  readonly step_count: number;
  readonly question_id: string | null;
}

/** Everything of the running episode. */
interface Episode {
  readonly id: string;
  readonly question: QuestionRecord;
  readonly meter: RewardMeter;
  readonly described: Set<string>;
  readonly seen: Set<string>;
  readonly actions: Set<string>;
  /** How often each action failed. */
  readonly failures: Map<string, number>;
  /** The last query that worked, and whether its result is the answer; null where the result was cut. */
  last: { readonly sql: string; readonly right: boolean | null } | undefined;
  readonly history: string[];
  step_count: number;
  operational: number;
  correct: boolean;
  doneReason: DoneReason | null;
  unscorable: boolean;
}

/** What an action came to, before rewards. */
interface Effect {
  readonly result?: string;
  readonly error?: string;
  readonly error_class?: ErrorClass;
  readonly isNew?: boolean;
  readonly phi?: number;
  readonly correct?: boolean;
  /** The action could not be tried at all. */
  readonly isEmpty?: boolean;
}

/** Golds that were run, by the databases they were run on. */
const golds = new WeakMap<DataSet["databases"], WeakMap<QuestionRecord, Gold>>();

/** A gym over a data set. Cheap: thousands may share one data set, whose databases are opened once and never change. */
export class SQLEnvironment {
  readonly step_budget: number;
  /** What may change the game, as this environment has it; `rulesId` names it. */
  readonly rules: EnvironmentRules;
  readonly #data: DataSet;
  readonly #rewards: RewardConfig;
  readonly #seed: number;
  readonly #maxInstructions: number;
  #resets = 0;
  #episode: Episode | undefined;

  constructor(data: DataSet, options: EnvironmentOptions = {}) {
    const { step_budget = DEFAULT_STEP_BUDGET, rewards = {}, seed = 0, max_instructions = MAX_INSTRUCTIONS } = options;
    if (!Number.isInteger(step_budget) || step_budget < 1) {
      throw new UsageError({ what: "step_budget must be a whole number from 1 on", value: step_budget });
    }
    this.#data = data;
    this.step_budget = step_budget;
    this.rules = rulesOf(options);
    this.#rewards = checkedRewards(rewards);
    this.#seed = seed;
    this.#maxInstructions = max_instructions;
  }

  /** Starts an episode. Throws UsageError for a question that is not there. */
  reset(options: ResetOptions = {}): SQLObservation {
    const question = this.#choose(options ?? {});
    sharingTime(() => this.#goldOf(question)); // an unusable gold shows now, not at the answer, and leaves the running episode alone
    this.#resets++;
    this.#episode = {
      id: `${question.question_id}#${this.#resets}`,
      question,
      meter: new RewardMeter(this.#rewards),
      described: new Set(),
      seen: new Set(),
      actions: new Set(),
      failures: new Map(),
      last: undefined,
      history: [],
      step_count: 0,
      operational: 0,
      correct: false,
      doneReason: null,
      unscorable: false,
    };
    return this.#observe({}, NO_REWARD, null);
  }

  /** Takes one action. Never throws for what the player did; after the end it changes nothing and says so. */
  step(action: SQLAction): SQLObservation {
    return sharingTime(() => this.#step(action));
  }

  #step(action: SQLAction): SQLObservation {
    const episode = this.#current();
    if (episode.doneReason) {
      const effect: Effect = { error: "the episode is over; reset to start another", error_class: "episode_done" };
      return this.#observe(effect, NO_REWARD, 0);
    }
    const checked = checkAction(copyOf(action));
    const isRepeat = checked.ok && this.#isRepeat(checked.action);
    let effect = checked.ok ? this.#act(checked.action) : checked.effect;
    if (isRepeat && effect.error === undefined) {
      effect = { ...effect, error: "you did this before; the result is the same", error_class: "repeat" };
    }
    const breakdown = episode.meter.book({
      worked: effect.error === undefined && checked.ok && checked.action.action_type !== "ANSWER",
      isNew: effect.isNew ?? false,
      isRepeat,
      isEmpty: !checked.ok || effect.isEmpty,
      phi: effect.phi,
      correct: effect.correct,
    });
    episode.step_count++;
    episode.operational += operationalOf(breakdown);
    episode.history.push(historyLine(checked.action, effect));
    if (isUnscorable(effect.error_class)) episode.unscorable = true;
    if (effect.correct !== undefined) {
      episode.correct = effect.correct;
      episode.doneReason = "answered";
    } else if (this.#isStuck(checked, effect)) {
      episode.doneReason = "stuck";
    } else if (episode.step_count >= this.step_budget) {
      episode.doneReason = "budget";
    }
    return this.#observe(effect, breakdown, isUnscorable(effect.error_class) ? null : sumOf(breakdown));
  }

  /** What can be told of the episode without giving the gold away. */
  get state(): EnvironmentState {
    const episode = this.#episode;
    return {
      episode_id: episode?.id ?? "",
      step_count: episode?.step_count ?? 0,
      question_id: episode?.question.question_id ?? null,
    };
  }

  /** The episode's rewards so far. */
  get outcome(): Outcome {
    const { correct, meter, operational, doneReason, unscorable } = this.#current();
    return {
      correctness: unscorable ? null : correct ? 1 : 0,
      progress: unscorable ? null : meter.phi,
      operational: unscorable ? null : Math.round(operational * 1e9) / 1e9,
      done_reason: doneReason,
    };
  }

  /** The running episode's question with its gold: for players that may know it and for showing it after the end. */
  reveal(): QuestionRecord {
    return this.#current().question;
  }

  /** The running episode's database; for players' eyes through actions only. */
  get database(): Database {
    return this.#data.databases.get(this.#current().question.database_name);
  }

  close(): void {
    this.#episode = undefined;
  }

  #current(): Episode {
    if (!this.#episode) throw new UsageError({ what: "no episode is running", remedy: "call reset() first" });
    return this.#episode;
  }

  #choose({ question_id, split, index, seed }: ResetOptions): QuestionRecord {
    const { questions } = this.#data;
    if (question_id !== undefined) {
      const found = questions.find((question) => question.question_id === question_id);
      if (found) return found;
      const near = nearest(
        question_id,
        questions.map((question) => question.question_id),
      );
      throw new UsageError({
        what: "no such question_id",
        value: question_id,
        remedy: near ? `did you mean ${near}?` : "see `sqlenv data show`",
      });
    }
    const pool = split === undefined ? questions : questions.filter((question) => question.split === split);
    if (pool.length === 0) throw new UsageError({ what: "no question in split", value: split });
    if (index !== undefined) {
      const found = pool[index];
      if (found) return found;
      throw new UsageError({ what: "no question at index", value: index, remedy: `use 0 to ${pool.length - 1}` });
    }
    return random("reset", seed ?? this.#seed, seed === undefined ? this.#resets : "given").pick(pool);
  }

  #goldOf(question: QuestionRecord): Gold {
    const { databases } = this.#data;
    const known = golds.get(databases) ?? new WeakMap<QuestionRecord, Gold>();
    golds.set(databases, known);
    const gold = known.get(question) ?? goldOf(question, databases.get(question.database_name));
    known.set(question, gold);
    return gold;
  }

  /** What two actions that do the same have in common. */
  #keyOf(action: SQLAction): string {
    if (action.action_type !== "DESCRIBE" || !this.rules.describe_many) return normalizeAction(action);
    const names = tableNames(action.argument).map((name) => name.toLowerCase());
    return `DESCRIBE: ${names.sort().join(", ")}`;
  }

  #isRepeat(action: SQLAction): boolean {
    if (action.action_type === "ANSWER") return false;
    const { actions } = this.#current();
    const key = this.#keyOf(action);
    const known = actions.has(key);
    actions.add(key);
    return known;
  }

  /** Whether the action failed, or only repeated one that worked, as often as the rules allow. */
  #isStuck(checked: ReturnType<typeof checkAction>, { error, error_class }: Effect): boolean {
    const { end_after_failures } = this.rules;
    // What the clock stopped may work another time, on another machine.
    if (end_after_failures === null || error === undefined || isUnscorable(error_class)) return false;
    const { failures } = this.#current();
    const key = checked.ok ? this.#keyOf(checked.action) : `bad action: ${error}`;
    const count = (failures.get(key) ?? 0) + 1;
    failures.set(key, count);
    return count >= end_after_failures;
  }

  #act({ action_type, argument }: SQLAction): Effect {
    const episode = this.#current();
    switch (action_type) {
      case "ANSWER":
        if (this.rules.answer_last && isLastReference(argument)) return this.#answerLast();
        return { result: "", correct: verifyAnswer(argument, this.#goldOf(episode.question)) };
      case "QUERY":
        return this.#query(argument);
      case "DESCRIBE":
        return this.#describeMany(argument) ?? this.#look(action_type, argument);
      case "SAMPLE":
        return this.#look(action_type, argument);
    }
  }

  /** The descriptions of several tables, one after the other; undefined where the rules or the argument want one. */
  #describeMany(argument: string): Effect | undefined {
    const { database } = this;
    if (!this.rules.describe_many || database.table(argument.trim())) return undefined;
    const names = tableNames(argument);
    if (names.length === 0) return undefined;
    if (names.length === 1) return this.#look("DESCRIBE", names[0]!); // `singer, singer` is one table
    if (names.length > MAX_DESCRIBED) {
      return { error: `describe at most ${MAX_DESCRIBED} tables in one action`, error_class: "bad_action" };
    }
    // A name that is no table fails the whole action: nothing must count as seen that is not shown.
    const unknown = names.find((name) => !database.table(name));
    if (unknown !== undefined) return this.#look("DESCRIBE", unknown);
    const effects = names.map((name) => this.#look("DESCRIBE", name));
    return {
      result: effects.map(({ result }) => result).join("\n\n"),
      isNew: effects.some(({ isNew }) => isNew),
    };
  }

  #look(action_type: "DESCRIBE" | "SAMPLE", argument: string): Effect {
    const { database } = this;
    const name = tableName(argument);
    const table = database.table(argument.trim()) ?? database.table(name);
    if (!table) {
      const names = database.tables.map((known) => quoteName(known.name));
      const isOne = action_type === "SAMPLE" || !this.rules.describe_many;
      const hint = this.rules.error_hints && isOne ? severalTablesHint(argument, database) : "";
      return { error: `no such table: ${name}${hint}; tables: ${names.join(", ")}`, error_class: "unknown_table" };
    }
    const { seen, described } = this.#current();
    const isNew = !seen.has(`table ${table.name}`);
    seen.add(`table ${table.name}`);
    if (action_type === "DESCRIBE") {
      described.add(table.name);
      return { result: renderDescription(table, database.rowCount(table)), isNew };
    }
    const sampled = database.sample(table);
    return sampled.ok ? { result: renderResult(sampled.table), isNew } : failed(sampled);
  }

  #query(sql: string): Effect {
    const episode = this.#current();
    const gold = this.#goldOf(episode.question);
    const result = this.database.run(sql, { maxInstructions: this.#instructionsFor(gold) });
    if (!result.ok) return this.#failedQuery(result, sql);
    const { seen } = episode;
    if (this.rules.answer_last) episode.last = { sql, right: isRight(result.table, gold) };
    const fingerprint = `result ${fingerprintOf(result.table)}`;
    const isNew = result.table.rows.length > 0 && !seen.has(fingerprint);
    seen.add(fingerprint);
    return { result: renderResult(result.table), isNew, phi: progressOf(result.table, gold) };
  }

  #failedQuery(result: Failure, sql: string): Effect {
    const effect = failed(result);
    if (!this.rules.error_hints) return effect;
    return {
      ...effect,
      error: `${effect.error}${hintFor(result.fault, sql, this.database, this.#current().described)}`,
    };
  }

  /** Answers with the last result. The verdict was found with it; a result that was cut is run again in full. */
  #answerLast(): Effect {
    const { last, question } = this.#current();
    if (!last) {
      const error = "there is no last result: no QUERY has worked yet";
      return { error, error_class: "bad_action", isEmpty: true };
    }
    if (last.right !== null) return { result: "", correct: last.right };
    const gold = this.#goldOf(question);
    const whole = this.database.run(last.sql, { ...MAX_GOLD, maxInstructions: this.#instructionsFor(gold) });
    if (!whole.ok) return failed(whole);
    return { result: "", correct: whole.table.truncated === null && verifyResult(whole.table, gold) };
  }

  /** What a statement may take on this question. */
  #instructionsFor({ instructions }: Gold): number {
    return Math.min(MAX_INSTRUCTIONS, Math.max(this.#maxInstructions, GOLD_MARGIN * instructions));
  }

  #observe(effect: Effect, reward_breakdown: RewardBreakdown, reward: number | null): SQLObservation {
    const episode = this.#current();
    return {
      question: episode.question.question_text,
      schema_info: renderSchema(this.database, episode.described),
      result: effect.result ?? "",
      error: effect.error ?? null,
      error_class: effect.error_class ?? null,
      step_count: episode.step_count,
      budget_remaining: this.step_budget - episode.step_count,
      action_history: [...episode.history],
      reward_breakdown,
      done: episode.doneReason !== null,
      reward,
    };
  }
}

function checkedRewards(rewards: Partial<RewardConfig>): RewardConfig {
  const parsed = rewardSchema.safeParse(rewards);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw new UsageError({
    what: `rewards.${path.join(".")}`,
    value: message,
    remedy: "see the reference for the amounts",
  });
}

/** Whether a result is right; null where what was cut off decides. A cell that was cut is longer than any of the gold's. */
function isRight(table: ResultTable, gold: Gold): boolean | null {
  if (table.truncated === null) return verifyResult(table, gold);
  return table.cut_at === undefined && rowsWanted(gold) > table.rows.length ? null : false;
}

type Failure = Extract<RunResult, { ok: false }>;

function failed({ fault }: Failure): Effect {
  return { error: fault.message, error_class: fault.error_class };
}

/** An action's two fields, read once: what comes from anywhere may have getters that throw. */
function copyOf(action: SQLAction): { action_type: unknown; argument: unknown } {
  try {
    return { action_type: action.action_type, argument: action.argument };
  } catch {
    return { action_type: undefined, argument: undefined };
  }
}

/** Checks an action that may come from anywhere. */
function checkAction(
  action: ReturnType<typeof copyOf>,
): { ok: true; action: SQLAction } | { ok: false; action: ReturnType<typeof copyOf>; effect: Effect } {
  const bad = (error: string) => ({
    ok: false as const,
    action,
    effect: { error, error_class: "bad_action" as const },
  });
  const parsed = actionSchema.safeParse(action);
  if (!parsed.success) return bad(`an action is {action_type: ${ACTION_TYPES.join("|")}, argument: text}`);
  const { action_type, argument } = parsed.data;
  if (argument.length > MAX_ARGUMENT_LENGTH)
    return bad(`the argument is longer than ${MAX_ARGUMENT_LENGTH} characters`);
  if (argument.trim() === "") return bad(`${action_type} needs an argument`);
  return { ok: true, action: parsed.data };
}

const HISTORY_ARGUMENT = 200; // characters of an argument repeated in the history

function historyLine(action: ReturnType<typeof copyOf>, { error_class }: Effect): string {
  const shownText = (value: unknown) => (typeof value === "string" ? value : "?");
  const type = shownText(action.action_type).slice(0, 20);
  const argument = shownText(action.argument)
    .slice(0, 2 * HISTORY_ARGUMENT)
    .replace(/\s+/g, " ")
    .trim();
  const shown = argument.length <= HISTORY_ARGUMENT ? argument : `${argument.slice(0, HISTORY_ARGUMENT)}…`;
  return `${type}: ${shown}${error_class ? ` -> ${error_class}` : ""}`;
}

/** A 64-bit hash of a result's rows, to know it again without keeping it. */
function fingerprintOf({ rows }: ResultTable): string {
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
