// Runs a scripted GRPO step of a tiny model on the CPU: the episodes of `bench cuda`, and what a peer receives of them.
import { expect, test } from "vitest";
import { tinyModel } from "../../../test/helpers/tiny-model.ts";
import { loadSqlite } from "../../gym/sql/index.ts";
import { practiceSet } from "../../gym/worlds/practice/practice-set.ts";
import { LocalEngine } from "../../lm/engine/index.ts";
import { POLICY_LOSSES } from "../../rl/loss.ts";
import { CUDA_GRPO, measureGRPO } from "./cuda-grpo.ts";

test("every turn is padded to its length, and the episodes can be replayed", async () => {
  await loadSqlite();
  const config = { vocab_size: 1536, max_position_embeddings: 2048 };
  const engine = new LocalEngine(tinyModel({ config }), { losses: POLICY_LOSSES });
  const shape = { ...CUDA_GRPO, questions: 1, generations: 8 };
  const { result, played } = await measureGRPO(engine, practiceSet({ seed: 42, seen: 4, unseen: 1 }), 1, shape);
  expect(played).toHaveLength(8);
  for (const { tokens, sampled } of played) {
    for (const [from, to] of sampled) expect(to - from).toBeGreaterThanOrEqual(64);
    expect(sampled.at(-1)![1]).toBe(tokens.length);
  }
  expect(result.turns).toBe(24); // total over the eight scripts
  expect(result.sampled_tokens).toBeGreaterThanOrEqual(64 * 24);
  expect(result.tokens).toBe(played.reduce((sum, { tokens }) => sum + tokens.length, 0));
  expect(result.computed_tokens).toBeLessThan(result.tokens);
  expect(result.seconds.step).toBeGreaterThan(0);
  await engine.close();
});
