// The worker's side of playing: the data set, the environment, and the player that has the turn.

import { UsageError } from "../../../errors.ts";
import type { DataSet, QuestionRecord } from "../../../gym/data/index.ts";
import { type SQLAction, SQLEnvironment, type SQLObservation } from "../../../gym/env/index.ts";
import type { StepRecord } from "../../../gym/evaluation/index.ts";
import type { Player, Policy } from "../../../gym/players/index.ts";
import { keywordPlayer, lookerPlayer, oraclePlayer, randomPlayer } from "../../../gym/players/index.ts";
import { loadSqlite } from "../../../gym/sql/index.ts";
import { bundledDataSet, practiceSet, STARTER_FORMS } from "../../../gym/worlds/index.ts";
import type { Calls, DataChoice, Gold, OpenQuestion, PlayerChoice, SchemaTable, Started, Stepped } from "./protocol.ts";

/** Databases of a practice set, with training questions and without: made in a second. */
const PRACTICE_SIZES = { seen: 16, unseen: 8 } as const;

/** Makes a data set: a second for the bundled one. */
export async function dataSetOf({ kind, seed }: DataChoice): Promise<DataSet> {
  await loadSqlite();
  if (kind === "bundled") return bundledDataSet({ seed });
  return practiceSet({ seed, ...PRACTICE_SIZES, ...(kind === "starter" && { forms: STARTER_FORMS }) });
}

const SCRIPTED: Readonly<Record<Exclude<PlayerChoice["name"], "model">, () => Player>> = {
  random: randomPlayer,
  looker: lookerPlayer,
  keyword: keywordPlayer,
  oracle: oraclePlayer,
};

/** One table in a gym: a question is on it, and somebody plays. */
export class Room {
  readonly #model: (choice: PlayerChoice) => Player;
  #data: DataSet | undefined;
  #trained = new Set<string>();
  #env: SQLEnvironment | undefined;
  #last: SQLObservation | undefined;
  /** The player that made every move of this episode. */
  #seat: { readonly key: string; readonly turn: Policy } | undefined;

  /** `model` makes the player whose moves a model chooses. */
  constructor(model: (choice: PlayerChoice) => Player) {
    this.#model = model;
  }

  get data(): DataSet {
    if (!this.#data) throw new UsageError({ what: "no data set is open" });
    return this.#data;
  }

  async open(choice: DataChoice): Promise<Calls["open"]["give"]> {
    this.#data = await dataSetOf(choice);
    this.#env = undefined;
    const { questions } = this.#data;
    this.#trained = new Set(questions.filter(({ split }) => split === "train").map((q) => q.database_name));
    return { questions: questions.map((question) => this.#opened(question)) };
  }

  reset({ budget, ...which }: Calls["reset"]["take"]): Started {
    this.#env = new SQLEnvironment(this.data, { step_budget: budget });
    this.#seat = undefined;
    this.#last = this.#env.reset(which);
    const question = this.#opened(this.#env.reveal());
    return { question, observation: this.#last, schema: schemaOf(this.#env), budget };
  }

  /** A person's move; whoever played before has lost the thread. */
  act(action: SQLAction): Stepped {
    this.#seat = undefined;
    return this.#step(action, null, null);
  }

  async move(choice: PlayerChoice): Promise<Calls["move"]["give"]> {
    const key = JSON.stringify(choice);
    const question = this.#playing.reveal();
    let restarted: Started | null = null;
    if (this.#seat?.key !== key) {
      if (this.#last!.step_count > 0) restarted = this.#again();
      const player = choice.name === "model" ? this.#model(choice) : SCRIPTED[choice.name]();
      this.#seat = { key, turn: player.start({ seed: choice.seed, question }) };
    }
    const seat = this.#seat;
    const move = await seat.turn(this.#last!);
    const isLate = seat !== this.#seat; // another episode began while it was thinking
    if (!move || isLate) return { restarted: isLate ? null : restarted, stepped: null };
    const { action, text = null, parse_error = null } = move;
    return { restarted, stepped: this.#step(action, text, parse_error?.message ?? null) };
  }

  reveal(): Gold {
    const { gold_sql, gold_answer } = this.#playing.reveal();
    return { sql: gold_sql, answer: gold_answer };
  }

  get #playing(): SQLEnvironment {
    if (!this.#env) throw new UsageError({ what: "no episode is running" });
    return this.#env;
  }

  #again(): Started {
    const env = this.#playing;
    return this.reset({ question_id: env.reveal().question_id, budget: env.step_budget });
  }

  #step(action: SQLAction, text: string | null, parse_error: string | null): Stepped {
    const env = this.#playing;
    const observation = env.step(action);
    this.#last = observation;
    const step: StepRecord = { action, text, parse_error, observation, reward_breakdown: observation.reward_breakdown };
    return { step, outcome: env.outcome, gold: observation.done ? this.reveal() : null };
  }

  #opened({ question_id, question_text, database_name, difficulty, split }: QuestionRecord): OpenQuestion {
    const seen = this.#trained.has(database_name);
    return { question_id, question_text, database_name, difficulty, split, seen };
  }
}

/** The tables as a person may want to see them, whether or not a player has. */
function schemaOf({ database }: SQLEnvironment): SchemaTable[] {
  return database.tables.map((table) => ({
    name: table.name,
    kind: table.kind,
    rows: database.rowCount(table),
    columns: table.columns.map(({ name, type, primary_key }) => {
      const reference = table.foreign_keys.find(({ column }) => column === name);
      const target = reference && `→ ${reference.table}.${reference.references}`;
      return { name, type: type ?? "", note: [primary_key ? "key" : "", target ?? ""].filter(Boolean).join(" ") };
    }),
  }));
}
