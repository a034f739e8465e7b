// From episodes to the engine: one call computes what TRL computes in many.
import { describe, expect, test } from "vitest";
import type { ErrorClass } from "../gym/env/index.ts";
import type { TokenSequence } from "../lm/engine/index.ts";
import { random } from "../random.ts";
import { computeAdvantages } from "./advantages.ts";
import { batchingOf, type GRPOConfig, resolveConfig } from "./config.ts";
import { episodeMetrics } from "./episode-metrics.ts";
import { computeLoss } from "./loss.ts";
import { buildData, cutIntoSlices, policySpec, withAdvantage } from "./loss-inputs.ts";
import { makeRolloutBatch, type RolloutBatch } from "./rollout-batch.ts";
import type { Episode } from "./run/records.ts";

/** An episode with these tokens, 1 the model's. */
function episode(segments: readonly (readonly (0 | 1)[])[], more: Partial<Episode> = {}): Episode {
  const written = segments.flat().filter((mine) => mine === 1).length;
  return {
    ...{
      completion_tokens: written,
      truncated: false,
      step_count: 1,
      parse_failures: 0,
      repeats: 0,
      invalid: 0,
      steps: [],
    },
    ...{ correctness: 0 },
    segments: segments.map((mask) => ({ tokens: mask.map((_, i) => i + 1), mask, logprobs: mask.map(() => -1) })),
    ...more,
  } as unknown as Episode;
}

const LOSS_TYPES = ["grpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo"] as const;

/** Sequences with log-probs of all kinds, as the loss sees them. */
function sequences(count: number): TokenSequence[] {
  const r = random("sequences");
  return Array.from({ length: count }, () => {
    const length = r.int(3, 9);
    const draw = (low: number, high: number) => Array.from({ length }, () => low + (high - low) * r.next());
    const logp = draw(-3, -0.1);
    const weights = Array.from({ length }, () => (r.chance(0.7) ? 1 : 0));
    const near = (values: readonly number[]) => values.map((value) => value + r.normal(0, 0.2));
    return {
      logp,
      weights,
      entropy: draw(0, 2),
      advantage: r.normal(0, 1),
      old_logp: near(logp),
      ref_logp: near(logp),
    };
  });
}

const weightSum = (groups: readonly TokenSequence[]) =>
  groups.reduce((sum, { weights }) => sum + Array.from(weights).reduce((n, w) => n + w, 0), 0);

describe.each(LOSS_TYPES)("%s", (loss_type) => {
  test.each<[string, Partial<GRPOConfig>]>([
    ["one step per batch", {}],
    ["two steps per batch", { steps_per_generation: 8 }],
    ["two batches per step", { generation_batch_size: 4 }],
  ])("a slice at once is TRL's sum over its batches: %s", (_, given) => {
    const config = resolveConfig({ loss_type, beta: 0.04, epsilon_high: loss_type === "cispo" ? 5 : null, ...given });
    const batching = batchingOf(config);
    const groups = sequences(batching.generation_batch_size);
    const tokens = weightSum(groups);
    const { per_device_train_batch_size: B, gradient_accumulation_steps: GA } = config;
    const perRollout = batching.generation_batch_size / B;
    const loss = policySpec(config, batching, { tokens } as RolloutBatch);
    const slice = groups.slice(0, groups.length / batching.slices);
    const ours = computeLoss(slice, loss, { sequences: slice.length, tokens: weightSum(slice) });
    let theirs = 0;
    for (let at = 0; at < slice.length; at += B) {
      const micro = {
        gradient_accumulation_steps: GA,
        steps_per_generation: perRollout,
        num_items_in_batch: tokens,
      };
      theirs += computeLoss(slice.slice(at, at + B), { ...loss, ...micro }).loss;
    }
    expect(ours.loss).toBeCloseTo(theirs, 12);
  });
});

test("slices have every episode once, in another assignment for each batch, sorted within", () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  const deal = (batch: number) => cutIntoSlices(numbers(16), 4, [1, batch]);
  expect(
    deal(0)
      .flat()
      .toSorted((a, b) => a - b),
  ).toEqual(Array.from({ length: 16 }, (_, i) => i));
  for (const slice of deal(0)) expect(slice).toEqual(slice.toSorted((a, b) => a - b));
  expect(deal(1)).not.toEqual(deal(0));
  expect(deal(0)).toEqual(deal(0));
  expect(cutIntoSlices(numbers(3), 1, [])).toEqual([[0, 1, 2]]);
  expect(cutIntoSlices([4, 5, 6, 7, 8], 2, [1]).map(({ length }) => length)).toEqual([2, 3]);
});

function batchOf(episodes: readonly Episode[], rows: readonly number[][], config: GRPOConfig): RolloutBatch {
  const learned = episodes.map((_, i) => i);
  return makeRolloutBatch({ episodes, rows, learned, ...computeAdvantages(rows, config) }, config);
}

test("all segments of an episode are one sequence with one advantage; only the model's tokens count", () => {
  const config = resolveConfig({ num_generations: 2 });
  const episodes = [
    episode([
      [0, 0, 1, 1, 0, 1],
      [0, 0, 0, 1],
    ]),
    episode([[0, 1]]),
  ];
  const batch = batchOf(episodes, [[1], [0]], config);
  expect(batch.tokens).toBe(5);
  const old = [
    [
      [1, 2, 3, 4, 5, 6],
      [7, 8, 9, 10],
    ],
    [[11, 12]],
  ];
  const data = buildData(batch, [0, 1], { old, reference: null }, config);
  expect(data.map(({ sequence }) => sequence)).toEqual([0, 0, 1]);
  expect(data.map(({ weights }) => Array.from(weights))).toEqual([
    [0, 0, 1, 1, 0, 1],
    [0, 0, 0, 1],
    [0, 1],
  ]);
  expect(data[0]!.advantage).toBe(data[1]!.advantage);
  expect(data[0]!.advantage).toBeCloseTo(Math.SQRT1_2, 3);
  expect(data.map(({ old_logp }) => old_logp)).toEqual([old[0]![0], old[0]![1], old[1]![0]]);
});

test("truncated episodes can be left out", () => {
  const config = resolveConfig({ num_generations: 2, mask_truncated_completions: true });
  const episodes = [episode([[0, 1, 1]], { truncated: true }), episode([[0, 1]])];
  const batch = batchOf(episodes, [[1], [0]], config);
  expect(batch.tokens).toBe(1);
  expect(Array.from(buildData(batch, [0], { old: null, reference: null }, config)[0]!.weights)).toEqual([0, 0, 0]);
});

test("episodes whose advantages are all 0 are not computed, per episode or per token", () => {
  const datum = (sequence: number, advantage: number | Float32Array) => ({
    tokens: [1],
    weights: [1],
    sequence,
    advantage,
  });
  const data = [
    datum(0, 0),
    datum(1, new Float32Array(2)),
    datum(2, 0.5),
    datum(2, 0),
    datum(3, Float32Array.of(0, 1)),
  ];
  expect(withAdvantage(data).map(({ sequence }) => sequence)).toEqual([2, 2, 3]);
});

/** A step of which only its argument and its kind of error matter. */
function turn(error_class: ErrorClass | null, argument = "t"): Episode["steps"][number] {
  return { action: { action_type: "ANSWER", argument }, observation: { error_class } } as Episode["steps"][number];
}

test("lengths count what the model wrote, with separate metrics for terminated episodes", () => {
  const metrics = episodeMetrics([
    episode([[0, 1, 1, 1]], {
      step_count: 4,
      parse_failures: 1,
      steps: [turn(null), turn("bad_action", " "), turn("bad_action", "@last"), turn("repeat")],
    }),
    episode([[0, 1]], { truncated: true, correctness: null }),
  ]);
  expect(metrics).toMatchObject({
    ...{ "completions/mean_length": 2, "completions/min_length": 1, "completions/max_length": 3 },
    ...{ "completions/clipped_ratio": 0.5, "completions/mean_terminated_length": 3, "actions/per_episode": 2.5 },
    ...{ "actions/parse_failure_rate": 0.2, "actions/empty_rate": 0.2, "episodes/unscorable": 1 },
  });
});
