import { expect, test } from "vitest";
import { metrics, TIMINGS } from "../../../../test/helpers/run-records.ts";
import { csvOf, logCsv } from "./csv.ts";
import { etaOf, latestEvaluation, logPage, totalSteps } from "./progress.ts";

test("a log page has columns, with null for missing values", () => {
  const lines = [
    { step: 1, a: 1 / 3 },
    { step: 2, b: 2, words: "no number" },
    { step: 3, a: 5 },
  ];
  expect(logPage(lines, 0, 9)).toEqual({
    ...{ from: 0, total: 3 },
    columns: { step: [1, 2, 3], a: [0.333333, null, 5], b: [null, 2, null] },
  });
  expect(logPage(lines, 2, 9)).toEqual({ from: 2, total: 3, columns: { step: [3], a: [5] } });
});

test("total steps: max_steps, or estimated from epochs", () => {
  expect(totalSteps({ max_steps: 40 }, [])).toBe(40);
  expect(totalSteps({ max_steps: -1, num_train_epochs: 2 }, [{ step: 5, epoch: 0.25 }])).toBe(40);
  expect(totalSteps({ max_steps: -1, num_train_epochs: 2 }, [])).toBeNull();
  expect(totalSteps(null, [])).toBeNull();
});

test("the ETA uses the pace of the recent steps", () => {
  expect(etaOf(2, 12, TIMINGS)).toBe(20);
  expect(etaOf(2, null, TIMINGS)).toBeNull();
  expect(etaOf(0, 12, [])).toBeNull();
});

test("finds the latest evaluation during training, not the one before it", () => {
  expect(latestEvaluation(metrics(9))).toBeNull();
  const now = latestEvaluation(metrics(25))!;
  expect(now.step).toBe(20);
  expect(now.evaluation.unseen.greedy).toMatchObject({
    success_rate: 0.66,
    ci_method: "cluster_t_by_database",
  });
  expect(now.evaluation.unseen.greedy.success_ci![0]).toBeCloseTo(0.61);
});

test("CSV: quotes where needed, and neutralizes formulas", () => {
  expect(
    csvOf(
      ["a", "b"],
      [
        [1, 'say "hi", then'],
        [null, "=HYPERLINK(1)"],
        [true, "@x"],
      ],
    ),
  ).toBe('a,b\r\n1,"say ""hi"", then"\r\n,\'=HYPERLINK(1)\r\ntrue,\'@x\r\n');
  expect(logCsv({ step: [1, 2], x: [null, -0.5] })).toBe("step,x\r\n1,\r\n2,-0.5\r\n");
});
