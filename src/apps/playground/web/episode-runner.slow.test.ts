// The worker's episodes: rows of the database are shown only once the episode is over.
import { expect, test } from "vitest";
import { loadSqlite } from "../../../gym/sql/index.ts";
import { EpisodeRunner } from "./episode-runner.ts";

test("the database can be browsed after the end, not before", async () => {
  await loadSqlite();
  const runner = new EpisodeRunner(() => {
    throw new Error("no model");
  });
  await runner.open({ kind: "bundled", seed: 42 });
  const { schema } = runner.reset({ question_id: "vineyards_eval_009", budget: 10 });
  const wines = schema.find(({ name }) => name === "wines")!;
  expect(wines.columns[2]).toMatchObject({ name: "estate_id", target: { table: "estates", column: "estate_id" } });
  expect(() => runner.browse({ table: "wines", offset: 0 })).toThrow(/after the end/);
  runner.act({ action_type: "ANSWER", argument: "Limestone" });
  expect(runner.browse({ table: "WINES", offset: 0 }).rows).toHaveLength(20);
  const last = runner.browse({ table: "wines", offset: 40 });
  expect(last.rows).toHaveLength(8);
  expect(last.rows[0]).toHaveLength(wines.columns.length);
  expect(() => runner.browse({ table: "sqlite_master", offset: 0 })).toThrow(/no such table/);
  runner.reset({ question_id: "vineyards_eval_009", budget: 10 });
  expect(() => runner.browse({ table: "wines", offset: 0 })).toThrow(/after the end/);
  runner.reveal();
  expect(runner.browse({ table: "wines", offset: 0 }).error).toBeNull();
});
