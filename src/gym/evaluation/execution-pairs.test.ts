// Compares both rules with the published evaluators, whose verdicts and versions are in test/reference/execution-pairs.json.
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { createDatabase, Database, loadSqlite } from "../sql/index.ts";
import { executeGold, judge } from "./accuracy/execution.ts";

interface Pair {
  readonly category: string;
  readonly gold: string;
  readonly predicted: string;
  readonly spider: boolean;
  readonly bird: boolean;
}

const file = new URL("../../../test/reference/execution-pairs.json", import.meta.url);
const { tables, pairs } = JSON.parse(readFileSync(file, "utf8")) as {
  tables: { name: string; sql: string }[];
  pairs: Pair[];
};

let database: Database;
beforeAll(async () => {
  await loadSqlite();
  const bytes = createDatabase(tables.map(({ name, sql }) => ({ name, ddl: sql, rows: [] })));
  database = new Database("pairs", bytes, { doubleQuotedStrings: true });
});

test("both rules agree with the published evaluators on every pair", () => {
  const differing = pairs.flatMap((pair) => {
    const { spider, bird } = judge(database, pair.predicted, executeGold(database, pair.gold));
    return spider === pair.spider && bird === pair.bird ? [] : [{ ...pair, ours: { spider, bird } }];
  });
  expect(differing).toEqual([]);
  expect(pairs.length).toBeGreaterThanOrEqual(300);
});

test("the pairs distinguish the rules, and right from wrong", () => {
  const count = (test: (pair: Pair) => boolean) => pairs.filter(test).length;
  expect(count(({ spider }) => spider)).toBeGreaterThan(100);
  expect(count(({ spider }) => !spider)).toBeGreaterThan(100);
  expect(count(({ spider, bird }) => spider && !bird)).toBeGreaterThan(20);
  expect(count(({ spider, bird }) => !spider && bird)).toBeGreaterThan(20);
});
