import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../../../test/helpers/small-data.ts";
import type { DataSet } from "../../data/index.ts";
import { DEFAULT_RULES, SQLEnvironment, type SQLObservation } from "../../env/index.ts";
import { formatObservation, getSystemPrompt, parseModelOutput, promptFor, promptId } from "./prompt.ts";
import { MAX_SHOWN_RESULT } from "./shown.ts";

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

describe("prompts", () => {
  const sum = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16);
  const textOf = (choice: Parameters<typeof promptFor>[0], last: boolean) => {
    const { system, examples, format, tools } = promptFor(choice, {
      ...DEFAULT_RULES,
      answer_last: last,
      error_hints: last,
    });
    const env = new SQLEnvironment(data, { step_budget: 6 });
    const seen = [env.reset({ question_id: "shop_train_002" })];
    for (const argument of ["x", "maker", "maker", "product", "x"])
      seen.push(env.step({ action_type: "DESCRIBE", argument }));
    return JSON.stringify([system, examples, seen.map(format), ...(tools ?? [])]);
  };

  // A prompt's id identifies its text: a changed text requires a new id.
  test.each([
    ["compact-1", { prompt: "compact" }],
    ["compact-1/3-shot", { prompt: "compact", shots: 3 }],
    ["instruct-1", { prompt: "instruct" }],
    ["instruct-1/1-shot", { prompt: "instruct", shots: 1 }],
    ["instruct-1/3-shot", { prompt: "instruct", shots: 3 }],
    ["tools-1", { prompt: "tools" }],
    ["tools-1/1-shot", { prompt: "tools", shots: 1 }],
  ] as const)("%s has the words it had", (id, choice) => {
    expect(promptId(choice)).toBe(id);
    expect({ id, text: sum(textOf(choice, false)), last: sum(textOf(choice, true)) }).toMatchSnapshot();
  });

  test("the default is the starter's, without examples or stops", () => {
    const { id, system, examples, stop, stopStrings, format } = promptFor();
    expect({ id, system, examples, stop, stopStrings }).toEqual({
      ...{ id: "compact-1", system: getSystemPrompt(), examples: [], stop: null, stopStrings: [] },
    });
    expect(format).toBe(formatObservation);
    expect(sum(getSystemPrompt())).toBe("67fdf86b9d7b3c63");
  });

  test("instruct has nothing in it that could be copied into an action, and says @last where that is allowed", () => {
    const { system } = promptFor({ prompt: "instruct" });
    expect(system).not.toMatch(/[|`"]/);
    expect(system).not.toContain("@last");
    expect(promptFor({ prompt: "instruct" }, { ...DEFAULT_RULES, answer_last: true }).system).toContain(
      "ANSWER: @last",
    );
    for (const type of ["DESCRIBE", "SAMPLE", "QUERY", "ANSWER"]) expect(system).toMatch(new RegExp(`^${type}: `, "m"));
  });

  test("a custom prompt replaces the system prompt, and the examples if it has any", () => {
    const mine = { id: "mine-1", system: "Hello." };
    expect(promptFor({ prompt: "instruct", shots: 1, custom: mine })).toMatchObject({
      id: "mine-1/1-shot",
      system: "Hello.",
    });
    const shots = [{ user: "Q", assistant: "ANSWER: 1" }];
    const own = promptFor({ prompt: "instruct", custom: { ...mine, shots } });
    expect([own.id, own.examples]).toEqual(["mine-1", shots]);
    expect(own.stop).not.toBeNull();
    expect(() => promptFor({ shots: 2 as 1 })).toThrow("there are no examples in this number: 2");
  });
});
