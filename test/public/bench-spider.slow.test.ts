// The benchmark on the real Spider: gold queries pass every measure, through the environment and with the schema given.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { unpack } from "sqlenv/gym/data/node";
import { executeGold, judge } from "sqlenv/gym/evaluation";
import { createDatabase, Database, loadSqlite } from "sqlenv/gym/sql";
import { beforeAll, describe, expect, test } from "vitest";
import type { BenchResult } from "../helpers/bench.ts";
import { sqlenvInside } from "../helpers/cli-process.ts";

const archive = fileURLToPath(new URL("../../../shared/data/spider_standard_163db.tar.xz", import.meta.url));
const IDS = "08ee7504c3f5e35cf2d06733cfd47ba13188b3b69e12e242297c5cd73c6c0f23";

describe.skipIf(!existsSync(archive))("the real Spider (skipped where ../shared/data is absent)", () => {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "sqlenv-bench-"));
    await unpack(archive, folder);
    return () => rmSync(folder, { recursive: true });
  });

  test.each([
    ["oracle", "unknown"],
    ["teacher", "unknown"],
    ["oracle", "given"],
  ])("%s, schema %s: all 917 questions are right", async (player, schema) => {
    const args = ["bench", "spider", "--data", folder, "--player", player, "--schema", schema, "--json"];
    const { stdout, code } = await sqlenvInside(args);
    expect(code).toBe(0);
    const { scores, data, questions, twins } = JSON.parse(stdout) as BenchResult;
    expect(data).toMatchObject({ questions: 917, databases: 19, eval_ids_sha256: IDS, ids_sha256: IDS });
    expect(questions.filter(({ reason }) => reason !== null)).toEqual([]);
    for (const measure of ["spider", "bird", "twins"] as const) expect(scores.all[measure]!.rate).toBe(1);
    expect(scores.all.answer?.rate).toBe(schema === "given" ? undefined : 1);
    expect(twins!.rejected).toBe(0);
    expect(twins!.without).toBeLessThan(20);
  });
});

test("a result above the row limit is wrong", async () => {
  await loadSqlite();
  const ddl = "CREATE TABLE t (a)";
  const database = new Database("t", createDatabase([{ name: "t", ddl, rows: [] }]));
  const long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT i FROM n";
  const verdict = judge(database, long, executeGold(database, "SELECT 1"));
  expect(verdict).toMatchObject({ spider: false, bird: false, error: { error_class: "too_large" } });
});
