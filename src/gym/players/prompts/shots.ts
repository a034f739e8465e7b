// Hand-written example episodes about databases that are in no data set. A test checks their observations against the
// real environment; the prompt formats the turns.
import { type EnvironmentRules, LAST_RESULT, type SQLAction } from "../../env/index.ts";
import type { Shown } from "./shown.ts";

export interface ShotStep {
  readonly action: SQLAction;
  /** The observation after the action; absent after an answer. */
  readonly result?: string;
  readonly error?: string;
}

export interface Shot {
  readonly question: string;
  /** The table names as the first observation lists them. */
  readonly tables: string;
  readonly steps: readonly ShotStep[];
}

/** An example whose steps depend on the rules. */
type Script = Omit<Shot, "steps"> & { readonly play: (rules: EnvironmentRules) => readonly ShotStep[] };

const BUDGET = 10;

/** Describes tables, in a single action if the rules allow it. */
function describe({ describe_many }: EnvironmentRules, tables: Readonly<Record<string, string>>): ShotStep[] {
  const names = Object.keys(tables);
  const step = (argument: string, result: string): ShotStep => ({
    action: { action_type: "DESCRIBE", argument },
    result,
  });
  if (describe_many) return [step(names.join(", "), Object.values(tables).join("\n\n"))];
  return names.map((name) => step(name, tables[name]!));
}

const query = (sql: string, shown: { readonly result: string } | { readonly error: string }): ShotStep => ({
  action: { action_type: "QUERY", argument: sql },
  ...shown,
});
const answer = ({ answer_last }: EnvironmentRules, text: string): ShotStep => ({
  action: { action_type: "ANSWER", argument: answer_last ? LAST_RESULT : text },
});

// Models copy the order of the steps rather than the rules. So the examples choose tables by the question, not by their
// position in the list, and only the ones it needs.

const SLEDS = {
  sled_run:
    "sled_run: 6 rows\nrun_id INTEGER primary key\nmusher_id INTEGER -> musher.musher_id\nmiles INTEGER\ndogs INTEGER",
  musher: "musher: 4 rows\nmusher_id INTEGER primary key\nmusher_name TEXT\nvalley_id INTEGER -> valley.valley_id",
};
const VALLEY = { valley: "valley: 3 rows\nvalley_id INTEGER primary key\nvalley_name TEXT\nheight INTEGER" };

const milesOfEachValley = (rules: EnvironmentRules): ShotStep[] => [
  query(
    "SELECT v.valley_name, SUM(r.miles) FROM sled_run AS r JOIN musher AS m ON r.musher_id = m.musher_id JOIN valley AS v ON m.valley_id = v.valley_id GROUP BY v.valley_id",
    { result: "valley_name | SUM(r.miles)\nBirchfold | 61\nCold Ridge | 45\nOssel | 18" },
  ),
  answer(rules, "Birchfold | 61\nCold Ridge | 45\nOssel | 18"),
];

/** Answers with two columns, joining three tables that are all described first. */
const TABLE: Script = {
  question:
    "How many miles were run in total by the mushers of each valley? Give the name of the valley and the miles.",
  tables: "dog, musher, sled_run, sponsor, valley",
  play: (rules) => [...describe(rules, { ...SLEDS, ...VALLEY }), ...milesOfEachValley(rules)],
};

/** Like TABLE, but finds one of the tables only after a query has failed. */
const REPAIRED: Script = {
  ...TABLE,
  play: (rules) => [
    ...describe(rules, SLEDS),
    query("SELECT valley, SUM(miles) FROM musher JOIN sled_run USING (musher_id) GROUP BY valley", {
      error: `no such column: valley${
        rules.error_hints
          ? "; DESCRIBE valley first; columns: musher(musher_id, musher_name, valley_id), sled_run(run_id, musher_id, miles, dogs)"
          : ""
      }`,
    }),
    ...describe(rules, VALLEY),
    ...milesOfEachValley(rules),
  ],
};

/** Answers with a single value from two tables; samples rows before it compares text. */
const VALUE: Script = {
  question: "How many tremors stronger than 3 were recorded by seismographs on granite?",
  tables: "crew, repair, seismograph, tremor, volcano",
  play: (rules) => [
    ...describe(rules, {
      tremor: "tremor: 5 rows\ntremor_id INTEGER primary key\nstation INTEGER -> seismograph.id\nstrength REAL",
      seismograph: "seismograph: 3 rows\nid INTEGER primary key\nbedrock TEXT\ninstalled INTEGER",
    }),
    {
      action: { action_type: "SAMPLE", argument: "seismograph" },
      result: "id | bedrock | installed\n1 | Granite | 1998\n2 | Basalt | 2004\n3 | Granite | 2011",
    },
    query(
      "SELECT COUNT(*) FROM tremor AS t JOIN seismograph AS s ON t.station = s.id WHERE s.bedrock = 'Granite' AND t.strength > 3",
      { result: "COUNT(*)\n2" },
    ),
    answer(rules, "2"),
  ],
};

/** Answers with an ordered list from one table. */
const LIST: Script = {
  question: "Which apiaries are above 900 metres? Give their names, the highest first.",
  tables: "beekeeper, hive, honey_harvest, apiary",
  play: (rules) => [
    ...describe(rules, { apiary: "apiary: 5 rows\napiary_id INTEGER primary key\nname TEXT\nmetres INTEGER" }),
    query("SELECT name FROM apiary WHERE metres > 900 ORDER BY metres DESC", {
      result: "name\nUpper Sorrel\nKestrel Field\nThornhead",
    }),
    answer(rules, "Upper Sorrel, Kestrel Field, Thornhead"),
  ],
};

/** The available numbers of examples. */
export const SHOT_COUNTS = [0, 1, 3] as const;
export type ShotCount = (typeof SHOT_COUNTS)[number];

/**
 * One example shows the repair of an error. Three show that a question may need one, two or three tables; this order
 * gave the best results.
 */
const SHOTS: Readonly<Record<ShotCount, readonly Script[]>> = { 0: [], 1: [REPAIRED], 3: [LIST, VALUE, TABLE] };

/** The examples for the environment's rules, with a budget of BUDGET steps each. */
export function shotsFor(count: ShotCount, rules: EnvironmentRules): readonly Shot[] {
  return SHOTS[count].map(({ question, tables, play }) => ({ question, tables, steps: play(rules) }));
}

/** The actions of an example, each with the observation before it. */
export function shotTurns({ question, tables, steps }: Shot): { seen: Shown; action: SQLAction }[] {
  return steps.map(({ action }, i) => {
    const { result = "", error = null } = i === 0 ? {} : steps[i - 1]!;
    const counts = { step_count: i, budget_remaining: BUDGET - i, done: false };
    const error_class = error === null ? null : ("unknown_column" as const);
    return { seen: { question, schema_info: tables, result, error, error_class, ...counts }, action };
  });
}
