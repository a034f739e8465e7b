import { beforeAll, expect, test } from "vitest";
import { strangeDatabase } from "../../../test/helpers/strange-data.ts";
import { ChatError, type Writer } from "../players/index.ts";
import { Database } from "../sql/index.ts";
import { type Made, makeQuestions } from "./make.ts";
import { rephraseQuestions } from "./rephrase.ts";

let database: Database;
let made: Made;

beforeAll(async () => {
  const bytes = await strangeDatabase();
  made = makeQuestions([{ name: "brews", bytes }], { questions: 12 });
  database = new Database("brews", bytes);
});

/** A model that answers both passes by functions of the question. */
function writerOf(reword: (text: string, i: number) => string, query: (gold: string, i: number) => string): Writer {
  const at = (id: string) => made.questions.findIndex(({ question_id }) => question_id === id);
  return {
    name: "scripted",
    write: async ({ question_id, user }) => {
      const i = at(question_id);
      const { question_text, gold_sql } = made.questions[i]!;
      const text = user.includes("### Schema") ? query(gold_sql, i) : reword(question_text, i);
      return { text, tokens: null, prompt_tokens: null };
    },
  };
}

test("a wording is kept if a query written for it alone has the gold result", async () => {
  const writer = writerOf(
    (text) => `Please tell me: ${text}`,
    (gold, i) =>
      `\`\`\`sql\n${i % 3 === 0 ? gold : i % 3 === 1 ? "SELECT 'no'" : "SELECT nothing FROM nowhere"}\n\`\`\``,
  );
  const { questions, report } = await rephraseQuestions(made.questions, () => database, writer);
  expect(report).toEqual({ model: "scripted", asked: 12, kept: 4, refused: { other_result: 4, query_fails: 4 } });
  expect(questions.map(({ question_text }, i) => question_text === made.questions[i]!.question_text)).toEqual(
    made.questions.map((_, i) => i % 3 !== 0),
  );
  expect(questions[0]!.question_text).toBe(`Please tell me: ${made.questions[0]!.question_text}`);
  expect(questions.map(({ gold_sql }) => gold_sql)).toEqual(made.questions.map(({ gold_sql }) => gold_sql));
});

test("replies that are no single new question are refused", async () => {
  const replies = ["", "Sure!\nHere it is?", "How many beers, in short?", "SELECT a FROM b?"];
  const writer = writerOf(
    (text, i) => replies[i % 4] ?? text,
    (gold) => gold,
  );
  const { report } = await rephraseQuestions(made.questions, () => database, writer);
  expect(report).toMatchObject({ kept: 1, refused: { unusable: 9, taken: 2 } });
  const same = writerOf(
    (text) => text,
    (gold) => gold,
  );
  expect((await rephraseQuestions(made.questions, () => database, same)).report.refused).toEqual({ unchanged: 12 });
});

test("an endpoint that never answers is an error, one that fails later is not", async () => {
  const down = async () => {
    throw new ChatError("chat_connection", { what: "cannot reach the endpoint" });
  };
  await expect(rephraseQuestions(made.questions, () => database, { name: "down", write: down })).rejects.toThrow(
    "cannot reach the endpoint",
  );
  const good = writerOf(
    (text) => `Well, ${text}`,
    (gold) => gold,
  );
  let requests = 0;
  const write: Writer["write"] = (request) => (++requests > 6 ? down() : good.write(request));
  const { report } = await rephraseQuestions(
    made.questions,
    () => database,
    { name: "flaky", write },
    { concurrency: 1 },
  );
  expect(report).toMatchObject({ kept: 3, refused: { no_reply: 9 } });
});
