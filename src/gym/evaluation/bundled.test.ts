import { expect, test } from "vitest";
import { keywordPlayer, lookerPlayer, oraclePlayer, randomPlayer } from "../players/index.ts";
import { loadSqlite } from "../sql/index.ts";
import { bundledDataSet } from "../worlds/bundled.ts";
import { evaluate } from "./evaluate.ts";

test("on the bundled set players are ranked by what they know, and the oracle is always right", async () => {
  await loadSqlite();
  const data = bundledDataSet();
  const reports = [];
  for (const player of [randomPlayer(), lookerPlayer(), keywordPlayer(), oraclePlayer()]) {
    reports.push(await evaluate(data, player, { seed: 7 }));
  }
  const [random, looker, keyword, oracle] = reports;
  const rewards = reports.map(({ mean_reward }) => mean_reward!);
  expect(rewards).toEqual(rewards.toSorted((a, b) => a - b));
  expect(random!.success_rate).toBeLessThan(0.03);
  expect(looker!.success_rate).toBeLessThan(keyword!.success_rate! / 2);
  expect(keyword!.success_rate).toBeGreaterThan(0.2);
  expect(keyword!.success_rate).toBeLessThan(0.7);
  expect(oracle).toMatchObject({ success_rate: 1, errors: 0, invalid_rate: 0, repeat_rate: 0 });
  expect([oracle!.seen.episodes, oracle!.unseen.episodes]).toEqual([101, 102]);
});
