// The session's score, the result of a training in words, and the tables of a replay, without a browser.
import { expect, test } from "vitest";
import { NO_REWARD, type SQLObservation } from "../../../gym/env/index.ts";
import type { StepRecord } from "../../../gym/evaluation/index.ts";
import { learningResult } from "./learning-result.ts";
import { replaySchema } from "./replay-schema.ts";
import { Tally } from "./tally.ts";

test("first attempts count, and a question that both tried has a winner", () => {
  const tally = new Tally();
  expect([tally.text, tally.duel("a")]).toEqual(["", ""]);
  tally.count("person", "a", true);
  tally.count("person", "b", false);
  tally.count("person", "b", true); // once the answer is known
  expect(tally.duel("a")).toBe("");
  tally.count("model", "a", false);
  expect(tally.text).toBe("You: 1 of 2 right. The model: 0 of 1 right.");
  expect(tally.duel("a")).toBe("You beat the model on this one.");
  tally.count("model", "b", true);
  tally.count("oracle", "b", true);
  expect(tally.duel("b")).toBe("The model beat you on this one.");
  expect(tally.text).toContain("The oracle player: 1 of 1 right.");
});

test.each([
  [0, 13, "It learned: right on 0 of 16 test questions before, on 13 after."],
  [6, 8, "Right on 6 of 16 test questions before, on 8 after."],
  [16, 16, "Right on 16 of 16 test questions before, on 16 after."],
  [12, 3, "Right on 12 of 16 test questions before, on 3 after."],
])("%i, then %i of 16 right: it learned only if that is no chance", (before, after, text) => {
  expect(learningResult({ right: before, of: 16 }, { right: after, of: 16 })).toBe(text);
});

test("a replay shows the tables of its own database, with columns once they are described", () => {
  const observation = (schema_info: string, result: string, error: string | null = null): SQLObservation => ({
    ...{
      question: "",
      schema_info,
      result,
      error,
      error_class: error === null ? null : "unknown_table",
      step_count: 1,
    },
    ...{ budget_remaining: 9, action_history: [], reward_breakdown: NO_REWARD, done: false, reward: 0 },
  });
  const described = (table: string, seen: SQLObservation): StepRecord => ({
    ...{ action: { action_type: "DESCRIBE", argument: table }, text: null, parse_error: null, observation: seen },
    reward_breakdown: NO_REWARD,
  });
  const text =
    'wines: 48 rows\nwine_id INTEGER primary key\nestate_id INTEGER -> estates.estate_id\n"bottle price" REAL';
  const record = {
    start: observation("estates, wines", ""),
    steps: [
      described("none", observation("estates, wines", "", "no such table: none")),
      described("wines", observation('estates\nwines(wine_id, estate_id, "bottle price")', text)),
    ],
  };
  const unknown = (name: string) => ({ name, kind: "table", rows: null, columns: [] });
  expect(replaySchema(record, 1)).toEqual([unknown("estates"), unknown("wines")]);
  expect(replaySchema(record, 2)).toEqual([
    unknown("estates"),
    {
      ...{ name: "wines", kind: "table", rows: 48 },
      columns: [
        { name: "wine_id", type: "integer", primary_key: true, target: null },
        { name: "estate_id", type: "integer", primary_key: false, target: { table: "estates", column: "estate_id" } },
        { name: "bottle price", type: "real", primary_key: false, target: null },
      ],
    },
  ]);
  expect(replaySchema({ start: null, steps: [] }, 0)).toEqual([]);
});
