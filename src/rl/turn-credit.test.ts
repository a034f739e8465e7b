// Turn credit of a group, computed by hand.
import { describe, expect, test } from "vitest";
import { computeAdvantages } from "./advantages.ts";
import { batchingOf, resolveConfig } from "./config.ts";
import { buildData, policySpec, withAdvantage } from "./loss-inputs.ts";
import { episodeLines, makeRolloutBatch } from "./rollout-batch.ts";
import type { Episode } from "./run/records.ts";
import { milestoneOf } from "./sql/milestone.ts";
import { creditedAdvantages } from "./turn-credit.ts";

/** What the environment pays for all of Φ. */
const PROGRESS = 0.15;

type Turn = readonly [action: "DESCRIBE" | "QUERY" | "ANSWER", phi: number];

/** An episode by its actions and how much Φ each gained; a turn has two tokens after one of the environment's. */
function episode(correctness: 0 | 1 | null, ...turns: readonly Turn[]): Episode {
  const mask = turns.flatMap(() => [0, 1, 1] as const);
  const steps = turns.map(([action_type, phi]) => ({
    action: { action_type, argument: "x" },
    observation: { error_class: null },
    reward_breakdown: { progress: phi * PROGRESS },
  }));
  return {
    ...{ correctness, steps, completion_tokens: 2 * turns.length, truncated: false, step_count: turns.length },
    ...{ parse_failures: 0, repeats: 0, invalid: 0, messages: [] },
    segments: [{ tokens: mask.map((_, i) => i), mask, logprobs: mask.map(() => -1) }],
  } as unknown as Episode;
}

const RIGHT = episode(1, ["DESCRIBE", 0], ["QUERY", 1], ["ANSWER", 0]);
const MISCOPIED = episode(0, ["DESCRIBE", 0], ["QUERY", 0.5], ["QUERY", 0.5], ["ANSWER", 0]);
const NEAR = episode(0, ["QUERY", 0.5], ["QUERY", 0], ["ANSWER", 0]);
const LOST = episode(0, ["DESCRIBE", 0], ["ANSWER", 0]);
const GUESSED = episode(1, ["DESCRIBE", 0], ["ANSWER", 1]);

test("the milestone is the query with the best result, never a right answer", () => {
  const milestones = [RIGHT, MISCOPIED, NEAR, LOST, GUESSED].map((played) => milestoneOf(played, PROGRESS));
  expect(milestones).toEqual([
    { phi: 1, turns: 2 },
    { phi: 1, turns: 3 },
    { phi: 0.5, turns: 1 },
    { phi: 0, turns: Number.POSITIVE_INFINITY },
    { phi: 0, turns: Number.POSITIVE_INFINITY },
  ]);
  expect(milestoneOf({ ...RIGHT, correctness: null }, PROGRESS).phi).toBeNull();
});

describe("a group of four", () => {
  const config = resolveConfig({ num_generations: 4, scale_rewards: "none", turn_credit: 0.4 });
  const group = [RIGHT, MISCOPIED, NEAR, LOST];
  const scored = (episodes: readonly Episode[], rewards: readonly (number | null)[], settings = config) => {
    const rows = rewards.map((reward) => [reward]);
    const learned = rows.map((_, i) => i);
    const milestone = (episode: Episode) => milestoneOf(episode, PROGRESS);
    return makeRolloutBatch({ episodes, rows, learned, ...computeAdvantages(rows, settings) }, settings, { milestone });
  };
  const batch = scored(group, [1, 0, 0, 0]);
  const lineOptions = { step: 1, firstGroup: 0, reward_names: ["r"], num_generations: 4 };

  // Outcomes 1 0 0 0 have the mean 0.25; best queries 1 1 0.5 0 have the mean 0.625.
  const [good, bad] = [0.75, -0.25];
  const credit = [0.4 * 0.375, 0.4 * 0.375, 0.4 * -0.125, 0.4 * -0.625] as const;

  test("turns up to the best query have both advantages, those after it the outcome's alone", () => {
    const data = buildData(batch, [0, 1, 2, 3], { old: null, reference: null }, config);
    const advantages = data.map(({ advantage, weights }) =>
      Array.from(weights).flatMap((w, t) =>
        w === 0 ? [] : [typeof advantage === "number" ? advantage : advantage![t]!],
      ),
    );
    const each = (...turns: number[]) => turns.flatMap((value) => [value, value]);
    const want = [
      each(good + credit[0], good + credit[0], good),
      each(bad + credit[1], bad + credit[1], bad + credit[1], bad),
      each(bad + credit[2], bad, bad),
      each(bad + credit[3], bad + credit[3]),
    ];
    expect(advantages.map(({ length }) => length)).toEqual(want.map(({ length }) => length));
    for (const [i, row] of want.entries())
      for (const [t, value] of row.entries()) expect(advantages[i]![t], `${i} ${t}`).toBeCloseTo(value, 12);
    expect(batch.metrics).toMatchObject({ "turn_credit/progress": 0.625, "turn_credit/zero_std": 0 });
    expect(policySpec(config, batchingOf(config), batch).num_items_in_batch).toBe(24);
  });

  test("episodes.jsonl has the credit and its turns", () => {
    const lines = episodeLines(batch, lineOptions);
    expect(lines.map(({ turn_credit }) => turn_credit!.turns)).toEqual([2, 3, 1, null]);
    expect(lines[3]!.turn_credit!.advantage).toBeCloseTo(-0.25, 12);
  });

  test("with weight 0 nothing changes", () => {
    const plain = resolveConfig({ num_generations: 4, scale_rewards: "none" });
    const outcome = scored(group, [1, 0, 0, 0], plain);
    expect(outcome).not.toHaveProperty("credits");
    const data = buildData(outcome, [0, 1, 2, 3], { old: null, reference: null }, plain);
    expect(data.map(({ advantage }) => advantage)).toEqual([good, bad, bad, bad]);
    expect(episodeLines(outcome, lineOptions)[0]).not.toHaveProperty("turn_credit");
  });

  test("unscorable episodes have no credit; groups equal in both are not computed, those equal in outcome are", () => {
    const unscored = scored([{ ...RIGHT, correctness: null }, NEAR, LOST, LOST], [null, 0, 0, 0]);
    const data = buildData(unscored, [0, 1, 2, 3], { old: null, reference: null }, config);
    expect(withAdvantage(data).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    const same = scored([NEAR, NEAR, NEAR, NEAR], [0, 0, 0, 0]);
    expect(withAdvantage(buildData(same, [0, 1, 2, 3], { old: null, reference: null }, config))).toEqual([]);
  });
});

test("turns are counted through all segments of an episode, which stay together", () => {
  const segments = [{ mask: [0, 1, 1, 0, 1] }, { mask: [0, 0, 1] }, { mask: [0, 1, 0, 1] }] as const;
  const at = (turns: number) => creditedAdvantages(segments as never, 1, { advantage: 0.5, turns });
  expect(at(1)).toEqual([[0, 1.5, 1.5, 0, 1], 1, 1]);
  expect(at(2)).toEqual([1.5, 1, 1]);
  expect(at(4)).toEqual([1.5, 1.5, [0, 1.5, 0, 1]]);
  expect(at(Number.POSITIVE_INFINITY)).toEqual([1.5, 1.5, 1.5]);
  const zeros = [-0.5, 0].map((advantage) => ({ tokens: [1], weights: [1], sequence: 3, advantage }));
  expect(withAdvantage(zeros)).toHaveLength(2); // one of its segments has an advantage
});

test("settings that do not go together are refused", () => {
  const refused = (more: Record<string, unknown>) => () => resolveConfig({ turn_credit: 0.25, ...more });
  expect(refused({ reward: { progress: 0 } })).toThrow(/turn_credit needs reward.progress above 0/);
  expect(refused({ importance_sampling_level: "sequence" })).toThrow(/does not go with importance_sampling_level/);
  expect(refused({ turn_credit: -1 })).toThrow(/turn_credit must be at least 0: -1/);
});
