import { expect, test } from "vitest";
import { type Comparable, compareResults, readResult } from "./compare.ts";

const result = (name: string, right: readonly number[], changes: Partial<Comparable["protocol"]> = {}): Comparable => ({
  format: "sqlenv-bench-1",
  model: { player: "model", name },
  data: { name: "d", ids_sha256: "1", content_sha256: "2" },
  protocol: {
    ...{ schema: "unknown", rules: "env-1", prompt: "p-1", step_budget: 10 },
    ...{ votes: 1, temperature: 0, max_tokens: 160, twins: "twins-1x2", ...changes },
  },
  errors: 2,
  questions: Array.from({ length: 12 }, (_, i) => ({
    ...{ id: `q${i}`, database: `db${i % 3}`, answer: changes.schema ? null : right.includes(i) },
    ...{ spider: right.includes(i), bird: right.includes(i), twins: right.includes(i) },
  })),
});

test("compares the measures both have, question by question", () => {
  const { measures, differing, a } = compareResults(result("one", [0, 1, 2]), result("other", [1, 2, 3, 4, 5]));
  expect(a).toEqual({ player: "model", name: "one", questions: 12, errors: 2 });
  expect(differing).toEqual([]);
  expect(measures.spider).toMatchObject({ questions: 12, databases: 3, only_a: 1, only_b: 3, mcnemar_p: 0.625 });
  expect(Object.keys(measures)).toEqual(["answer", "spider", "bird", "twins"]);
});

test("refuses results of different things and names the difference", () => {
  const one = result("one", [1]);
  const refuse = (other: Comparable, pattern: RegExp) => expect(() => compareResults(one, other)).toThrow(pattern);
  refuse(result("b", [1], { prompt: "p-2" }), /differ in the prompt: p-1 and p-2; add --differing prompt/);
  refuse(result("b", [1], { rules: "env-1+hints" }), /the environment's rules: env-1 and env-1\+hints/);
  refuse(result("b", [1], { votes: 8 }), /the number of votes: 1 and 8/);
  refuse(result("b", [1], { twins: null }), /the twins: twins-1x2 and null/);
  refuse({ ...one, data: { ...one.data, ids_sha256: "9" } }, /about different questions: 12 and 12/);
  refuse({ ...one, data: { ...one.data, content_sha256: "99" } }, /questions or gold queries of the same ids/);
});

test("differences that are wanted are allowed and listed", () => {
  const given = result("b", [1], { schema: "given", prompt: "given-1", rules: null, step_budget: null });
  const { differing, measures } = compareResults(result("a", [1]), given, { allowed: ["schema"] });
  expect(differing).toEqual(["schema", "prompt", "rules"]);
  expect(measures.answer).toBeUndefined();
  expect(measures.spider!.difference).toBe(0);
});

test("a file that is no result is named", () => {
  expect(() => readResult("{", "x.json")).toThrow(/the file is not JSON: x\.json; give files that/);
  expect(() => readResult('{"format":"other"}', "x.json")).toThrow(
    /not a result of format sqlenv-bench-1 \(format\): x/,
  );
  const kept = result("a", [1]);
  expect(readResult(JSON.stringify(kept), "x.json")).toEqual(kept);
});

test("trainings are compared by their outcomes.json, at their last stage", () => {
  const outcomes = (after: readonly number[]) => ({
    ...{ format: "sqlenv-outcomes-1", model_name: "m", seed: 1, data: "d", prompt: "p", rules: "r", ids_sha256: "1" },
    ...{ step_budget: 10, max_new_tokens: 160, stages: ["before", "after"], bits: ["answer", "spider", "bird"] },
    questions: { one: { a: [0, after[0]], b: [7, after[1]] }, two: { c: [0, after[2]] } },
  });
  const [a, b] = [outcomes([0, 2, 0]), outcomes([7, 3, 6])].map((of) => readResult(JSON.stringify(of), "x.json"));
  const { measures } = compareResults(a!, b!);
  expect(measures.answer).toMatchObject({ questions: 3, databases: 2, only_a: 0, only_b: 2 });
  expect(measures.spider).toMatchObject({ only_a: 0, only_b: 2 });
  expect(measures.bird).toMatchObject({ only_b: 2 });
  expect(measures.twins).toBeUndefined();
  const damaged = JSON.stringify({ ...outcomes([0, 2, 0]), stages: [] });
  expect(() => readResult(damaged, "x.json")).toThrow(/not a result of format sqlenv-outcomes-1 \(stages\): x\.json/);
});
