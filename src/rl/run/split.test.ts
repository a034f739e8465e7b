import { expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import type { DataSet, QuestionRecord } from "../../gym/data/index.ts";
import { resolveConfig } from "../config.ts";
import { loadQuestionPrompts } from "../sql/questions.ts";
import { keepSplit, overlapWarning, sftDatabases, sftQuestions, splitOf } from "./split.ts";
import { MemoryStore } from "./store.ts";

const small = await smallDataSet();
const all = ["easy", "medium", "hard"] as const;
const settings = (given: object = {}) => resolveConfig({ sft_steps: 1, difficulty_filter: [...all], ...given });

/** The small set with its training questions spread over n databases. */
function spread(databases: number): DataSet {
  const train = small.questions.filter(({ split }) => split === "train");
  const questions = Array.from({ length: 2 * databases }, (_, i): QuestionRecord => {
    const of = train[i % train.length]!;
    return { ...of, question_id: `q${i}`, database_name: `d${i % databases}` };
  });
  return { ...small, questions: [...questions, ...small.questions.filter(({ split }) => split === "eval")] };
}

test("SFT and GRPO have different databases, together all of them, and the seed decides which", async () => {
  const data = spread(9);
  const split = await splitOf(data, settings());
  expect([split.sft.databases.length, split.grpo.databases.length]).toEqual([3, 6]);
  expect(new Set([...split.sft.databases, ...split.grpo.databases]).size).toBe(9);
  expect(split.sft.ids_sha256).not.toBe(split.grpo.ids_sha256);
  const asked = new Set(loadQuestionPrompts(data, settings()).map(({ question_id }) => question_id));
  expect(asked.size).toBe(split.grpo.questions);
  expect(sftQuestions(data, settings()).filter(({ question_id }) => asked.has(question_id))).toEqual([]);
  const draws = [1, 2, 3, 4].map((seed) => sftDatabases(data, settings({ seed })).join());
  expect(new Set(draws).size).toBeGreaterThan(1);
});

test("the draw depends on names and seed only", () => {
  const data = spread(9);
  const drawn = sftDatabases(data, settings());
  expect(sftDatabases({ ...data, questions: data.questions.toReversed() }, settings())).toEqual(drawn);
  expect(sftDatabases(data, settings({ difficulty_filter: ["easy"], sft_data_share: 0.9 }))).toEqual(drawn);
});

/** Training questions on one database or more: `queries` queries each, in three phrasings. */
function phrased(queries: number, names: readonly string[] = ["shop"]): DataSet {
  const [of] = small.questions;
  const questions = names.flatMap((database_name) =>
    Array.from({ length: 3 * queries }, (_, i): QuestionRecord => {
      const query = Math.floor(i / 3);
      const text = { question_text: `phrasing ${i}`, gold_sql: `SELECT ${"  ".repeat(i % 3)}name FROM t${query}` };
      return { ...of!, ...text, question_id: `${database_name}${i}`, split: "train", database_name };
    }),
  );
  return { ...small, questions: [...questions, ...small.questions.filter(({ split }) => split === "eval")] };
}

test("on a single database SFT and GRPO have different queries, together all of them", async () => {
  const data = phrased(20);
  const given = settings({ sft_database_share: 0.7 });
  const split = await splitOf(data, given);
  expect(split).toMatchObject({
    ...{ unit: "question", overlap: false, shares: { databases: 0.7 } },
    ...{ sft: { databases: ["shop"], questions: 42 }, grpo: { databases: ["shop"], questions: 18 } },
  });
  const tablesOf = (ids: Iterable<string>) =>
    new Set(
      [...ids].map((id) =>
        data.questions
          .find((one) => one.question_id === id)!
          .gold_sql.split(" ")
          .at(-1),
      ),
    );
  const shown = tablesOf(sftQuestions(data, given).map(({ question_id }) => question_id));
  const asked = tablesOf(loadQuestionPrompts(data, given).map(({ question_id }) => question_id));
  expect([shown.size, asked.size]).toEqual([14, 6]); // all phrasings of a query are on one side
  expect([...shown].filter((table) => asked.has(table))).toEqual([]);
  const reversed = { ...data, questions: data.questions.toReversed() };
  expect(new Set(sftQuestions(reversed, given))).toEqual(new Set(sftQuestions(data, given)));
  expect(sftQuestions(data, { ...given, seed: 1 })).not.toEqual(sftQuestions(data, given));
  expect(loadQuestionPrompts(data, { ...given, sft_overlap: true })).toHaveLength(60);
});

test("SFT may not have all questions of the only database", () => {
  const given = settings({ sft_database_share: 1 });
  const message = /SFT uses all training questions that are easy or medium or hard, on: shop; lower sft_database_share/;
  expect(() => loadQuestionPrompts(phrased(2), given)).toThrow(message);
});

test("several databases are split by question on request, each of them", async () => {
  const data = phrased(10, ["shop", "school"]);
  expect((await splitOf(data, settings({ sft_database_share: 0.5 }))).unit).toBe("database");
  const split = await splitOf(data, settings({ sft_database_share: 0.5, sft_split: "question" }));
  const both = { databases: ["school", "shop"], questions: 30 };
  expect(split).toMatchObject({ unit: "question", sft: both, grpo: both });
});

test("without SFT on the data set GRPO asks everything", () => {
  for (const given of [{ sft_steps: 0 }, { sft_database_share: 0 }, { sft_data_share: 0 }])
    expect(loadQuestionPrompts(small, settings(given))).toHaveLength(5);
});

test("overlap has to be requested, and gives a warning", async () => {
  expect(overlapWarning(await splitOf(small, settings()))).toBeNull();
  const split = await splitOf(small, settings({ sft_overlap: true, sft_database_share: 1 }));
  expect(split.sft.databases).toEqual(split.grpo.databases);
  expect(overlapWarning(split)?.message).toMatch(/all right or all wrong/);
});

test.each<[object, DataSet, RegExp]>([
  [
    { sft_split: "database" },
    spread(1),
    /need a training database each; those of small are: 1; give --sft-split question, or --sft-database-share 0/,
  ],
  [
    {},
    { ...small, questions: small.questions.map((q) => ({ ...q, gold_sql: "SELECT 42", tables_involved: [] })) },
    /have answers but no gold SQL for SFT; sft_database_share is: 0\.333; give --sft-database-share 0/,
  ],
  [{ sft_database_share: 0.9 }, small, /takes all 2 training databases of small and leaves none to GRPO: 0\.9; give l/],
  [
    { difficulty_filter: ["hard"] },
    spread(9),
    /no training question with gold SQL on the databases drawn for SFT .* is: hard/,
  ],
  [
    { sft_overlap: true, sft_database_share: 1 },
    {
      ...small,
      questions: small.questions.flatMap((q) => [q, { ...q, split: "eval", question_id: `${q.question_id}b` }]),
    },
    /a question would be used by SFT and by the evaluation: shop_.* and .*b; remove one/,
  ],
])("%j is refused in one line", async (given, data, message) => {
  await expect(splitOf(data, settings(given))).rejects.toThrow(message);
});

test("a run keeps its split, and is not continued with another", async () => {
  const store = new MemoryStore();
  keepSplit(store, await splitOf(spread(9), settings()));
  keepSplit(store, await splitOf(spread(9), settings()));
  const other = await splitOf(spread(8), settings());
  expect(() => keepSplit(store, other)).toThrow(/begun with another split .*: sft questions, grpo questions; restore/);
});
