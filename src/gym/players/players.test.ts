import { beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import type { DataSet, QuestionRecord } from "../data/index.ts";
import { DEFAULT_RULES, GUIDED_RULES, SQLEnvironment } from "../env/index.ts";
import { keywordPlayer, lookerPlayer, oraclePlayer, type Player, randomPlayer, teacherPlayer } from "./index.ts";

let data: DataSet;
beforeAll(async () => {
  data = await smallDataSet();
});

const HIDDEN: Partial<QuestionRecord> = { gold_sql: "SELECT 'hidden'", gold_answer: "hidden", tables_involved: [] };

/** Plays an episode. Returns its actions and whether the answer was right. */
async function play(
  player: Player,
  question: QuestionRecord,
  { seed = 1, step_budget = 10, context = question, rules = DEFAULT_RULES } = {},
) {
  const env = new SQLEnvironment(data, { step_budget, ...rules });
  let observation = env.reset({ question_id: question.question_id });
  const policy = player.start({ seed, question: context, rules });
  const actions: string[] = [];
  while (!observation.done) {
    const { action } = (await policy(observation))!;
    actions.push(`${action.action_type}: ${action.argument}`);
    observation = env.step(action);
  }
  return { actions, ...env.outcome };
}

function asked(text: string): QuestionRecord {
  return data.questions.find(({ question_text }) => question_text === text)!;
}

describe("every player", () => {
  const players = [randomPlayer(), lookerPlayer(), keywordPlayer(), oraclePlayer(), teacherPlayer()];

  test.each(players)("$name answers within any budget, and plays the same for the same seed", async (player) => {
    for (const question of data.questions) {
      for (const step_budget of [1, 2, 3, 10]) {
        const first = await play(player, question, { step_budget });
        expect(first.done_reason).toBe("answered");
        expect(await play(player, question, { step_budget })).toEqual(first);
      }
    }
  });

  test.each(players.slice(0, 3))("$name does not use the gold", async (player) => {
    for (const question of data.questions) {
      expect(await play(player, question, { context: { ...question, ...HIDDEN } })).toEqual(
        await play(player, question),
      );
    }
  });

  test.each(players)("$name plays many episodes at once without mixing them", async (player) => {
    const [a, b] = [data.questions[0]!, data.questions.at(-1)!];
    const apart = [await play(player, a), await play(player, b)];
    expect(await Promise.all([play(player, a), play(player, b)])).toEqual(apart);
  });
});

test("the oracle is always right", async () => {
  for (const question of data.questions) {
    for (const step_budget of [1, 2, 10]) {
      expect((await play(oraclePlayer(), question, { step_budget })).correctness).toBe(1);
    }
  }
  const { actions } = await play(oraclePlayer(), asked("How many products are there?"));
  expect(actions).toEqual(["DESCRIBE: product", "QUERY: SELECT count(*) FROM product", "ANSWER: 5"]);
});

describe("the teacher", () => {
  test("is always right with any budget, with and without mistakes and repeats", async () => {
    for (const question of data.questions) {
      for (const [stumbles, repeats] of [
        [0, 0],
        [1, 0],
        [0, 1],
        [1, 1],
      ] as const) {
        for (const step_budget of [1, 2, 3, 4, 10]) {
          const { correctness } = await play(teacherPlayer({ stumbles, repeats }), question, { step_budget });
          expect({ question, stumbles, repeats, step_budget, correctness }).toMatchObject({ correctness: 1 });
        }
      }
    }
  });

  test("describes other tables first if the question does not name its table, unless told not to", async () => {
    const question = asked("How many products are there?");
    const context = { ...question, question_text: "How many are there?" };
    const first = async (searches: boolean) =>
      (await play(teacherPlayer({ stumbles: 0, repeats: 0, searches }), question, { context })).actions[0];
    expect([await first(true), await first(false)]).toEqual(["DESCRIBE: maker", "DESCRIBE: product"]);
  });

  test("samples a table when a condition names one of its values, and rounds averages", async () => {
    const red = await play(teacherPlayer({ stumbles: 0, repeats: 0 }), asked("How many products have the colour red?"));
    expect(red.actions.slice(0, 2)).toEqual(["DESCRIBE: product", "SAMPLE: product"]);
    const all = await play(teacherPlayer({ stumbles: 0, repeats: 0 }), asked("How many products are there?"));
    expect(all.actions).toEqual(["DESCRIBE: product", "QUERY: SELECT count(*) FROM product", "ANSWER: 5"]);
    const average = asked("What is the average weight of the animals?");
    const { actions } = await play(teacherPlayer({ stumbles: 0, repeats: 0 }), average, {
      context: { ...average, gold_sql: "SELECT AVG(weight) FROM animal" },
    });
    expect(actions.slice(1)).toEqual(["QUERY: SELECT ROUND(AVG(weight), 2) FROM animal", "ANSWER: 117.75"]);
  });

  test("demonstrates a correction: a wrong column first, then the right query", async () => {
    const { actions, correctness } = await play(
      teacherPlayer({ stumbles: 1, repeats: 0 }),
      asked("Which animal is the oldest?"),
    );
    expect(actions.filter((action) => action.startsWith("QUERY"))).toHaveLength(2);
    expect(correctness).toBe(1);
  });

  test("demonstrates a missing DESCRIBE: the query fails, the table is described, the query works", async () => {
    const joined = asked("List the names of the products made by makers from Norway.");
    const gold_sql =
      "SELECT product.name FROM product JOIN maker ON maker.id = product.maker_id WHERE maker.country = 'Norway'";
    const teacher = teacherPlayer({ stumbles: 0, omissions: 1, repeats: 0 });
    const { actions, correctness } = await play(teacher, joined, {
      rules: GUIDED_RULES,
      context: { ...joined, gold_sql },
    });
    const kinds = actions.map((action) => action.split(":")[0]);
    const omitted = joined.tables_involved.at(-1);
    expect(kinds.slice(-4)).toEqual(["QUERY", "DESCRIBE", "QUERY", "ANSWER"]);
    expect(actions.at(-3)).toBe(`DESCRIBE: ${omitted}`);
    expect(actions.at(-2)).not.toBe(actions.at(-4));
    expect(correctness).toBe(1);
    for (const question of data.questions)
      for (const step_budget of [1, 3, 5, 10])
        expect(await play(teacher, question, { step_budget })).toMatchObject({ correctness: 1 });
  });

  test("sometimes repeats a query, and answers with the first result", async () => {
    const { actions } = await play(teacherPlayer({ stumbles: 0, repeats: 1 }), asked("How many products are there?"));
    const query = "QUERY: SELECT count(*) FROM product";
    expect(actions).toEqual(["DESCRIBE: product", query, query, "ANSWER: 5"]);
  });

  test("describes tables in order where the question names none", async () => {
    const question = { ...asked("What is the price of the chair?"), question_text: "What does the chair cost?" };
    const { actions } = await play(teacherPlayer({ stumbles: 0, repeats: 0 }), question);
    const described = actions.filter((action) => action.startsWith("DESCRIBE"));
    expect(described).toEqual(["DESCRIBE: maker", "DESCRIBE: product"]);
  });
});

describe("by the guided rules", () => {
  const rules = GUIDED_RULES;

  test("players that query answer with @last, and are right as often as with written answers", async () => {
    const count = asked("How many products are there?");
    const query = "QUERY: SELECT count(*) FROM product";
    const teacher = teacherPlayer({ stumbles: 0, repeats: 1 });
    expect((await play(oraclePlayer(), count, { rules })).actions).toEqual([
      "DESCRIBE: product",
      query,
      "ANSWER: @last",
    ]);
    expect((await play(teacher, count, { rules })).actions).toEqual([
      "DESCRIBE: product",
      query,
      query,
      "ANSWER: @last",
    ]);
    for (const question of data.questions) {
      for (const step_budget of [1, 2, 3, 10]) {
        for (const player of [oraclePlayer(), teacherPlayer({ stumbles: 1, repeats: 1 })]) {
          const { correctness, actions } = await play(player, question, { step_budget, rules });
          expect({ question, actions, correctness }).toMatchObject({ correctness: 1 });
          expect(actions.at(-1)!.endsWith("@last")).toBe(step_budget > 1);
        }
      }
      const [words, reference] = [
        await play(keywordPlayer(), question),
        await play(keywordPlayer(), question, { rules }),
      ];
      expect(reference.correctness).toBe(words.correctness);
      expect(reference.actions.slice(0, -1)).toEqual(words.actions.slice(0, -1));
    }
    expect((await play(keywordPlayer(), count, { rules })).actions.at(-1)).toBe("ANSWER: @last");
  });

  test("the random player sometimes answers with @last, and is unchanged by the default rules", async () => {
    const seeds = Array.from({ length: 40 }, (_, seed) => seed);
    const last = async (options: object) => {
      const played = await Promise.all(
        seeds.map((seed) => play(randomPlayer(), data.questions[0]!, { seed, ...options })),
      );
      return played.filter(({ actions }) => actions.at(-1) === "ANSWER: @last").length;
    };
    expect(await last({ rules })).toBeGreaterThan(5);
    expect(await last({})).toBe(0);
  });
});

test("the random player depends on its seed", async () => {
  const question = data.questions[0]!;
  const plays = await Promise.all([1, 2, 3, 4].map((seed) => play(randomPlayer(), question, { seed })));
  expect(new Set(plays.map(({ actions }) => actions.join("\n"))).size).toBeGreaterThan(2);
});

test("the looker counts rows of the right table, and is otherwise right only by luck", async () => {
  expect((await play(lookerPlayer(), asked("How many animals are there?"))).correctness).toBe(1);
  expect((await play(lookerPlayer(), asked("Which animal is the oldest?"))).correctness).toBe(0);
});

describe("the keyword player", () => {
  test.each([
    "How many products are there?",
    "How many products have the colour red?",
    "What is the price of the chair?",
    "Which product has the highest price?",
    "List the names of the products made by makers from Norway.",
    "What are name and price of every product?",
    "What is the average weight of the animals?",
    "Which animal is the oldest?",
    "How many animals are older than 5?",
  ])("%s", async (text) => {
    const { actions, correctness } = await play(keywordPlayer(), asked(text));
    expect({ actions, correctness }).toMatchObject({ correctness: 1 });
  });
});
