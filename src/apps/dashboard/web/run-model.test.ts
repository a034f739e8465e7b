// The dashboard page's copy of a run: pages and events combined, in any order.
import { expect, test } from "vitest";
import { RESULT } from "../../../../test/helpers/run-records.ts";
import { verdictSentence } from "../../reports/verdict-sentence.ts";
import type { LogName, LogPage, RunSummary } from "../server/schemas.ts";
import { ema } from "./ema.ts";
import { RunModel } from "./run-model.ts";
import type { Source } from "./run-source.ts";
import { actionWords, describeChange, trainingSuccess } from "./run-text.ts";

const SUMMARY: RunSummary = {
  ...{ id: "lamps", name: "lamps", state: "training", model_name: "starter", config: { eval_steps: 10 }, step: 4 },
  ...{ total_steps: 40, elapsed: 8, random: RESULT.random, before: RESULT.before, now: null, now_step: null },
  ...{
    preset: null,
    environment: null,
    result: null,
    warnings: [],
    eta: 60,
    episodes: { count: 0, indexed: 1 },
    early: null,
    late: null,
  },
  ...{ lines: { metrics: 4, timings: 4, habits: 0 }, problems: [], cursor: "x" },
};
const ROWS = [1, 2, 3, 4];

/** A server with two rows per page, whose first page is older than its summary. */
function source(): Source {
  let asked = 0;
  const log = async (_run: string, name: LogName, from: number): Promise<LogPage> => {
    if (name === "habits") return { from, total: 0, columns: {} };
    const total = asked++ < 2 ? 2 : 4;
    const step = ROWS.slice(from, Math.min(from + 2, total));
    const columns =
      name === "metrics"
        ? { step, reward: step.map((x) => x / 10), num_tokens: step.map((x) => 100 * x) }
        : { step, elapsed: step.map((x) => 2 * x) };
    return { from, total, columns };
  };
  return { log, summary: async () => SUMMARY } as unknown as Source;
}

test("loads a whole run, even if it grows meanwhile, with step, time or tokens as x", async () => {
  const { run, more } = await RunModel.load(source(), "lamps");
  await more;
  expect(run.points("metrics", "reward", "step")).toEqual({ x: ROWS, y: [0.1, 0.2, 0.3, 0.4] });
  expect(run.points("metrics", "reward", "time").x).toEqual([2, 4, 6, 8]);
  expect(run.points("metrics", "reward", "tokens").x).toEqual([100, 200, 300, 400]);
  const page = (columns: LogPage["columns"], from = 4): LogPage => ({ from, total: 5, columns });
  run.apply({
    summary: { ...SUMMARY, step: 5 },
    logs: {
      metrics: page({ step: [5], "eval_unseen/greedy/success_rate": [0.5] }),
      timings: page({ step: [5], elapsed: [10] }),
      habits: page({ step: [1], QUERY: [2] }, 0),
    },
  });
  run.take("habits", page({ step: [1, 2], QUERY: [3, 1] }, 0)); // the step was half written before
  expect(run.points("habits", "QUERY", "step")).toEqual({ x: [1, 2], y: [3, 1] });
  expect(run.points("metrics", "eval_unseen/greedy/success_rate", "time")).toEqual({ x: [10], y: [0.5] });
  expect([run.last("metrics", "reward"), run.sum("timings", "elapsed"), run.rows("metrics")]).toEqual([0.4, 30, 5]);
});

test("a position on any axis leads to its step, and training success is a mean of several steps", async () => {
  const { run, more } = await RunModel.load(source(), "lamps");
  await more;
  expect([run.stepAt(2.4, "step"), run.stepAt(7, "time"), run.stepAt(101, "tokens")]).toEqual([2, 3, 1]);
  run.take("metrics", { from: 0, total: 1, columns: { step: [0] } });
  expect(run.stepAt(0, "step")).toBe(1); // an evaluation before training has no training episodes
  const points = (y: number[]) => trainingSuccess({ points: () => ({ x: y.map((_, i) => i), y }), summary: SUMMARY });
  expect(points([0.5])).toBeNull();
  expect(points([0, 1])).toEqual({ first: 0, last: 1 });
  expect(points([0, 0, 0.3, 0.6, 0.9, 0.9, 0.9])?.last).toBeCloseTo(0.9);
});

test("smoothing keeps a constant, follows a step change, and does nothing at 0", () => {
  expect(ema([2, 2, 2], 0.9).map((value) => Number(value.toFixed(9)))).toEqual([2, 2, 2]);
  expect(ema([0, 1], 0.5)).toEqual([0, 2 / 3]);
  expect(ema([3, 1], 0)).toEqual([3, 1]);
});

test("the headline claims only what the intervals support", () => {
  const said = (changes: Partial<RunSummary>) => {
    const { word, sentence } = verdictSentence({ ...SUMMARY, ...changes });
    return [word, ...sentence.map((part) => (typeof part === "string" ? part : part.strong))].join("|");
  };
  expect(said({})).toBe(
    "Not tested yet.|On unseen databases, |10.0 %| of the answers were right before training; the next test is at step 10.",
  );
  expect(said({ config: { eval_steps: 10, eval_at: [2, 6, 8] } })).toMatch(/the next test is at step 6\.$/);
  expect(said({ now: RESULT.after, now_step: 30 })).toBe(
    "It is learning.|On unseen databases, right answers rose from |10.0 %| to |80.0 %| by step 30.",
  );
  expect(said({ now: RESULT.after, state: "finished" })).toMatch(/^It learned\./);
  expect(said({ before: RESULT.after, now: RESULT.before, state: "finished" })).toMatch(
    /^It got worse\..*fell from \|80.0 %\| to \|10.0 %/,
  );
  expect(said({ now: RESULT.before, state: "finished" })).toMatch(
    /^No clear change\..*the intervals overlap, so this may be chance/,
  );
  const pair = {
    ...({ from: "before", to: "after", place: "unseen", mark: "answer", questions: 96, databases: 48 } as const),
    ...({ a: 0.1, b: 0.2, difference: 0.1, difference_ci: [0.05, 0.15], only_a: 1, only_b: 12 } as const),
    ...{ mcnemar_p: 0.002, permutation_p: 0.0004, permutations: 4096 },
  };
  const result = { seconds: 1, steps: 40, episodes: 1, tokens: 1, paired: [pair] };
  expect(said({ now: RESULT.before, state: "finished", result })).toMatch(/^It learned\./);
  expect(said({ before: null, state: "evaluating" })).toBe(
    "Evaluating before training.|The first evaluation has not finished.",
  );
});

test("the change in behaviour in one sentence", () => {
  const played = (actions: string, share: number) => ({
    ...{ from_step: 1, to_step: 4, episodes: 10, right: 0 },
    sequences: [{ actions, share, right: 0 }],
  });
  expect(describeChange(played("A", 0.61), played("DQA", 0.96), "now")).toBe(
    "At the start mostly ANSWER (61 %); now DESCRIBE → QUERY → ANSWER (96 %).",
  );
  expect(describeChange(played("A", 0.5), played("A", 0.9), "now")).toBe(
    "It still plays ANSWER most often, now in 90 % of the episodes, compared with 50 %.",
  );
  expect(describeChange(null, null, "now")).toBe("");
  expect(actionWords("DSQA?")).toEqual(["DESCRIBE", "SAMPLE", "QUERY", "ANSWER", "?"]);
});
