import fc from "fast-check";
import { expect, test } from "vitest";
import { QuestionLoadError } from "../../../errors.ts";
import { parseBird, parseQuestions, parseSpider } from "./parse-questions.ts";

const good = { question_text: "How many?", database_name: "pets", gold_sql: "SELECT 1" };
const parse = (value: unknown) => parseQuestions(JSON.stringify(value), { file: "q.json" });

test("three fields are enough, and the others are kept", () => {
  expect(parse([good]).drafts).toEqual([{ ...good, split: "train" }]);
  const full = {
    ...good,
    question_id: "a",
    gold_answer: "1",
    answer_type: "integer",
    difficulty: "hard",
    tables_involved: ["t"],
    split: "eval",
  };
  expect(parse([full]).drafts).toEqual([full]);
});

test.each([
  ["", "question file is empty: q.json"],
  [" \n", "question file is empty: q.json"],
  ["{", "question file is not JSON: q.json"],
  ["{}", "question file holds an object, not an array: q.json"],
  ["null", "question file holds null, not an array: q.json"],
  ['"x"', "question file holds a string, not an array: q.json"],
  ["[]", "question file has no questions: q.json"],
])("the file %j is refused, with its name", (json, message) => {
  expect(() => parseQuestions(json, { file: "q.json" })).toThrow(QuestionLoadError);
  expect(() => parseQuestions(json, { file: "q.json" })).toThrow(message);
});

test.each([
  [{ ...good, gold_sql: undefined }, "q.json[1].gold_sql is missing; it should be a string"],
  [{ ...good, question_text: 7 }, "q.json[1].question_text is 7; it should be a string"],
  [{ ...good, question_text: "  " }, 'q.json[1].question_text is "  "; it should not be empty'],
  [{ ...good, difficulty: "brutal" }, 'q.json[1].difficulty is "brutal"; it should be one of easy, medium, hard'],
  [{ ...good, tables_involved: "pet" }, 'q.json[1].tables_involved is "pet"; it should be an array'],
  [{ ...good, split: "later" }, 'q.json[1].split is "later"; it should be one of train, eval, dev, test'],
  [null, "q.json[1] is null; it should be an object"],
  [[good], "q.json[1] is an array; it should be an object"],
])("a broken record is rejected with its index, field and value, and the others are kept (%#)", (record, detail) => {
  const { drafts, rejected } = parse([good, record]);
  expect(drafts).toHaveLength(1);
  expect(rejected).toEqual([{ question_id: "q.json[1]", split: "train", reason: "malformed", detail }]);
});

test("Spider's and BIRD's records become drafts", () => {
  const spider = [{ db_id: "pets", question: "Q?", query: "SELECT 1", hardness: "easy", split: "dev" }];
  expect(parseSpider(JSON.stringify(spider), { file: "f" }).drafts).toEqual([
    { question_text: "Q?", database_name: "pets", gold_sql: "SELECT 1", split: "eval" },
  ]);
  const bird = [
    { db_id: "pets", question: "Q?", SQL: "SELECT 1", evidence: " E ", difficulty: "moderate" },
    { db_id: "pets", question: "Q?", SQL: "SELECT 1", evidence: "" },
  ];
  const { drafts } = parseBird(JSON.stringify(bird), { file: "f", split: "eval" });
  expect(drafts.map(({ question_text, difficulty, split }) => [question_text, difficulty, split])).toEqual([
    ["Q? Hint: E", "medium", "eval"],
    ["Q?", undefined, "eval"],
  ]);
});

test("any file is parsed or refused with an error of ours", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        fc
          .array(fc.dictionary(fc.constantFrom(...Object.keys(good), "split"), fc.jsonValue()))
          .map((x) => JSON.stringify(x)),
      ),
      (json) => {
        for (const read of [parseQuestions, parseSpider, parseBird]) {
          try {
            const { drafts, rejected } = read(json, { file: "f" });
            expect(drafts.length + rejected.length).toBe(JSON.parse(json).length);
          } catch (error) {
            expect(error).toBeInstanceOf(QuestionLoadError);
          }
        }
      },
    ),
    { numRuns: 300 },
  );
});
