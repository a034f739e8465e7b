// Runs queries on perturbed twins: a right query agrees with the gold query there too.

import { SqlEnvError } from "../../../errors.ts";
import type { DataSet, QuestionRecord } from "../../data/index.ts";
import { runGold } from "../../env/index.ts";
import type { Database } from "../../sql/index.ts";
import { asSpiderRuns, type Executed, execute, isStopped, ordersBySpider, sameBySpider } from "./execution.ts";
import { type GoldHints, goldHints, makeTwin } from "./twin.ts";

/** Maximum seeds tried to give a question enough twins. */
export const MAX_TWIN_SEEDS = 12;

/** A question's gold result on one twin. */
interface TwinGold {
  readonly seed: number;
  readonly result: Executed;
  readonly ordered: boolean;
}

/** The twins of a data set's databases, created when first needed. */
export class Twins {
  /** Number of twins each question should have. */
  readonly count: number;
  /** Number of queries that hit the time limit. */
  stopped = 0;
  readonly #data: DataSet;
  readonly #hints = new Map<string, GoldHints>();
  /** Twins of one database at a time: questions come roughly sorted by database. */
  #made: { readonly name: string; readonly bySeed: Map<number, Database | undefined> } | undefined;

  constructor(data: DataSet, count: number) {
    this.#data = data;
    this.count = count;
  }

  /**
   * Twins on which the question has a sensible answer: its gold query returns rows, not only NULLs, and LIMIT cuts no
   * tie.
   */
  goldsOf(question: QuestionRecord): TwinGold[] {
    const golds: TwinGold[] = [];
    for (let seed = 0; seed < MAX_TWIN_SEEDS && golds.length < this.count; seed++) {
      const twin = this.#twin(question.database_name, seed);
      const gold = twin && goldOn(twin, question);
      if (gold) golds.push({ seed, ...gold });
    }
    return golds;
  }

  /**
   * Whether the query agrees with the gold query on these twins by Spider's rule; rows tied in the gold's order may
   * come in any order.
   */
  agrees(question: QuestionRecord, sql: string, golds: readonly TwinGold[]): boolean {
    return golds.every(({ seed, result, ordered }) => {
      const given = execute(this.#twin(question.database_name, seed)!, asSpiderRuns(sql));
      if (isStopped(given)) this.stopped++;
      return given.ok && sameBySpider(result, given.result, ordered);
    });
  }

  close(): void {
    for (const twin of this.#made?.bySeed.values() ?? []) twin?.close();
    this.#made = undefined;
  }

  #twin(name: string, seed: number): Database | undefined {
    if (this.#made?.name !== name) {
      this.close();
      this.#made = { name, bySeed: new Map() };
    }
    const { bySeed } = this.#made!;
    if (!bySeed.has(seed)) bySeed.set(seed, this.#make(name, seed));
    return bySeed.get(seed);
  }

  /** Makes a twin; undefined if SQLite refuses its tables or memory runs out. */
  #make(name: string, seed: number): Database | undefined {
    try {
      return makeTwin(this.#data.databases.get(name), this.#hintsOf(name), seed);
    } catch (error) {
      if (error instanceof SqlEnvError && error.code === "sqlite_crashed") throw error;
      return undefined;
    }
  }

  #hintsOf(name: string): GoldHints {
    const golds = () => this.#data.questions.filter(({ database_name }) => database_name === name);
    const known = this.#hints.get(name) ?? goldHints(golds().map(({ gold_sql }) => gold_sql));
    this.#hints.set(name, known);
    return known;
  }
}

function goldOn(twin: Database, question: QuestionRecord): Omit<TwinGold, "seed"> | undefined {
  const sql = asSpiderRuns(question.gold_sql);
  let hasTies: boolean;
  try {
    const { groups } = runGold({ ...question, gold_sql: sql }, twin);
    if (groups.some(({ rows, take }) => take < rows.length)) return undefined;
    hasTies = groups.some(({ take }) => take > 1);
  } catch (error) {
    if (error instanceof SqlEnvError && error.code === "bad_gold") return undefined;
    throw error;
  }
  const ran = execute(twin, sql);
  return ran.ok ? { result: ran.result, ordered: ordersBySpider(sql) && !hasTies } : undefined;
}
