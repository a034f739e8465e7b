// Plays episodes in the worker: the data set, the environment and the current player.

import { UsageError } from "../../../errors.ts";
import type { DataSet, QuestionRecord } from "../../../gym/data/index.ts";
import { generateDataSet } from "../../../gym/datasets.ts";
import { type SQLAction, SQLEnvironment, type SQLObservation } from "../../../gym/env/index.ts";
import type { StepRecord } from "../../../gym/evaluation/index.ts";
import type { Player, Policy } from "../../../gym/players/index.ts";
import { SCRIPTED_PLAYERS } from "../../../gym/players/index.ts";
import { rowsOf, schemaOf } from "./schema-tables.ts";
import type {
  Calls,
  DataChoice,
  Gold,
  OpenQuestion,
  PlayerChoice,
  Started,
  Stepped,
  TableRows,
} from "./worker-protocol.ts";

/** Databases of a practice set with (seen) and without training questions; generated in about a second. */
const PRACTICE_SIZES = { seen: 16, unseen: 8 } as const;

/** Generates a data set; the bundled one takes about a second. */
export function makeDataSet({ kind, seed }: DataChoice): Promise<DataSet> {
  return generateDataSet(kind, { seed, ...PRACTICE_SIZES });
}

/** One episode at a time, played by a person or a player. */
export class EpisodeRunner {
  readonly #model: (choice: PlayerChoice) => Player;
  #data: DataSet | undefined;
  #seen = new Set<string>();
  #env: SQLEnvironment | undefined;
  #last: SQLObservation | undefined;
  #revealed = false;
  /** The player that took every step of this episode. */
  #player: { readonly key: string; readonly policy: Policy } | undefined;

  /** `model` makes the player that samples from the loaded language model. */
  constructor(model: (choice: PlayerChoice) => Player) {
    this.#model = model;
  }

  get data(): DataSet {
    if (!this.#data) throw new UsageError({ what: "no data set is open" });
    return this.#data;
  }

  async open(choice: DataChoice): Promise<Calls["open"]["result"]> {
    this.#data = await makeDataSet(choice);
    this.#env = undefined;
    const { questions } = this.#data;
    this.#seen = new Set(questions.filter(({ split }) => split === "train").map((q) => q.database_name));
    return { questions: questions.map((question) => this.#withoutGold(question)) };
  }

  reset({ budget, ...which }: Calls["reset"]["params"]): Started {
    this.#env = new SQLEnvironment(this.data, { step_budget: budget });
    this.#player = undefined;
    this.#revealed = false;
    this.#last = this.#env.reset(which);
    const question = this.#withoutGold(this.#env.reveal());
    return { question, observation: this.#last, schema: schemaOf(this.#env.database), budget };
  }

  /** A person's step; a player that was playing has to start over. */
  act(action: SQLAction): Stepped {
    this.#player = undefined;
    return this.#step(action, null, null);
  }

  async playStep(choice: PlayerChoice): Promise<Calls["playStep"]["result"]> {
    const key = JSON.stringify(choice);
    const question = this.#environment.reveal();
    let restarted: Started | null = null;
    if (this.#player?.key !== key) {
      if (this.#last!.step_count > 0) restarted = this.#restart();
      const player = choice.name === "model" ? this.#model(choice) : SCRIPTED_PLAYERS[choice.name]();
      this.#player = { key, policy: player.start({ seed: choice.seed, question }) };
    }
    const current = this.#player;
    const decision = await current.policy(this.#last!);
    const isLate = current !== this.#player; // another episode started in the meantime
    if (!decision || isLate) return { restarted: isLate ? null : restarted, stepped: null };
    const { action, text = null, parse_error = null } = decision;
    return { restarted, stepped: this.#step(action, text, parse_error?.message ?? null) };
  }

  /** Forgets the current player, whose model may be gone; another one starts the episode over. */
  forgetPlayer(): void {
    this.#player = undefined;
  }

  reveal(): Gold {
    const { gold_sql, gold_answer } = this.#environment.reveal();
    this.#revealed = true;
    return { sql: gold_sql, answer: gold_answer };
  }

  /**
   * Rows of a table for the database view; refused before the episode ends, since players must explore by themselves.
   */
  browse({ table: name, offset }: Calls["browse"]["params"]): TableRows {
    const { database } = this.#environment;
    if (!this.#last!.done && !this.#revealed)
      throw new UsageError({ what: "the database can be browsed after the end of the episode" });
    const rows = rowsOf(database, name, offset);
    if (!rows) throw new UsageError({ what: "no such table", value: name });
    return rows;
  }

  get #environment(): SQLEnvironment {
    if (!this.#env) throw new UsageError({ what: "no episode is running" });
    return this.#env;
  }

  #restart(): Started {
    const env = this.#environment;
    return this.reset({ question_id: env.reveal().question_id, budget: env.step_budget });
  }

  #step(action: SQLAction, text: string | null, parse_error: string | null): Stepped {
    const env = this.#environment;
    const observation = env.step(action);
    this.#last = observation;
    const step: StepRecord = { action, text, parse_error, observation, reward_breakdown: observation.reward_breakdown };
    return { step, outcome: env.outcome, gold: observation.done ? this.reveal() : null };
  }

  #withoutGold({ question_id, question_text, database_name, difficulty, split }: QuestionRecord): OpenQuestion {
    const seen = this.#seen.has(database_name);
    return { question_id, question_text, database_name, difficulty, split, seen };
  }
}
