import fc from "fast-check";
import { expect, test } from "vitest";
import { filterQuestions, splitByDatabase, splitByQuery } from "./filter.ts";
import type { QuestionRecord } from "./question.ts";

function question(i: number, fields: Partial<QuestionRecord> = {}): QuestionRecord {
  return {
    question_id: `q${i}`,
    question_text: "?",
    database_name: `db${i % 7}`,
    gold_sql: `SELECT ${i}`,
    gold_answer: "1",
    answer_type: i % 2 ? "integer" : "list",
    difficulty: i % 3 ? "easy" : "hard",
    tables_involved: [],
    split: i % 5 ? "train" : "eval",
    ...fields,
  };
}

const many = Array.from({ length: 70 }, (_, i) => question(i));

test("a filter keeps what all of its lists allow, in order", () => {
  expect(filterQuestions(many, {})).toEqual(many);
  expect(filterQuestions(many, { difficulty: [] })).toEqual(many);
  const some = filterQuestions(many, {
    difficulty: ["hard"],
    answer_type: ["integer"],
    database: ["db1", "db2"],
    split: "train",
  });
  expect(some.map(({ question_id }) => question_id)).toEqual(
    many
      .filter((_, i) => i % 3 === 0 && i % 2 === 1 && [1, 2].includes(i % 7) && i % 5 !== 0)
      .map(({ question_id }) => question_id),
  );
});

test("splitting by database keeps databases whole and neither side empty", () => {
  for (const share of [0.01, 0.3, 0.99]) {
    const split = splitByDatabase(many, share, 1);
    const sides = { train: new Set<string>(), eval: new Set<string>() };
    for (const { database_name, split: side } of split) sides[side].add(database_name);
    expect([...sides.train].filter((name) => sides.eval.has(name))).toEqual([]);
    expect(sides.train.size > 0 && sides.eval.size > 0).toBe(true);
  }
  expect(splitByDatabase(many, 0.3, 1).filter(({ split }) => split === "eval")).toHaveLength(20); // two of seven databases
  expect(splitByDatabase(many, 0, 1).every(({ split }) => split === "train")).toBe(true);
  expect(splitByDatabase(many, 1, 1).every(({ split }) => split === "eval")).toBe(true);
});

test("splitting by query keeps equal queries on one side, reaches the count, and depends only on the seed", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 80 }),
      fc.nat(100),
      fc.integer(),
      (ids, percent, seed) => {
        const questions = [...ids, ...Array.from({ length: 10 }, (_, i) => 100 + i)].map((id, i) =>
          question(i, { database_name: "db", gold_sql: i % 2 ? `select ${id} ;` : `SELECT  ${id}` }),
        );
        const wanted = Math.round((questions.length * percent) / 100);
        const split = splitByQuery(questions, wanted, seed);
        const sideOf = new Map<number, string>();
        split.forEach(({ gold_sql, split: side }) => {
          const id = Number(/\d+/.exec(gold_sql)![0]);
          expect(sideOf.get(id) ?? side).toBe(side);
          sideOf.set(id, side);
        });
        expect(split.filter((one) => one.split === "eval").length).toBeLessThanOrEqual(wanted);
        expect(splitByQuery(questions.toReversed(), wanted, seed).toReversed()).toEqual(split);
      },
    ),
    { numRuns: 100 },
  );
  const pairs = Array.from({ length: 100 }, (_, i) =>
    question(i, { database_name: "db", gold_sql: `SELECT ${i >> 1}` }),
  );
  expect(splitByQuery(pairs, 30, 42).filter(({ split }) => split === "eval")).toHaveLength(30);
  expect(splitByQuery(pairs, 30, 42)).not.toEqual(splitByQuery(pairs, 30, 43));
});
