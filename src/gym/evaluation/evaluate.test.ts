import { beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import { ActionParseError, PlayerError } from "../../errors.ts";
import type { DataSet } from "../data/index.ts";
import { GUIDED_RULES, SQLEnvironment } from "../env/index.ts";
import { type EpisodeRecord, type PlayableEnvironment, playEpisode } from "../episode.ts";
import { keywordPlayer, oraclePlayer, type Player, randomPlayer } from "../players/index.ts";
import { evaluate, sampleQuestions } from "./evaluate.ts";
import { formatTranscript } from "./transcript.ts";
import { wilson } from "./wilson.ts";

let data: DataSet;
beforeAll(async () => {
  data = await smallDataSet();
});

/** A player that always takes the same action. */
function stubborn(action_type: "QUERY" | "ANSWER", argument: string): Player {
  return { name: "stubborn", start: () => () => ({ action: { action_type, argument } }) };
}

describe("the report", () => {
  test("of several tries has the share of questions that one of them got right", async () => {
    let turn = 0;
    const moody: Player = {
      name: "moody",
      start: (episode) => (turn++ % 3 === 0 ? oraclePlayer() : stubborn("ANSWER", "no idea")).start(episode),
    };
    const report = await evaluate(data, moody, { tries: 4 });
    expect(report).toMatchObject({ episodes: 60, tries: 4, success_rate: 1 / 3 });
    expect(report.solved_in_tries).toBeGreaterThan(0.6);
    expect(await evaluate(data, oraclePlayer())).toMatchObject({ tries: 1, solved_in_tries: 1 });
    expect(await evaluate(data, oraclePlayer(), { questions: 4, tries: 3 })).toMatchObject({ episodes: 12, tries: 3 });
  });

  test("of the oracle has all right, with seen and unseen separately", async () => {
    const report = await evaluate(data, oraclePlayer());
    expect(report).toMatchObject({ player: "oracle", episodes: 15, scored: 15, errors: 0, interrupted: false });
    expect(report.success_rate).toBe(1);
    expect(report.success_ci).toEqual(wilson(15, 15));
    expect([report.seen.episodes, report.unseen.episodes]).toEqual([5, 10]);
    expect(report.unseen.ci_method).toBe("cluster_t_by_database");
    expect(report.seen.ci_method).toBe("wilson");
    expect(Object.keys(report.by_database)).toEqual(["park", "shop", "store", "zoo"]);
    expect(report.by_difficulty.hard).toMatchObject({ episodes: 0, success_rate: null, success_ci: null });
    const parts = Object.values(report.by_answer_type).reduce((sum, { episodes }) => sum + episodes, 0);
    expect(parts).toBe(15);
    expect([report.parse_failure_rate, report.repeat_rate, report.invalid_rate]).toEqual([0, 0, 0]);
  });

  test("counts repeats, failures and missing answers", async () => {
    const report = await evaluate(data, stubborn("QUERY", "SELECT nothing"), { step_budget: 4 });
    expect(report.done_reasons).toEqual({ answered: 0, budget: report.episodes, stuck: 0, none: 0 });
    const guided = await evaluate(data, stubborn("QUERY", "SELECT nothing"), { step_budget: 4, rules: GUIDED_RULES });
    expect(guided).toMatchObject({ rules: "env-1+hints+stuck3+last+many", mean_steps: 3, success_rate: 0 });
    expect(guided.done_reasons).toEqual({ answered: 0, budget: 0, stuck: report.episodes, none: 0 });
    const env = new SQLEnvironment(data, GUIDED_RULES);
    const stuck = await playEpisode(env, stubborn("QUERY", "SELECT nothing"), { question: data.questions[0]! });
    expect(formatTranscript(stuck)).toMatch(/=> no answer, the same action failed too often, reward −0\.075, 3 steps$/);
    expect(report.success_rate).toBe(0);
    expect(report.mean_steps).toBe(4);
    expect(report.invalid_rate).toBe(1);
    expect(report.repeat_rate).toBe(0.75);
    const again = await evaluate(data, stubborn("QUERY", "SELECT 1"), { step_budget: 4 });
    expect(again.repeat_rate).toBe(0.75);
    expect(again.invalid_rate).toBe(0);
  });

  test("counts text without an action", async () => {
    const mumbler: Player = {
      name: "mumbler",
      start: () => () => ({
        action: { action_type: "QUERY", argument: "hm" },
        text: "hm",
        parse_error: new ActionParseError({ what: "no action" }),
      }),
    };
    const records: EpisodeRecord[] = [];
    const report = await evaluate(data, mumbler, {
      step_budget: 2,
      episodes: 3,
      onEpisode: (r) => void records.push(r),
    });
    expect(report.parse_failure_rate).toBe(1);
    expect(records[0]).toMatchObject({ parse_failures: 2, done_reason: "budget", correctness: 0 });
    expect(formatTranscript(records[0]!)).toContain('not understood, taken as a query: "hm"');
  });

  test("players are ranked by what they know", async () => {
    const reports = [];
    for (const player of [randomPlayer(), keywordPlayer(), oraclePlayer()]) reports.push(await evaluate(data, player));
    const [low, middle, high] = reports.map((report) => report.mean_reward!);
    expect(low).toBeLessThan(middle!);
    expect(middle).toBeLessThan(high!);
  });

  test("is the same for any concurrency, and differs by seed", async () => {
    const run = async (concurrency: number, seed = 1) => {
      const records: EpisodeRecord[] = [];
      const options = {
        concurrency,
        seed,
        episodes: 20,
        onEpisode: (record: EpisodeRecord) => void records.push(record),
      };
      return { report: await evaluate(data, unhurried(randomPlayer()), options), records };
    };
    const one = await run(1);
    expect(await run(4)).toEqual(one);
    expect(await run(64)).toEqual(one);
    expect((await run(4, 2)).records).not.toEqual(one.records);
  });

  test("playing questions again does not narrow the interval", async () => {
    const once = await evaluate(data, keywordPlayer());
    const often = await evaluate(data, keywordPlayer(), { episodes: 60 });
    expect(often.scored).toBe(60);
    expect(often.success_ci).toEqual(once.success_ci);
    expect(often.unseen.success_ci).toEqual(once.unseen.success_ci);
  });
});

/** Delays decisions by a varying number of ticks, so that episodes overtake each other. */
function unhurried(player: Player): Player {
  let calls = 0;
  return {
    name: player.name,
    start: (episode) => {
      const policy = player.start(episode);
      return async (observation) => {
        for (let tick = calls++ % 5; tick > 0; tick--) await new Promise((resolve) => setImmediate(resolve));
        return policy(observation);
      };
    },
  };
}

describe("the sample", () => {
  test("has every question once before any is repeated", () => {
    const ids = sampleQuestions(data.questions, { episodes: 35, seed: 5 }).map(({ question }) => question.question_id);
    expect(new Set(ids.slice(0, 15)).size).toBe(15);
    expect(new Set(ids.slice(15, 30)).size).toBe(15);
    expect(ids.slice(0, 15)).not.toEqual(ids.slice(15, 30));
    expect(
      sampleQuestions(data.questions, { episodes: 7, seed: 5 }).map(({ question }) => question.question_id),
    ).toEqual(ids.slice(0, 7));
  });

  test("respects the filters", () => {
    const sample = sampleQuestions(data.questions, { split: "train", databases: ["zoo"], answerTypes: ["float"] });
    expect(sample.map(({ question }) => question.question_id)).toEqual(["zoo_train_001"]);
    expect(() => sampleQuestions(data.questions, { databases: ["nowhere"] })).toThrow(/no question fits/);
    expect(() => sampleQuestions(data.questions, { episodes: 0 })).toThrow(/episodes must be a whole number/);
  });
});

describe("errors", () => {
  const fragile: Player = {
    name: "fragile",
    start: ({ question }) => {
      if (question.database_name === "park") throw new PlayerError("no_endpoint", { what: "no endpoint" });
      return oraclePlayer().start({ question, seed: 0 });
    },
  };

  test("of a player are recorded and not scored", async () => {
    const report = await evaluate(data, fragile, { concurrency: 3 });
    expect(report).toMatchObject({ episodes: 15, scored: 11, errors: 4, first_error: "no endpoint", success_rate: 1 });
    expect(report.by_database.park).toMatchObject({ episodes: 4, scored: 0, success_rate: null, mean_reward: null });
    expect(report.unseen.ci_method).toBe("wilson"); // one database is left
  });

  test("of an environment are recorded, also of an asynchronous one", async () => {
    let made = 0;
    let closed = 0;
    const environment = (): PlayableEnvironment => {
      const env = new SQLEnvironment(data);
      made++;
      return {
        reset: async (options) => env.reset(options),
        step: async (action) => {
          if (action.action_type === "ANSWER" && env.reveal().database_name === "zoo") throw new Error("line dropped");
          return env.step(action);
        },
        get outcome() {
          return Promise.resolve(env.outcome);
        },
        close: () => void closed++,
      };
    };
    const report = await evaluate(data, oraclePlayer(), { environment, concurrency: 2 });
    expect(report).toMatchObject({ scored: 13, errors: 2, first_error: "line dropped", success_rate: 1 });
    expect([made, closed]).toEqual([2, 2]);
  });
});

describe("an abort", () => {
  test("gives the report of the episodes that ended, even when a player ignores the signal", async () => {
    const abort = new AbortController();
    let started = 0;
    const sleeper: Player = {
      name: "sleeper",
      start: ({ question }) => {
        if (++started > 3) return () => new Promise(() => {}); // never answers
        return oraclePlayer().start({ question, seed: 0 });
      },
    };
    const onProgress = ({ done }: { done: number }) => done === 3 && setImmediate(() => abort.abort());
    const report = await evaluate(data, sleeper, { signal: abort.signal, onProgress });
    expect(report).toMatchObject({ episodes: 3, scored: 3, errors: 0, interrupted: true, success_rate: 1 });
  });
});

test("records are plain JSON without the gold", async () => {
  const records: EpisodeRecord[] = [];
  await evaluate(data, keywordPlayer(), { onEpisode: (record) => void records.push(record) });
  for (const record of records) {
    expect(JSON.parse(JSON.stringify(record))).toEqual(record);
    expect(JSON.stringify(record)).not.toMatch(/gold/);
    expect(record.reward).toBeCloseTo(
      record.steps.reduce((sum, { observation }) => sum + observation.reward!, 0),
      9,
    );
  }
});

test("a transcript has question, turns, results and rewards", async () => {
  let text = "";
  await evaluate(data, oraclePlayer(), {
    split: "train",
    databases: ["zoo"],
    answerTypes: ["integer"],
    onEpisode: (record) => {
      text = formatTranscript(record);
    },
  });
  expect(text).toBe(
    [
      "zoo_train_000 (easy, zoo, seen database), oracle",
      "Question: How many animals are there?",
      "Tables: animal",
      "1. DESCRIBE: animal",
      "   animal: 4 rows",
      "   id INTEGER primary key",
      "   name TEXT",
      "   species TEXT",
      "   age INTEGER",
      "   weight REAL",
      "   +0.025: +0.02 it worked, +0.01 new, −0.005 a step",
      "2. QUERY: SELECT count(*) FROM animal",
      "   count(*)",
      "   4",
      "   +0.175: +0.02 it worked, +0.01 new, −0.005 a step, +0.15 closer to the expected result (rows or values)",
      "3. ANSWER: 4",
      "   +1.035: +0.04 rest of the exploration reward, −0.005 a step, +1 right",
      "=> right, reward +1.235, 3 steps",
    ].join("\n"),
  );
});
