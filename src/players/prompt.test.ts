import { beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../test/small-data.ts";
import { SQLEnvironment, type SQLObservation } from "../env/index.ts";
import type { DataSet } from "../questions/index.ts";
import { formatObservation, getSystemPrompt, MAX_SHOWN_RESULT, parseModelOutput } from "./prompt.ts";

let data: DataSet;
beforeAll(async () => {
  data = await smallDataSet();
});

describe("getSystemPrompt", () => {
  test("names the four actions, each in the form the parser reads, and is short", () => {
    const prompt = getSystemPrompt();
    for (const type of ["DESCRIBE", "SAMPLE", "QUERY", "ANSWER"]) expect(prompt).toMatch(new RegExp(`^${type}: `, "m"));
    expect(prompt.length).toBeLessThan(600);
  });
});

describe("formatObservation", () => {
  test("a conversation says each thing once", () => {
    const env = new SQLEnvironment(data, { step_budget: 4 });
    const first = env.reset({ question_id: "shop_train_002" });
    expect(formatObservation(first)).toBe(
      "Question: What is the price of the chair?\nTables: maker, product\nSteps left: 4",
    );
    expect(formatObservation(env.step({ action_type: "DESCRIBE", argument: "maker" }))).toBe(
      "Result:\nmaker: 3 rows\nid INTEGER primary key\nname TEXT\ncountry TEXT\nSteps left: 3",
    );
    const failed = formatObservation(env.step({ action_type: "QUERY", argument: "SELECT cost FROM product" }));
    expect(failed).toBe("Error: no such column: cost\nSteps left: 2");
    const again = formatObservation(env.step({ action_type: "DESCRIBE", argument: "maker" }));
    expect(again).toMatch(/^Error: you did this before.*\nResult:\nmaker: 3 rows\n/);
    expect(formatObservation(env.step({ action_type: "ANSWER", argument: "45" }))).toBe("The episode is over.");
  });

  test("cuts long results, says so, and leaves no half character", () => {
    const env = new SQLEnvironment(data);
    const start = env.reset({ question_id: "shop_train_002" });
    const long: SQLObservation = { ...start, step_count: 1, result: `a${"😀".repeat(MAX_SHOWN_RESULT)}` };
    const text = formatObservation(long);
    expect(text).toContain(`(cut: 2000 of ${1 + 2 * MAX_SHOWN_RESULT} characters shown)`);
    expect(text.length).toBeLessThan(MAX_SHOWN_RESULT + 100);
    expect(text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
    expect(formatObservation({ ...long, result: "x".repeat(MAX_SHOWN_RESULT) })).not.toContain("cut");
  });
});

test("parseModelOutput never throws and falls back to QUERY", () => {
  expect(parseModelOutput("<think>hm</think>describe: product")).toEqual({
    action_type: "DESCRIBE",
    argument: "product",
  });
  expect(parseModelOutput("no idea")).toEqual({ action_type: "QUERY", argument: "no idea" });
});
