import { expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import { GUIDED_RULES, type SQLAction, SQLEnvironment } from "./index.ts";

const ACTIONS: readonly SQLAction[] = [
  { action_type: "DESCRIBE", argument: "product, maker" },
  { action_type: "SAMPLE", argument: "product" },
  { action_type: "QUERY", argument: "SELECT count(*) FROM product" },
  { action_type: "QUERY", argument: "SELECT count(*) FROM product" },
  { action_type: "QUERY", argument: "SELECT colour FROM produkt" },
  { action_type: "QUERY", argument: "" },
  { action_type: "ANSWER", argument: "@last" },
];

test("an environment that does not judge shows the same as one that does, and gives no verdict", async () => {
  const data = await smallDataSet();
  const shown = [true, false].map((judged) => {
    const env = new SQLEnvironment(data, { ...GUIDED_RULES, judged });
    const seen = [env.reset({ question_id: data.questions[0]!.question_id }), ...ACTIONS.map((one) => env.step(one))];
    return { seen: seen.map(({ reward, reward_breakdown, ...rest }) => rest), outcome: env.outcome };
  });
  expect(shown[1]!.seen).toEqual(shown[0]!.seen);
  expect(shown[0]!.outcome).toMatchObject({ correctness: 1, progress: 1, done_reason: "answered" });
  expect(shown[1]!.outcome).toEqual({
    correctness: null,
    progress: null,
    operational: null,
    done_reason: "answered",
  });
});

test("an environment that does not judge never runs the gold query", async () => {
  const data = await smallDataSet();
  const question = { ...data.questions[0]!, gold_sql: "" };
  const judged = new SQLEnvironment({ ...data, questions: [question] });
  expect(() => judged.reset({ index: 0, split: "train" })).toThrow("the gold query");
  const env = new SQLEnvironment({ ...data, questions: [question] }, { judged: false });
  env.reset({ index: 0, split: "train" });
  expect(env.step({ action_type: "ANSWER", argument: "@last" }).done).toBe(true);
});
