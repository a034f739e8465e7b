import { describe, expect, test } from "vitest";
import { episodeLine } from "../../../../test/helpers/run-records.ts";
import type { EpisodeLine } from "../../../rl/run/records.ts";
import { EpisodeIndex } from "./episode-index.ts";

function indexOf(...episodes: Partial<EpisodeLine>[]): EpisodeIndex {
  const index = new EpisodeIndex();
  for (const episode of episodes) index.add({ ...episodeLine(1), ...episode });
  return index;
}
const numbers = (index: EpisodeIndex, query: Parameters<EpisodeIndex["query"]>[0]) =>
  index.query(query).rows.map(({ n }) => n);

describe("the episode index", () => {
  const index = indexOf(
    { step: 1, correctness: 0, total_reward: 0.1, advantage: -1, question: "How many lamps?" },
    { step: 1, correctness: 1, total_reward: 1.2, advantage: 1, question: "How many lamps?" },
    {
      step: 2,
      correctness: null,
      total_reward: null,
      advantage: 0,
      question: "Which lamp is BRIGHT?",
      truncated: true,
    },
    { step: 3, correctness: 1, total_reward: 1.1, advantage: 0.5, difficulty: "hard", database_name: "harbour" },
  );

  test("filters by text, step, verdict and difficulty combined", () => {
    expect(numbers(index, { text: "bright lamp" })).toEqual([2]);
    expect(numbers(index, { text: "HARBOUR" })).toEqual([3]);
    expect(numbers(index, { from_step: 2, to_step: 2 })).toEqual([2]);
    expect(numbers(index, { verdict: "right" })).toEqual([1, 3]);
    expect(numbers(index, { verdict: "unscored" })).toEqual([2]);
    expect(numbers(index, { verdict: "truncated" })).toEqual([2]);
    expect(numbers(index, { verdict: "right", difficulty: "hard" })).toEqual([3]);
    expect(numbers(index, { actions: "DQA", verdict: "wrong" })).toEqual([0]);
    expect(numbers(index, { actions: "A" })).toEqual([]);
  });

  test("sorts in both directions, nulls first, ties in order of play", () => {
    expect(numbers(index, { sort: "total_reward" })).toEqual([2, 0, 3, 1]);
    expect(numbers(index, { sort: "total_reward", descending: true })).toEqual([1, 3, 0, 2]);
    expect(numbers(index, { sort: "step_count", descending: true })).toEqual([0, 1, 2, 3]);
    expect(numbers(index, { descending: true })).toEqual([3, 2, 1, 0]);
  });

  test("pages results, with counts of all matches", () => {
    const page = index.query({ offset: 1, limit: 2 });
    expect(page.rows.map(({ n }) => n)).toEqual([1, 2]);
    expect(page).toMatchObject({ total: 4, right: 2 });
    expect(page.mean_reward).toBeCloseTo((0.1 + 1.2 + 1.1) / 3);
    expect(index.query({ text: "nobody asked this" })).toEqual({ rows: [], total: 0, right: 0, mean_reward: null });
  });

  test("groups the episodes of one question in one step", () => {
    const groups = indexOf({ group: 0 }, { group: 1 }, { group: 0, generation: 1 }, { group: 0, step: 2 });
    expect(groups.group(1, 0).map(({ n }) => n)).toEqual([0, 2]);
  });
});

test("action sequences of the first and last tenth of the steps", () => {
  const acts = (...types: ("DESCRIBE" | "QUERY" | "ANSWER")[]) => {
    const [first] = episodeLine(1).steps;
    return types.map((action_type) => ({ ...first!, action: { action_type, argument: "x" } }));
  };
  const early = Array.from({ length: 4 }, (_, i) => ({
    step: 1,
    correctness: 0 as const,
    steps: acts("ANSWER"),
    group: i,
  }));
  const middle = Array.from({ length: 18 }, (_, i) => ({ step: 2 + i, steps: acts("DESCRIBE") }));
  const late = [20, 20, 20].map((step, i) => ({
    step,
    correctness: i > 0 ? (1 as const) : (0 as const),
    steps: i > 0 ? acts("DESCRIBE", "QUERY", "ANSWER") : acts("ANSWER"),
  }));
  const sequences = indexOf(...early, ...middle, ...late).actionSequences()!;
  expect(sequences.early).toMatchObject({
    from_step: 1,
    to_step: 2,
    episodes: 5,
    sequences: [{ actions: "A", share: 0.8, right: 0 }, {}],
  });
  expect(sequences.late).toMatchObject({ from_step: 19, to_step: 20, episodes: 4, right: 0.75 });
  expect(sequences.late.sequences[0]).toEqual({ actions: "DQA", share: 0.5, right: 1 });
  expect(indexOf({ step: 1 }).actionSequences()).toBeNull();
});
