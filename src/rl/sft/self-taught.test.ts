import { beforeAll, expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import { type FineTuned, taughtModel, teach } from "../../../test/helpers/taught-model.ts";
import type { DataSet } from "../../gym/data/index.ts";
import { type GRPOConfigInput, resolveConfig } from "../config.ts";
import type { Episode } from "../run/records.ts";
import { encodeEpisode, selectEpisodes, selfTaughtRound } from "./self-taught.ts";
import { sftLearningRate } from "./sft.ts";

let data: DataSet;
let fineTuned: FineTuned;
beforeAll(async () => {
  data = await smallDataSet();
  fineTuned = await teach(data);
});

const SMALL: GRPOConfigInput = {
  ...{ max_new_tokens: 40, max_completion_length: 120, max_context_tokens: 500, step_budget: 3, seed: 3 },
  ...{ self_taught_rounds: 1, self_taught_samples: 8, self_taught_learning_rate: 3e-3 },
};

/** Teaches a fresh model one round after another. */
async function taught(rounds: number, given: GRPOConfigInput = {}, signal?: AbortSignal) {
  const model = taughtModel(fineTuned);
  const config = resolveConfig({ ...SMALL, ...given });
  try {
    const reports = [];
    for (let round = 1; round <= rounds; round++)
      reports.push(await selfTaughtRound(model, data, config, round, { ...(signal && { signal }) }));
    return { reports, weights: model.engine.model.device.read(model.engine.model.values) as Float32Array };
  } finally {
    await model.engine.close();
  }
}

test("rounds teach a model what it got right, the same way every time", async () => {
  const first = await taught(3);
  const [one, , three] = first.reports;
  expect(one).toMatchObject({ questions: 5, episodes: 40 });
  expect(one!.kept).toBeGreaterThan(0);
  expect(one!.kept).toBeLessThanOrEqual(Math.min(one!.right, 2 * one!.solved));
  expect(three!.right).toBeGreaterThan(one!.right + 4);
  const second = await taught(1);
  expect(second.reports).toEqual([one]);
  expect(second.weights).toEqual((await taught(1)).weights);
});

test("a round may ask some of the questions", async () => {
  const { reports } = await taught(1, { self_taught_questions: 4, self_taught_samples: 8 });
  expect(reports).toMatchObject([{ questions: 4, episodes: 32 }]);
});

test("if no episode is right, the error has a remedy and the model is unchanged", async () => {
  const model = taughtModel(fineTuned);
  const config = resolveConfig({ ...SMALL, max_new_tokens: 1, max_completion_length: 1 });
  const before = model.engine.model.device.read(model.engine.model.values);
  await expect(selfTaughtRound(model, data, config, 1)).rejects.toThrow(
    /^self_taught_rounds: no episode of round 1 was right after a query that worked; episodes sampled: 40; fine-tune on/,
  );
  expect(model.engine.model.device.read(model.engine.model.values)).toEqual(before);
  await model.engine.close();
});

test("a round has many steps even with few episodes, and its learning rate decays to the end", async () => {
  const model = taughtModel(fineTuned);
  const rates: number[] = [];
  const report = await selfTaughtRound(model, data, resolveConfig(SMALL), 1, {
    onStep: ({ learning_rate }) => rates.push(learning_rate),
  });
  await model.engine.close();
  const { kept, steps } = report!;
  expect(steps).toBeGreaterThanOrEqual(Math.min(16, 2 * kept));
  expect(rates).toEqual(rates.map((_, i) => sftLearningRate(i, { steps, learning_rate: 3e-3 })));
});

test("an interrupted round is null", async () => {
  expect((await taught(1, {}, AbortSignal.abort())).reports).toEqual([null]);
});

/** A right episode that takes these actions. */
function episode(question_id: string, actions: readonly string[], more: Partial<Episode> = {}): Episode {
  const steps = actions.map((argument) => ({
    action: { action_type: "QUERY", argument },
    observation: { error: null },
  }));
  return { question_id, steps, correctness: 1, truncated: false, ...more } as unknown as Episode;
}

test("episodes are selected at random: right ones, none twice, few of a question", () => {
  const many = ["a", "b"].flatMap((id) => [0, 1, 2, 3, 4].map((n) => episode(id, [`SELECT ${n} FROM t`])));
  const kept = selectEpisodes(many, [1]);
  expect(kept.map(({ question_id }) => question_id).sort()).toEqual(["a", "a", "b", "b"]);
  expect(selectEpisodes(many, [1])).toEqual(kept);
  const draws = new Set([1, 2, 3, 4].map((seed) => JSON.stringify(selectEpisodes(many, [seed]))));
  expect(draws.size).toBeGreaterThan(1);

  const alike = [
    episode("a", ["SELECT 1 FROM t"]),
    episode("a", ["select  1\nfrom T"]),
    episode("b", ["SELECT 1 FROM t"]),
  ];
  expect(
    selectEpisodes(alike, [1])
      .map(({ question_id }) => question_id)
      .sort(),
  ).toEqual(["a", "b"]);
  const bad = [episode("a", ["x"], { correctness: 0 }), episode("a", ["y"], { correctness: null })];
  const guess = { action: { action_type: "ANSWER", argument: "1" }, observation: { error: null } };
  bad.push(episode("a", [], { steps: [guess] as unknown as Episode["steps"] }));
  expect(selectEpisodes([...bad, episode("a", ["z"], { truncated: true })], [1])).toEqual([]);
});

test("the model's own tokens are learned, and so are the tokens that close its turns", () => {
  const segments = [{ tokens: [1, 2, 3, 9, 4, 5, 9, 6], mask: [0, 1, 1, 0, 0, 1, 1, 0] as (0 | 1)[], logprobs: [] }];
  // 9 closes a turn: the first was closed by the environment, the second by the model.
  expect(encodeEpisode({ segments }, [9])).toEqual([
    { tokens: segments[0]!.tokens, weights: [0, 1, 1, 1, 0, 1, 1, 0] },
  ]);
});
