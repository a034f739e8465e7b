// Checks the examples: the real environment gives the same observations and accepts their answers.
import { beforeAll, expect, test } from "vitest";
import { assemble, type DataSet } from "../../data/index.ts";
import { DEFAULT_RULES, GUIDED_RULES, parseAction, rulesId, SQLEnvironment } from "../../env/index.ts";
import { createDatabase, DatabasePool, loadSqlite, type NewTable } from "../../sql/index.ts";
import { bundledDataSet } from "../../worlds/index.ts";
import { wordsOf } from "./prompt.ts";
import { shotsFor, shotTurns } from "./shots.ts";

/** A table that the question does not need. */
const other = (name: string): NewTable => ({
  name,
  ddl: `CREATE TABLE ${name} (id INTEGER PRIMARY KEY, note TEXT)`,
  rows: [],
});

const DATABASES: Readonly<Record<string, readonly NewTable[]>> = {
  sleds: [
    other("dog"),
    {
      name: "musher",
      ddl: "CREATE TABLE musher (musher_id INTEGER PRIMARY KEY, musher_name TEXT, valley_id INTEGER REFERENCES valley (valley_id))",
      rows: [
        [1, "Ilka Brandt", 1],
        [2, "Tor Vey", 2],
        [3, "Masha Quill", 1],
        [4, "Per Odal", 3],
      ],
    },
    {
      name: "sled_run",
      ddl: "CREATE TABLE sled_run (run_id INTEGER PRIMARY KEY, musher_id INTEGER REFERENCES musher (musher_id), miles INTEGER, dogs INTEGER)",
      rows: [
        [1, 1, 22, 6],
        [2, 2, 30, 8],
        [3, 3, 14, 5],
        [4, 1, 25, 6],
        [5, 2, 15, 8],
        [6, 4, 18, 7],
      ],
    },
    other("sponsor"),
    {
      name: "valley",
      ddl: "CREATE TABLE valley (valley_id INTEGER PRIMARY KEY, valley_name TEXT, height INTEGER)",
      rows: [
        [1, "Birchfold", 410],
        [2, "Cold Ridge", 890],
        [3, "Ossel", 120],
      ],
    },
  ],
  tremors: [
    other("crew"),
    other("repair"),
    {
      name: "seismograph",
      ddl: "CREATE TABLE seismograph (id INTEGER PRIMARY KEY, bedrock TEXT, installed INTEGER)",
      rows: [
        [1, "Granite", 1998],
        [2, "Basalt", 2004],
        [3, "Granite", 2011],
      ],
    },
    {
      name: "tremor",
      ddl: "CREATE TABLE tremor (tremor_id INTEGER PRIMARY KEY, station INTEGER REFERENCES seismograph (id), strength REAL)",
      rows: [
        [1, 1, 2.4],
        [2, 1, 3.6],
        [3, 2, 4.1],
        [4, 3, 3.2],
        [5, 3, 1.9],
      ],
    },
    other("volcano"),
  ],
  honey: [
    other("beekeeper"),
    other("hive"),
    {
      name: "honey_harvest",
      ddl: "CREATE TABLE honey_harvest (harvest_id INTEGER PRIMARY KEY, apiary_id INTEGER REFERENCES apiary (apiary_id), kilos REAL)",
      rows: [[1, 1, 12.5]],
    },
    {
      name: "apiary",
      ddl: "CREATE TABLE apiary (apiary_id INTEGER PRIMARY KEY, name TEXT, metres INTEGER)",
      rows: [
        [1, "Kestrel Field", 1080],
        [2, "Low Mill", 240],
        [3, "Thornhead", 930],
        [4, "Upper Sorrel", 1310],
        [5, "Reed Bank", 610],
      ],
    },
  ],
};

const GOLDS: readonly (readonly [string, string])[] = [
  ["honey", "SELECT name FROM apiary WHERE metres > 900 ORDER BY metres DESC"],
  [
    "tremors",
    "SELECT count(*) FROM tremor JOIN seismograph ON station = seismograph.id WHERE bedrock = 'Granite' AND strength > 3",
  ],
  [
    "sleds",
    "SELECT valley_name, sum(miles) FROM sled_run JOIN musher USING (musher_id) JOIN valley USING (valley_id) GROUP BY 1",
  ],
];

let data: DataSet;
beforeAll(async () => {
  await loadSqlite();
  const read = (name: string) => createDatabase(DATABASES[name]!);
  const drafts = shotsFor(3, DEFAULT_RULES).map(({ question: question_text }, i) => {
    const [database_name, gold_sql] = GOLDS[i]!;
    return { question_text, database_name, gold_sql, split: "train" as const };
  });
  data = await assemble("examples", drafts, new DatabasePool({ names: Object.keys(DATABASES), read }), { file: read });
});

const HINTED_ONE_BY_ONE = { ...GUIDED_RULES, describe_many: false };
const played = [DEFAULT_RULES, HINTED_ONE_BY_ONE, GUIDED_RULES].flatMap((rules) =>
  ([1, 3] as const).flatMap((count) =>
    Array.from({ length: count }, (_, number) => [rulesId(rules), number + 1, count, rules] as const),
  ),
);
test.each(played)("by the rules %s, example %i of %i matches the environment", (_, number, count, rules) => {
  const shot = shotsFor(count, rules)[number - 1]!;
  const { question_id } = data.questions.find(({ question_text }) => question_text === shot.question)!;
  const env = new SQLEnvironment(data, rules);
  let observation = env.reset({ question_id });
  for (const { seen, action } of shotTurns(shot)) {
    const { question, result, error, error_class, step_count, budget_remaining, done } = observation;
    expect({ ...seen, schema_info: "" }).toEqual({
      ...{ question, result, error, error_class, step_count, budget_remaining, done, schema_info: "" },
    });
    if (step_count === 0) expect(seen.schema_info).toBe(observation.schema_info);
    expect(parseAction(wordsOf(action))).toEqual({ action, error: null });
    observation = env.step(action);
  }
  expect(env.outcome).toMatchObject({ correctness: 1, done_reason: "answered" });
});

test("one example has two looks and a corrected error; three cover a value, a list and a table", () => {
  const [one] = shotsFor(1, DEFAULT_RULES);
  expect(one!.steps.map(({ action: { action_type }, error }) => (error ? "error" : action_type))).toEqual([
    ...["DESCRIBE", "DESCRIBE", "error", "DESCRIBE", "QUERY", "ANSWER"],
  ]);
  expect(data.questions.map(({ answer_type }) => answer_type).sort()).toEqual(["integer", "list", "table"]);
  const last = shotsFor(3, { ...DEFAULT_RULES, answer_last: true });
  expect(last.map(({ steps }) => steps.at(-1)!.action.argument)).toEqual(["@last", "@last", "@last"]);
});

test("no example is about a bundled database", () => {
  const tables = new Set(shotsFor(3, DEFAULT_RULES).flatMap(({ tables }) => tables.split(", ")));
  const { databases } = bundledDataSet();
  for (const name of databases.names)
    for (const table of databases.get(name).tables) expect(tables.has(table.name.toLowerCase())).toBe(false);
  databases.close();
});
