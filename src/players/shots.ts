// Example episodes, written by hand on databases that no data set has. What the environment says in them is checked against the
// real environment by a test; how the turns are worded is the prompt's business.
import type { EnvironmentRules, SQLAction } from "../env/index.ts";
import type { Shown } from "./shown.ts";

export interface ShotStep {
  readonly action: SQLAction;
  /** What the environment shows; the answer's step shows nothing. */
  readonly result?: string;
  readonly error?: string;
  /** What the error adds by the rule `error_hints`. */
  readonly hint?: string;
}

export interface Shot {
  readonly question: string;
  /** The tables' names as the first observation lists them. */
  readonly tables: string;
  readonly steps: readonly ShotStep[];
}

const BUDGET = 10;

const describe = (table: string, result: string): ShotStep => ({
  action: { action_type: "DESCRIBE", argument: table },
  result,
});
const query = (sql: string, shown: Omit<ShotStep, "action">): ShotStep => ({
  action: { action_type: "QUERY", argument: sql },
  ...shown,
});
const answer = (argument: string): ShotStep => ({ action: { action_type: "ANSWER", argument } });

/** A table with two columns, after a join that failed at first. */
const TABLE: Shot = {
  question: "How many miles were run in total by the mushers of each home valley? Give the valley and the miles.",
  tables: "musher, sled_run",
  steps: [
    describe("musher", "musher: 4 rows\nmusher_id INTEGER primary key\nname TEXT\nhome_valley TEXT"),
    describe(
      "sled_run",
      "sled_run: 6 rows\nrun_id INTEGER primary key\nmusher_id INTEGER -> musher.musher_id\nmiles INTEGER\ndogs INTEGER",
    ),
    query("SELECT home_valley, SUM(miles) FROM sled_run GROUP BY home_valley", {
      error: "no such column: home_valley",
      hint: "; did you mean musher.home_valley? musher is not in FROM; columns: sled_run(run_id, musher_id, miles, dogs)",
    }),
    query(
      "SELECT m.home_valley, SUM(r.miles) FROM musher AS m JOIN sled_run AS r ON r.musher_id = m.musher_id GROUP BY m.home_valley",
      { result: "home_valley | SUM(r.miles)\nBirchfold | 61\nCold Ridge | 45\nOssel | 18" },
    ),
    answer("Birchfold | 61\nCold Ridge | 45\nOssel | 18"),
  ],
};

/** A single value; rows are looked at before a text is compared. */
const VALUE: Shot = {
  question: "How many tremors stronger than 3 were recorded by seismographs on granite?",
  tables: "seismograph, tremor",
  steps: [
    describe(
      "tremor",
      "tremor: 5 rows\ntremor_id INTEGER primary key\nstation INTEGER -> seismograph.id\nstrength REAL",
    ),
    describe("seismograph", "seismograph: 3 rows\nid INTEGER primary key\nbedrock TEXT\ninstalled INTEGER"),
    {
      action: { action_type: "SAMPLE", argument: "seismograph" },
      result: "id | bedrock | installed\n1 | Granite | 1998\n2 | Basalt | 2004\n3 | Granite | 2011",
    },
    query(
      "SELECT COUNT(*) FROM tremor AS t JOIN seismograph AS s ON t.station = s.id WHERE s.bedrock = 'Granite' AND t.strength > 3",
      { result: "COUNT(*)\n2" },
    ),
    answer("2"),
  ],
};

/** A list, in order. */
const LIST: Shot = {
  question: "Which apiaries are above 900 metres? Give their names, the highest first.",
  tables: "apiary, honey_harvest",
  steps: [
    describe("apiary", "apiary: 5 rows\napiary_id INTEGER primary key\nname TEXT\nmetres INTEGER"),
    query("SELECT name FROM apiary WHERE metres > 900 ORDER BY metres DESC", {
      result: "name\nUpper Sorrel\nKestrel Field\nThornhead",
    }),
    answer("Upper Sorrel, Kestrel Field, Thornhead"),
  ],
};

/** How many examples there can be. */
export const SHOT_COUNTS = [0, 1, 3] as const;
export type ShotCount = (typeof SHOT_COUNTS)[number];

/** The one with a repaired error is the last of three, nearest to the question, and the only one of one. */
const SHOTS: Readonly<Record<ShotCount, readonly Shot[]>> = { 0: [], 1: [TABLE], 3: [VALUE, LIST, TABLE] };

/** The examples as they go by the environment's rules. */
export function shotsFor(count: ShotCount, { answer_last, error_hints }: EnvironmentRules): readonly Shot[] {
  const byRules = (step: ShotStep): ShotStep => {
    if (answer_last && step.action.action_type === "ANSWER") return answer("@last");
    return error_hints && step.hint ? { ...step, error: `${step.error}${step.hint}` } : step;
  };
  return SHOTS[count].map((shot) => ({ ...shot, steps: shot.steps.map(byRules) }));
}

/** Each action of an example, with what it follows upon. */
export function shotTurns({ question, tables, steps }: Shot): { seen: Shown; action: SQLAction }[] {
  return steps.map(({ action }, i) => {
    const { result = "", error = null } = i === 0 ? {} : steps[i - 1]!;
    const counts = { step_count: i, budget_remaining: BUDGET - i, done: false };
    const error_class = error === null ? null : ("unknown_column" as const);
    return { seen: { question, schema_info: tables, result, error, error_class, ...counts }, action };
  });
}
