import { describe, expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import { GUIDED_RULES, type SQLAction } from "../env/index.ts";
import { oraclePlayer, type Player } from "../players/index.ts";
import { type AskedAnswer, type AskQuestionOptions, askQuestion, MAX_QUESTION_LENGTH } from "./index.ts";

const { databases } = await smallDataSet();

/** A player that takes these actions: text starting with ANSWER answers, SELECT queries, other words name tables. */
function playing(...episodes: readonly string[][]): Player {
  let next = 0;
  return {
    name: "told",
    start: () => {
      const actions = episodes[next++ % episodes.length]!.map(actionOf);
      return () => {
        const action = actions.shift();
        return action ? { action } : null;
      };
    },
  };
}

function actionOf(text: string): SQLAction {
  const [, action_type, argument] = /^(ANSWER|SAMPLE|DESCRIBE) ([\s\S]*)$/.exec(text) ?? [text, "QUERY", text];
  return { action_type: action_type as SQLAction["action_type"], argument: argument! };
}

function ask(options: Partial<AskQuestionOptions> & Pick<AskQuestionOptions, "player">): Promise<AskedAnswer> {
  return askQuestion({ databases, database: "shop", question: "How many products are there?", ...options });
}

const COUNT = "SELECT count(*) FROM product";
const RED = "SELECT name FROM product WHERE colour = 'red'";

describe("the answer", () => {
  test("comes with the query whose result it is, and its result", async () => {
    const told = await ask({ player: playing(["DESCRIBE product", COUNT, "SELECT * FROM maker", "ANSWER 5"]) });
    expect(told).toMatchObject({ answer: "5", sql: COUNT, support: "result", unsure: null, done_reason: "answered" });
    expect(told.result).toMatchObject({ columns: ["count(*)"], rows: [[5]] });
    expect(told.steps.map(({ action }) => action.action_type)).toEqual(["DESCRIBE", "QUERY", "QUERY", "ANSWER"]);
  });

  test("may be the last result, whose values are then the answer", async () => {
    const told = await ask({ player: playing([COUNT, RED, "ANSWER @last"]), rules: GUIDED_RULES });
    expect(told).toMatchObject({ answer: "lamp, table, clock", sql: RED, support: "result", unsure: null });
  });

  test("may be made of values of a result, a sample or a description", async () => {
    const one = await ask({ player: playing(["SELECT name, price FROM product", "ANSWER vase | 12.25"]) });
    expect(one).toMatchObject({
      sql: "SELECT name, price FROM product",
      support: "values",
      result: null,
      unsure: null,
    });
    const sampled = await ask({ player: playing(["SAMPLE product", "ANSWER lamp, chair"]) });
    expect(sampled).toMatchObject({ answer: "lamp, chair", sql: null, support: "values", unsure: null });
    const described = await ask({ player: playing(["DESCRIBE product", "ANSWER 5"]) });
    expect(described).toMatchObject({ sql: null, support: "values", unsure: null });
  });

  test("is unsure if one of its values was in no result", async () => {
    const told = await ask({ player: playing([RED, "ANSWER lamp, sofa"]) });
    expect(told).toMatchObject({ support: "none", sql: null, unsure: { reason: "not_in_results" } });
    // A query that failed has shown nothing.
    const failed = await ask({ player: playing(["SELECT 7 FROM nowhere", "ANSWER 7"]) });
    expect(failed.unsure?.reason).toBe("not_in_results");
  });

  test("is unsure if the query found nothing", async () => {
    const none = "SELECT name FROM product WHERE colour = 'pink'";
    const told = await ask({ player: playing([none, "ANSWER @last"]), rules: GUIDED_RULES });
    expect(told).toMatchObject({ answer: "(no rows)", sql: none, unsure: { reason: "no_rows" } });
    const only = "SELECT max(price) FROM product WHERE colour = 'pink'";
    const nulls = await ask({ player: playing([only, "ANSWER @last"]), rules: GUIDED_RULES });
    expect(nulls).toMatchObject({ answer: "NULL", unsure: { text: "the query found nothing but NULL" } });
    const said = await ask({ player: playing([only, "ANSWER null"]) });
    expect(said).toMatchObject({ answer: "null", sql: only, support: "result", unsure: { reason: "no_rows" } });
  });

  test("is missing if the steps ran out, the same action failed too often, or the player stopped", async () => {
    const budget = await ask({ player: playing([COUNT, RED]), step_budget: 2 });
    expect(budget).toMatchObject({ answer: null, sql: null, unsure: { reason: "no_answer" }, done_reason: "budget" });
    const stuck = await ask({ player: playing(["SELEC", "SELEC", "SELEC"]), rules: GUIDED_RULES });
    expect(stuck).toMatchObject({ unsure: { text: expect.stringContaining("failed too often") } });
    const stopped = await ask({ player: playing([]) });
    expect(stopped).toMatchObject({ done_reason: null, unsure: { text: expect.stringContaining("context") } });
  });
});

describe("samples", () => {
  const answers = (...texts: string[]) => playing(...texts.map((text) => [COUNT, RED, text]));

  test("agree by the verifier's rules", async () => {
    const player = playing([RED, "ANSWER lamp, table, clock"]);
    const sampler = playing(
      ["SELECT name FROM product WHERE colour = 'red' AND 1", 'ANSWER ["Clock", "table", "lamp"]'],
      [`${RED} ORDER BY name DESC`, "ANSWER @last"],
      ["ANSWER the lamp, the table"],
      [RED],
    );
    const told = await ask({ player, sampler, samples: 4, rules: GUIDED_RULES });
    expect(told).toMatchObject({ agreement: 0.5, samples: 4, unsure: { reason: "samples_disagree" } });
    expect(told.unsure!.text).toBe("2 of 4 samples agree");
    expect(told.answers.map(({ answer, samples }) => [answer, samples])).toEqual([
      ["lamp, table, clock", 2],
      ["the lamp, the table", 1],
      [null, 1],
    ]);
  });

  test("make an answer unsure only below the threshold", async () => {
    const options = { player: answers("ANSWER 5"), sampler: answers("ANSWER 5", "ANSWER 5.0", "ANSWER 3"), samples: 3 };
    expect(await ask(options)).toMatchObject({ agreement: 2 / 3, unsure: null });
    const strict = await ask({ ...options, sampler: answers("ANSWER 5", "ANSWER 5", "ANSWER 3"), minAgreement: 1 });
    expect(strict.unsure).toEqual({ reason: "samples_disagree", text: "2 of 3 samples agree" });
  });

  test("are played after the answer is known", async () => {
    const order: string[] = [];
    const onSample = (done: number, total: number) => order.push(`${done} of ${total}`);
    const onAnswer = ({ text, sql }: { text: string | null; sql: string | null }) => order.push(`${text}: ${sql}`);
    await ask({ player: answers("ANSWER 5"), samples: 2, onSample, onAnswer });
    expect(order).toEqual([`5: ${COUNT}`, "1 of 2", "2 of 2"]);
  });

  test("are optional", async () => {
    expect(await ask({ player: answers("ANSWER 5") })).toMatchObject({ agreement: null, samples: 0, unsure: null });
  });
});

test("the question has no gold that a player could read, and no control characters", async () => {
  const seen: string[] = [];
  const question = "How many\x1b[31m products\x00 are there?\n";
  const player: Player = {
    name: "reader",
    start: ({ question: { gold_sql, gold_answer, question_text } }) => {
      seen.push(gold_sql, gold_answer, question_text);
      return () => null;
    },
  };
  await ask({ player, question });
  expect(seen).toEqual(["", "", "How many [31m products  are there?"]);
  expect(await ask({ player: oraclePlayer() })).toMatchObject({ answer: null }); // it plays the gold query
});

test("an empty or very long question, and an unknown database, are refused", async () => {
  const player = playing([]);
  await expect(ask({ player, question: " \n\t\x07" })).rejects.toThrow("the question is empty");
  const long = ask({ player, question: "x".repeat(1_000_000) });
  await expect(long).rejects.toThrow(`longer than ${MAX_QUESTION_LENGTH} characters`);
  await expect(ask({ player, database: undefined })).rejects.toThrow("which database?: shop, zoo, store, park");
  await expect(ask({ player, database: "nowhere" })).rejects.toThrow("no such database");
});

test("an abort ends the question with its reason", async () => {
  const abort = new AbortController();
  const player: Player = { name: "slow", start: () => () => new Promise(() => abort.abort(new Error("stopped"))) };
  await expect(ask({ player, signal: abort.signal })).rejects.toThrow("stopped");
});
