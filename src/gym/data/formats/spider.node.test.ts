import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import {
  birdFiles,
  petsDatabase,
  spiderFiles,
  temporaryFolder,
  writeFiles,
} from "../../../../test/helpers/data-files.ts";
import { normalizeSql } from "../../sql/index.ts";
import { unpack } from "../archives/unpack.node.ts";
import type { DataSet } from "../dataset.ts";
import { openDataSet } from "./open.node.ts";
import { loadBird, loadSpider } from "./spider.node.ts";
import { SPIDER10_DATABASES, spider10 } from "./spider10.node.ts";

function summary({ questions, rejected }: DataSet, split: "train" | "eval") {
  const ours = questions.filter((question) => question.split === split);
  const reasons: Record<string, number> = {};
  for (const { reason } of rejected.filter((one) => one.split === split)) reasons[reason] = (reasons[reason] ?? 0) + 1;
  return { usable: ours.length, databases: new Set(ours.map(({ database_name }) => database_name)).size, ...reasons };
}

test("Spider's folder: train and dev, strings in double quotes, all rejections counted", async () => {
  const folder = temporaryFolder();
  writeFiles(folder, await spiderFiles());
  const dataset = await loadSpider(folder);
  for (const split of ["train", "eval"] as const) {
    expect(summary(dataset, split)).toEqual({
      usable: 2,
      databases: 1,
      gold_empty: 1,
      gold_only_nulls: 1,
      gold_fails: 1,
      database_missing: 1,
    });
  }
  expect(dataset.questions.map(({ question_id, gold_answer }) => [question_id, gold_answer])).toEqual([
    ["pets_train_train_000", "3"],
    ["pets_train_train_001", "Paris"],
    ["pets_dev_eval_000", "3"],
    ["pets_dev_eval_001", "Paris"],
  ]);
  await expect(loadSpider(join(folder, "nowhere"))).rejects.toThrow(/lacks the expected files/);
});

test("BIRD's folder: evidence is appended to the question, its difficulty is kept, both halves or one", async () => {
  const folder = temporaryFolder();
  writeFiles(folder, await birdFiles());
  const both = await loadBird(folder);
  expect(
    both.questions.map(({ question_text, difficulty, split, database_name }) => [
      question_text,
      difficulty,
      split,
      database_name,
    ]),
  ).toEqual([
    ["How many pets? Hint: pets live in pet", "easy", "train", "pets"],
    ["How many pets?", "hard", "eval", "zoo"],
  ]);
  expect((await loadBird(join(folder, "dev"))).questions).toHaveLength(1);
  await expect(loadBird(join(folder, "dev/dev_databases"))).rejects.toThrow(/lacks the expected files/);
});

test("BIRD Mini-Dev and Spider-DK are evaluation questions", async () => {
  const folder = temporaryFolder();
  const pets = await petsDatabase();
  const [bird] = (await birdFiles())["dev/dev.json"] as object[];
  const asked = { db_id: "zoo", question: "How many?", query: "SELECT count(*) FROM pet" };
  writeFiles(folder, {
    "minidev/MINIDEV/mini_dev_sqlite.json": [{ ...bird, question_id: 1471 }],
    "minidev/MINIDEV/mini_dev_mysql.json": [],
    "minidev/MINIDEV/dev_databases/zoo/zoo.sqlite": pets,
    "dk/Spider-DK.json": [asked],
    "dk/tables.json": [{ db_id: "zoo" }],
    "dk/database/zoo/zoo.sqlite": pets,
  });
  for (const [name, layout] of [
    ["minidev", "bird"],
    ["dk", "spider"],
  ] as const) {
    const dataset = await openDataSet(join(folder, name));
    expect([dataset.layout, ...dataset.questions.map(({ split }) => split)]).toEqual([layout, "eval"]);
  }
});

test("spider10 has ten databases and splits their questions 473/203 by query", async () => {
  const folder = temporaryFolder();
  const pets = await petsDatabase();
  const pool = SPIDER10_DATABASES.flatMap((db_id) =>
    Array.from({ length: 20 }, (_, i) => ({
      db_id,
      question: `Q${i}?`,
      query: `SELECT count(*) + ${i >> 1} FROM pet`,
      split: "dev",
    })),
  );
  writeFiles(folder, {
    "pool.json": [...pool, { db_id: "zoo", question: "?", query: "SELECT 1" }],
    "database/zoo.sqlite": pets,
  });
  for (const name of SPIDER10_DATABASES) writeFiles(folder, { [`database/${name}/${name}.sqlite`]: pets });
  const dataset = await spider10(folder);
  expect(dataset.databases.names).toEqual(SPIDER10_DATABASES);
  expect([summary(dataset, "train").usable, summary(dataset, "eval").usable]).toEqual([140, 60]);
  expect(leaks(dataset)).toEqual([]);
  expect((await spider10(folder)).questions).toEqual(dataset.questions);
  expect((await spider10(folder, 7)).questions).not.toEqual(dataset.questions);
  const again = await spider10(await loadSpider(folder));
  expect(summary(again, "eval").usable).toBe(60);
});

/** Evaluation questions that share their gold query with a training question. */
function leaks({ questions }: DataSet): string[] {
  const key = (question: { database_name: string; gold_sql: string }) =>
    question.database_name + normalizeSql(question.gold_sql);
  const trained = new Set(questions.filter(({ split }) => split === "train").map(key));
  return questions
    .filter((question) => question.split === "eval" && trained.has(key(question)))
    .map(({ question_id }) => question_id);
}

const data = fileURLToPath(new URL("../../../../../shared/data", import.meta.url));
const [standard, ten] = [join(data, "spider_standard_163db.tar.xz"), join(data, "spider_sqlenv10.tar.xz")];

describe.skipIf(!existsSync(standard))("the real Spider (skipped where ../shared/data is absent)", () => {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "sqlenv-spider-"));
    await unpack(standard, folder);
    return () => rmSync(folder, { recursive: true });
  });

  test("gives 6,611 training questions on 138 databases and 917 on 19", async () => {
    const dataset = await loadSpider(folder);
    expect(summary(dataset, "train")).toEqual({
      usable: 6611,
      databases: 138,
      gold_empty: 254,
      gold_only_nulls: 10,
      gold_too_long: 26,
      gold_fails: 3,
      database_missing: 96,
    });
    expect(summary(dataset, "eval")).toEqual({
      usable: 917,
      databases: 19,
      gold_empty: 49,
      gold_only_nulls: 4,
      gold_too_long: 2,
      database_missing: 62,
    });
  });

  test("gives the ten databases' 676 questions, 473 to 203 of which 442 and 188 can be used, the same from the pool", async () => {
    const dataset = await spider10(folder);
    expect(summary(dataset, "train")).toEqual({ usable: 442, databases: 10, gold_empty: 29, gold_only_nulls: 2 });
    expect(summary(dataset, "eval")).toEqual({
      usable: 188,
      databases: 10,
      gold_empty: 11,
      gold_only_nulls: 2,
      gold_too_long: 2,
    });
    expect(leaks(dataset)).toEqual([]);
    const pool = temporaryFolder();
    await unpack(ten, pool);
    expect((await spider10(pool)).questions).toEqual(dataset.questions);
  });
});
