import { expect, test } from "vitest";
import { shopDataSet } from "../../../test/helpers/fixtures.ts";
import { DEFAULT_RULES, GUIDED_RULES, rulesFromId, rulesId, rulesOf, rulesSchema, SQLEnvironment } from "./index.ts";

test("rules can be recovered from their id", () => {
  expect(rulesId(DEFAULT_RULES)).toBe("env-1");
  expect(rulesId(GUIDED_RULES)).toBe("env-1+hints+stuck3+last+many");
  for (const error_hints of [false, true]) {
    for (const end_after_failures of [null, 2, 17]) {
      for (const answer_last of [false, true]) {
        for (const describe_many of [false, true]) {
          const rules = { error_hints, end_after_failures, answer_last, describe_many };
          expect(rulesFromId(rulesId(rules))).toEqual(rules);
        }
      }
    }
  }
  for (const id of [
    "",
    "env-2",
    "env-1+",
    "env-1+last+hints",
    "env-1+many+last",
    "env-1+stuck1",
    "env-1+stuck03",
    "env-1+new",
  ]) {
    expect(rulesFromId(id)).toBeUndefined();
  }
});

test("the schema has the same defaults and limits", () => {
  expect(rulesSchema.parse({})).toEqual(DEFAULT_RULES);
  expect(rulesSchema.parse(GUIDED_RULES)).toEqual(GUIDED_RULES);
  expect(rulesSchema.safeParse({ end_after_failures: 1 }).success).toBe(false);
});

test("an environment has its rules, and refuses invalid ones", () => {
  const data = shopDataSet();
  expect(new SQLEnvironment(data).rules).toEqual(DEFAULT_RULES);
  expect(new SQLEnvironment(data, { ...GUIDED_RULES, step_budget: 4 }).rules).toEqual(GUIDED_RULES);
  expect(() => new SQLEnvironment(data, { end_after_failures: 1 })).toThrow(
    "end_after_failures must be a whole number from 2, or null: 1",
  );
  expect(() => rulesOf({ answer_last: "yes" as unknown as boolean })).toThrow("answer_last must be true or false: yes");
});
