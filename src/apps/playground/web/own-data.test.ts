// A visitor's own data without a browser: files, refusals, answers and written questions.
import { beforeAll, describe, expect, test } from "vitest";
import { readDamaged } from "../../../../test/helpers/damaged-files.ts";
import { DEFAULT_RULES, type SQLAction } from "../../../gym/env/index.ts";
import type { Player } from "../../../gym/players/index.ts";
import { createDatabase, loadSqlite } from "../../../gym/sql/index.ts";
import { OwnData } from "./own-data.ts";
import type { WorkerEvent } from "./worker-protocol.ts";

const PLANETS = `name,kind,radius km,has rings
Mercury,rocky,2440,no
Venus,rocky,6052,no
Jupiter,gas giant,69911,yes
Saturn,gas giant,58232,yes
Neptune,ice giant,24622,yes
`;
const planets = () => new File([PLANETS], "planets.csv");

beforeAll(() => loadSqlite());

/** A player that takes these actions. */
function playing(...actions: SQLAction[]): Player {
  return {
    name: "told",
    start: () => {
      const left = [...actions];
      return () => {
        const action = left.shift();
        return action ? { action } : null;
      };
    },
  };
}

function asking(player: Player, sampler = player) {
  const events: WorkerEvent[] = [];
  const abort = new AbortController();
  const emit = (event: WorkerEvent) => void events.push(event);
  return { events, abort, who: { player, sampler, rules: DEFAULT_RULES, signal: abort.signal, emit } };
}

const query = (argument: string): SQLAction => ({ action_type: "QUERY", argument });
const answer = (argument: string): SQLAction => ({ action_type: "ANSWER", argument });

test("CSV files are tables with rows to look at", async () => {
  const data = await OwnData.open([planets(), new File(["moon,planet\nIo,Jupiter\nTitan,Saturn\n"], "moons.csv")]);
  const { name, schema } = data.facts;
  expect([name, ...schema.map((table) => `${table.name} ${table.rows}`)]).toEqual(["tables", "planets 5", "moons 2"]);
  expect(schema[1]!.columns[1]).toMatchObject({ name: "planet", target: { table: "planets", column: "name" } });
  expect(data.browse("moons", 1)).toEqual({ rows: [["Titan", "Saturn"]], error: null });
  expect(data.browse("sun", 0)).toEqual({ rows: [], error: "no such table: sun" });
  data.close();
});

test("an answer comes with its query, result, steps and the share of samples that agree", async () => {
  const data = await OwnData.open([planets()]);
  const sql = "SELECT name FROM planets WHERE kind = 'rocky'";
  const { events, who } = asking(playing(query(sql), answer("Mercury, Venus")));
  const told = await data.ask({ question: "Which planets are rocky?", samples: 2 }, who);
  expect(told).toEqual({
    answer: "Mercury, Venus",
    sql,
    result: { columns: ["name"], rows: [["Mercury"], ["Venus"]], more: 0 },
    agreement: "2 of 2 samples agree",
    unsure: null,
    others: [],
  });
  expect(events.map(({ event }) => event)).toEqual(["asked", "askStep", "askStep", "askSample", "askSample"]);

  const guess = asking(playing(answer("Pluto")), playing(query(sql), answer("Venus")));
  expect(await data.ask({ question: "Which is the smallest?", samples: 1 }, guess.who)).toMatchObject({
    ...{ answer: "Pluto", sql: null, result: null, agreement: "0 of 1 sample agree" },
    unsure: { reason: "not_in_results" },
    others: [{ answer: "Venus", samples: 1 }],
  });
  await expect(data.ask({ question: " ", samples: 0 }, guess.who)).rejects.toThrow("the question is empty");
  data.close();
});

test("a question can be stopped", async () => {
  const data = await OwnData.open([planets()]);
  const waits: Player = { name: "slow", start: () => () => new Promise(() => abort.abort(new Error("stopped"))) };
  const { abort, who } = asking(waits);
  await expect(data.ask({ question: "Why?", samples: 0 }, who)).rejects.toThrow("stopped");
  data.close();
});

test.skipIf(!process.env.SQLENV_TEST_ALL)(
  "questions are written, some of them for tests, and are a data set",
  async () => {
    const data = await OwnData.open([planets()]);
    expect(() => data.data).toThrow("no questions are written yet");
    const made = data.write();
    const { questions, databases } = data.data;
    expect(made.train + made.eval).toBe(questions.length);
    expect(made.eval).toBeGreaterThan(0);
    expect(questions.find(({ question_id }) => question_id === made.watched)).toMatchObject({ split: "eval" });
    for (const text of made.examples)
      expect(questions.find(({ question_text }) => question_text === text)).toMatchObject({ difficulty: "easy" });
    expect(databases.get("planets").run(questions[0]!.gold_sql).ok).toBe(true);
    data.close();
  },
);

function sized(name: string, size: number): File {
  return Object.defineProperty(new File(["a,b\n1,2"], name), "size", { value: size });
}

function damaged(): File {
  const rows = Array.from({ length: 400 }, (_, i) => [i, `word ${i}`]);
  const bytes = createDatabase([{ name: "item", ddl: "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)", rows }]);
  return new File([Uint8Array.from(bytes).fill(0xff, 4096, 8192)], "shop.db");
}

test.each<[string, () => File[], RegExp]>([
  ["no file", () => [], /^no file; choose/],
  ["an empty file", () => [new File([], "a.db")], /^the file is empty: a\.db/],
  [
    "a page of a web site",
    () => [new File(["<html>"], "shop.sqlite")],
    /not a SQLite database, or it is encrypted: shop/,
  ],
  ["a picture", () => [new File(["\u0089PNG"], "a.png")], /neither a SQLite database nor a CSV file: a\.png/],
  ["a damaged database", () => [damaged()], /^the database is damaged|malformed/],
  ["a database without tables", () => [new File([Uint8Array.from(createDatabase([]))], "none.db")], /no tables|empty/],
  ["a huge file", () => [sized("big.csv", 3e9)], /^more than 200 MB, which is the limit in a tab: 3000 MB; copy/],
  ["too many files", () => Array.from({ length: 101 }, planets), /^more than 100 files: 101/],
])("%s is refused with one line", async (_, files, line) => {
  await expect(OwnData.open(files())).rejects.toThrow(line);
  const message = await OwnData.open(files()).catch((error: Error) => error.message);
  expect(message).not.toContain("\n");
});

describe.skipIf(!process.env.SQLENV_TEST_ALL)("many damaged files", () => {
  const read = (name: string) => async (bytes: Uint8Array<ArrayBuffer>) => {
    const data = await OwnData.open([new File([bytes], name)]);
    for (const { name: table } of data.facts.schema) data.browse(table, 0);
    data.close();
  };

  test("are read or refused by an error of ours", { timeout: 120_000 }, async () => {
    const rows = Array.from({ length: 90 }, (_, i) => [i, `word ${i}`]);
    const ddl = "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)";
    await readDamaged("a visitor's database", createDatabase([{ name: "item", ddl, rows }]), read("shop.db"), 300);
  });
});
