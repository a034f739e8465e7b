import { expect, test } from "vitest";
import { assemble, type DataSet } from "../../gym/data/index.ts";
import { type EnvironmentRules, SQLEnvironment } from "../../gym/env/index.ts";
import { playEpisode } from "../../gym/evaluation/index.ts";
import { parseModelOutput } from "../../gym/players/index.ts";
import { createDatabase, DatabasePool, loadSqlite } from "../../gym/sql/index.ts";
import { groupMetrics } from "../episode-metrics.ts";
import type { Episode } from "../run/records.ts";
import { behaviourMetrics } from "./behaviour-metrics.ts";

/** A database with four tables and one question about it. */
async function farm(): Promise<DataSet> {
  await loadSqlite();
  const tables = ["cow", "barn", "field", "tool"].map((name) => ({
    name,
    ddl: `CREATE TABLE ${name} (id INTEGER PRIMARY KEY, name TEXT)`,
    rows: [
      [1, "Ada"],
      [2, "Bo"],
    ],
  }));
  const read = () => createDatabase(tables);
  const question = { question_text: "Names of the cows?", gold_sql: "SELECT name FROM cow", database_name: "farm" };
  const pool = new DatabasePool({ names: ["farm"], read });
  return assemble("farm", [{ ...question, split: "train" }], pool, { file: read });
}

/** An episode in which the model writes these turns. */
async function played(
  data: DataSet,
  turns: readonly string[],
  rules: Partial<EnvironmentRules> = {},
  truncated = false,
) {
  const env = new SQLEnvironment(data, { step_budget: 6, ...rules });
  const left = [...turns];
  const start = () => () => {
    const text = left.shift();
    return text === undefined ? null : { action: parseModelOutput(text), text };
  };
  const record = await playEpisode(env, { name: "script", start }, { question: data.questions[0]! });
  return { ...record, messages: [], segments: [], completion_tokens: 1, truncated } satisfies Episode;
}

const RIGHT = ["DESCRIBE: cow", "QUERY: SELECT name FROM cow", "ANSWER: Ada, Bo"];

test("behaviour of real episodes", async () => {
  const data = await farm();
  const metrics = async (...episodes: readonly Promise<Episode>[]) => behaviourMetrics(await Promise.all(episodes));
  const right = played(data, RIGHT);
  expect(await metrics(right)).toEqual({
    "actions/early_last_rate": 0,
    "episodes/describes_everything": 0,
    "episodes/repeats_to_the_end": 0,
    "episodes/answer_cut_off": 0,
    "episodes/answer_miscopied": 0,
  });

  const looks = ["cow", "barn", "field"].map((table) => `DESCRIBE: ${table}`);
  const looking = played(data, [...looks, ...RIGHT.slice(1)]);
  const inOne = played(data, [`DESCRIBE: cow, barn, field, tool`, ...RIGHT.slice(1)], { describe_many: true });
  expect((await metrics(looking, right))["episodes/describes_everything"]).toBe(0.5);
  expect((await metrics(inOne))["episodes/describes_everything"]).toBe(0); // two of its three actions are others

  const failing = Array.from({ length: 6 }, () => "QUERY: SELECT colour FROM cow");
  expect((await metrics(played(data, failing), right))["episodes/repeats_to_the_end"]).toBe(0.5);
  expect((await metrics(played(data, failing, { end_after_failures: 3 })))["episodes/repeats_to_the_end"]).toBe(1);
  const trying = Array.from({ length: 6 }, (_, i) => `QUERY: SELECT ${i} FROM cow`);
  expect((await metrics(played(data, trying)))["episodes/repeats_to_the_end"]).toBe(0);

  const early = played(data, ["ANSWER: @last", ...RIGHT.slice(1)], { answer_last: true });
  expect((await metrics(early))["actions/early_last_rate"]).toBeCloseTo(1 / 3);
  expect((await metrics(played(data, ["QUERY:", ...RIGHT])))["actions/early_last_rate"]).toBe(0); // empty, not early

  const miscopied = played(data, [...RIGHT.slice(0, 2), "ANSWER: Ada"]);
  expect((await metrics(miscopied))["episodes/answer_miscopied"]).toBe(1);
  expect((await metrics(played(data, ["ANSWER: Ada"])))["episodes/answer_miscopied"]).toBe(0); // never queried
  expect((await metrics(played(data, RIGHT, {}, true)))["episodes/answer_cut_off"]).toBe(1);
  expect((await metrics(played(data, RIGHT.slice(0, 2), {}, true)))["episodes/answer_cut_off"]).toBe(0);
});

test("groups are uniform where all scored episodes are right, or all wrong", () => {
  const group = (...verdicts: readonly (0 | 1 | null)[]) =>
    verdicts.map((correctness) => ({ correctness, steps: [], step_count: 0 }) as unknown as Episode);
  const three = [...group(1, 1, null), ...group(0, 0, 0), ...group(0, 1, 0), ...group(null, null, null)];
  const metrics = groupMetrics(three, 3);
  expect(metrics["groups/all_right"]).toBeCloseTo(1 / 3);
  expect(metrics["groups/all_wrong"]).toBeCloseTo(1 / 3);
  expect("groups/all_right" in groupMetrics(group(null, null), 2)).toBe(false);
});
