import { beforeAll, expect, test } from "vitest";
import { petsDatabase } from "../../../test/helpers/data-files.ts";
import { Database } from "../sql/index.ts";
import { checkGold, type GoldFields } from "./gold.ts";

let database: Database;
beforeAll(async () => {
  database = new Database("pets", await petsDatabase());
});

function outcome(fields: GoldFields): string {
  const check = checkGold(fields, database);
  return check.ok ? "ok" : check.reason;
}

test("a gold query must run and give a result", () => {
  expect(outcome({ gold_sql: "SELECT name FROM pet" })).toBe("ok");
  expect(outcome({ gold_sql: "SELECT name FROM gone" })).toBe("gold_fails");
  expect(outcome({ gold_sql: "DELETE FROM pet" })).toBe("gold_fails");
  expect(outcome({ gold_sql: "SELECT name FROM vet" })).toBe("gold_empty");
  expect(outcome({ gold_sql: "SELECT max(id), min(id) FROM vet" })).toBe("gold_only_nulls");
  expect(outcome({ gold_sql: "SELECT city FROM owner" })).toBe("ok"); // one of several rows is NULL
});

test("a stated answer must be what the query gives; spelling, order and brackets do not matter", () => {
  const names = "SELECT name FROM owner ORDER BY id";
  for (const gold_answer of [
    "Ada, Ben, Cleo",
    "cleo,ben,ada",
    '["Ada", "Ben", "Cleo"]',
    ["Ada", "Ben", "Cleo"],
    [["Ada"], ["Ben"], ["Cleo"]],
    undefined,
    null,
  ]) {
    expect(outcome({ gold_sql: names, gold_answer })).toBe("ok");
  }
  for (const gold_answer of ["Ada, Ben", "Ada, Ben, Cleo, Cleo", "", 3]) {
    expect(outcome({ gold_sql: names, gold_answer })).toBe("gold_mismatch");
  }
  expect(outcome({ gold_sql: "SELECT count(*) FROM pet", gold_answer: 3 })).toBe("ok");
  expect(outcome({ gold_sql: "SELECT weight FROM pet WHERE id = 2", gold_answer: "4" })).toBe("ok");
  expect(outcome({ gold_sql: "SELECT weight FROM pet WHERE id = 2", gold_answer: "4.1" })).toBe("gold_mismatch");
  expect(
    outcome({
      gold_sql: "SELECT name, city FROM owner",
      gold_answer: [
        ["Ada", "Paris"],
        ["Ben", "Rome"],
        ["Cleo", null],
      ],
    }),
  ).toBe("ok");
});

test("a stated type must be able to hold the result", () => {
  expect(outcome({ gold_sql: "SELECT count(*) FROM pet", answer_type: "integer" })).toBe("ok");
  expect(outcome({ gold_sql: "SELECT count(*) FROM pet", answer_type: "float" })).toBe("ok");
  expect(outcome({ gold_sql: "SELECT count(*) FROM pet", answer_type: "list" })).toBe("ok");
  expect(outcome({ gold_sql: "SELECT 2.5", answer_type: "integer" })).toBe("gold_mismatch");
  expect(outcome({ gold_sql: "SELECT name FROM owner", answer_type: "string" })).toBe("gold_mismatch");
  expect(outcome({ gold_sql: "SELECT name, city FROM owner", answer_type: "list" })).toBe("gold_mismatch");
  expect(outcome({ gold_sql: "SELECT name FROM pet WHERE id = 1", answer_type: "integer" })).toBe("gold_mismatch");
});
