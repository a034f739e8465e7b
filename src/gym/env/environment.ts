// The environment: one question, one database, a few actions, and an answer at the end.

import { nearest, UsageError } from "../../errors.ts";
import { random } from "../../random.ts";
import type { DataSet, QuestionRecord, Split } from "../data/index.ts";
import { type Database, isUnscorable, MAX_INSTRUCTIONS, sharingTime } from "../sql/index.ts";
import type { SQLAction } from "./action.ts";
import { actionKey, type CheckedAction, checkAction, historyLine } from "./check-action.ts";
import { type EpisodeState, type Outcome, outcomeOf, startEpisode } from "./episode-state.ts";
import { type Effect, executeAction } from "./execute.ts";
import type { SQLObservation } from "./observation.ts";
import { renderSchema } from "./render.ts";
import { NO_REWARD, operationalOf, type RewardBreakdown, type RewardConfig, rewardSchema, sumOf } from "./reward.ts";
import { type EnvironmentRules, rulesOf } from "./rules.ts";
import { type Gold, runGold } from "./verifier/gold.ts";

export { DONE_REASONS, type DoneReason, type Outcome } from "./episode-state.ts";
export { GOLD_MARGIN, MAX_DESCRIBED } from "./execute.ts";

export const DEFAULT_STEP_BUDGET = 10;

/** Includes the rules `error_hints`, `end_after_failures`, `answer_last` and `describe_many`. @default DEFAULT_RULES */
export interface EnvironmentOptions extends Partial<EnvironmentRules> {
  /** Maximum number of actions per episode. @default 10 */
  readonly step_budget?: number;
  /** Reward amounts that differ from the defaults of `rewardSchema`. */
  readonly rewards?: Partial<RewardConfig>;
  /** Seed for the questions that `reset()` samples when called without options. @default 0 */
  readonly seed?: number;
  /**
   * Maximum SQLite virtual-machine instructions per QUERY. Raised to GOLD_MARGIN times what the gold query takes, but
   * never above MAX_INSTRUCTIONS. @default MAX_INSTRUCTIONS
   */
  readonly max_instructions?: number;
  /**
   * Whether episodes are judged by the gold query. False is for questions that have none: no gold query runs, and
   * outcomes are unscorable. @default true
   */
  readonly judged?: boolean;
}

/** Which question to ask: by id, by index in a split, or sampled by a seed. */
export interface ResetOptions {
  readonly question_id?: string;
  readonly split?: Split;
  readonly index?: number;
  readonly seed?: number | string;
}

export interface EnvironmentState {
  readonly episode_id: string;
  readonly step_count: number;
  readonly question_id: string | null;
}

/** Gold results by data set and question, so that each gold query runs once. */
const golds = new WeakMap<DataSet["databases"], WeakMap<QuestionRecord, Gold>>();

/**
 * An environment over a data set. Instances are cheap: thousands may share one data set, whose databases are opened
 * once and never change.
 *
 * @example
 * await loadSqlite();
 * const env = new SQLEnvironment(bundledDataSet(), { step_budget: 10 });
 * let observation = env.reset({ split: "train", seed: 1 });
 * observation = env.step({ action_type: "DESCRIBE", argument: "customers" });
 * observation = env.step({ action_type: "ANSWER", argument: "42" });
 * console.log(observation.done, observation.reward, env.outcome);
 */
export class SQLEnvironment {
  readonly step_budget: number;
  /** This environment's rules; `rulesId` gives their name. */
  readonly rules: EnvironmentRules;
  readonly #data: DataSet;
  readonly #rewards: RewardConfig;
  readonly #seed: number;
  readonly #maxInstructions: number;
  readonly #judged: boolean;
  #resets = 0;
  #episode: EpisodeState | undefined;

  constructor(data: DataSet, options: EnvironmentOptions = {}) {
    const { step_budget = DEFAULT_STEP_BUDGET, rewards = {}, seed = 0, max_instructions = MAX_INSTRUCTIONS } = options;
    const { judged = true } = options;
    if (!Number.isInteger(step_budget) || step_budget < 1) {
      throw new UsageError({ what: "step_budget must be a whole number from 1 on", value: step_budget });
    }
    this.#data = data;
    this.step_budget = step_budget;
    this.rules = rulesOf(options);
    this.#rewards = checkedRewards(rewards);
    this.#seed = seed;
    this.#maxInstructions = max_instructions;
    this.#judged = judged;
  }

  /** Starts an episode. Throws UsageError for an unknown question. */
  reset(options: ResetOptions = {}): SQLObservation {
    const question = this.#choose(options ?? {});
    // An unusable gold query fails here, not at the answer, and the running episode is kept.
    sharingTime(() => this.#runGold(question));
    this.#resets++;
    this.#episode = startEpisode(`${question.question_id}#${this.#resets}`, question, this.#rewards);
    if (!this.#judged) this.#episode.unscorable = true;
    return this.#observe({}, NO_REWARD, null);
  }

  /** Takes one action. Never throws for a player's mistake; after the episode's end it changes nothing and says so. */
  step(action: SQLAction): SQLObservation {
    return sharingTime(() => this.#step(action));
  }

  #step(action: SQLAction): SQLObservation {
    const episode = this.#current();
    if (episode.doneReason) {
      const effect: Effect = { error: "the episode is over; reset to start another", error_class: "episode_done" };
      return this.#observe(effect, NO_REWARD, 0);
    }
    const checked = checkAction(action);
    const isRepeat = checked.ok && this.#isRepeat(checked.action);
    let effect: Effect = checked.ok
      ? this.#execute(checked.action)
      : { error: checked.error, error_class: "bad_action" };
    if (isRepeat && effect.error === undefined) {
      effect = { ...effect, error: "you did this before; the result is the same", error_class: "repeat" };
    }
    const breakdown = episode.meter.book({
      worked: effect.error === undefined && checked.ok && checked.action.action_type !== "ANSWER",
      isNew: effect.isNew ?? false,
      isRepeat,
      isEmpty: !checked.ok || effect.isEmpty,
      phi: effect.phi,
      correct: effect.correct ?? undefined,
    });
    episode.step_count++;
    episode.operational += operationalOf(breakdown);
    episode.history.push(historyLine(checked.action, effect.error_class));
    if (isUnscorable(effect.error_class)) episode.unscorable = true;
    if (effect.correct !== undefined) {
      episode.correct = effect.correct ?? false;
      episode.doneReason = "answered";
    } else if (this.#isStuck(checked, effect)) {
      episode.doneReason = "stuck";
    } else if (episode.step_count >= this.step_budget) {
      episode.doneReason = "budget";
    }
    return this.#observe(effect, breakdown, isUnscorable(effect.error_class) ? null : sumOf(breakdown));
  }

  /** The episode's ids and step count, without the gold answer. */
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
    return outcomeOf(this.#current());
  }

  /**
   * The running episode's question with its gold query and answer: for players that may know them, and to show after
   * the end.
   */
  reveal(): QuestionRecord {
    return this.#current().question;
  }

  /** The running episode's database; players see it only through actions. */
  get database(): Database {
    return this.#data.databases.get(this.#current().question.database_name);
  }

  close(): void {
    this.#episode = undefined;
  }

  #current(): EpisodeState {
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

  /** Runs a question's gold query, once for all environments on the same databases; null if this one does not judge. */
  #runGold(question: QuestionRecord): Gold | null {
    if (!this.#judged) return null;
    const { databases } = this.#data;
    const known = golds.get(databases) ?? new WeakMap<QuestionRecord, Gold>();
    golds.set(databases, known);
    const gold = known.get(question) ?? runGold(question, databases.get(question.database_name));
    known.set(question, gold);
    return gold;
  }

  #execute(action: SQLAction): Effect {
    const episode = this.#current();
    const { database, rules } = this;
    const gold = this.#runGold(episode.question);
    return executeAction(action, { episode, database, gold, rules, maxInstructions: this.#maxInstructions });
  }

  #isRepeat(action: SQLAction): boolean {
    if (action.action_type === "ANSWER") return false;
    const { actions } = this.#current();
    const key = actionKey(action, this.rules);
    const known = actions.has(key);
    actions.add(key);
    return known;
  }

  /**
   * Whether this action has now failed `end_after_failures` times; repeating a successful action counts as a failure.
   */
  #isStuck(checked: CheckedAction, { error, error_class }: Effect): boolean {
    const { end_after_failures } = this.rules;
    // A query that hit the time limit may succeed at another time or on another machine.
    if (end_after_failures === null || error === undefined || isUnscorable(error_class)) return false;
    const { failures } = this.#current();
    const key = checked.ok ? actionKey(checked.action, this.rules) : `bad action: ${error}`;
    const count = (failures.get(key) ?? 0) + 1;
    failures.set(key, count);
    return count >= end_after_failures;
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
