import { beforeAll, expect, test } from "vitest";
import { smallDataSet } from "../../test/helpers/small-data.ts";
import { OOMError, PlayerError, ServerError, UsageError } from "../errors.ts";
import type { DataSet } from "./data/index.ts";
import { SQLEnvironment } from "./env/index.ts";
import { type PlayableEnvironment, playEpisode } from "./episode.ts";
import { evaluate } from "./evaluation/evaluate.ts";
import { modelPlayer, oraclePlayer, type Player } from "./players/index.ts";

let data: DataSet;
beforeAll(async () => {
  data = await smallDataSet();
});

/** Plays one question with a player that throws on its second decision. */
function playThrowing(error: Error) {
  const player: Player = {
    name: "throwing",
    start: () => (observation) => {
      if (observation.step_count === 1) throw error;
      return { action: { action_type: "QUERY", argument: "SELECT 1" } };
    },
  };
  return playEpisode(new SQLEnvironment(data), player, { question: data.questions[0]! });
}

test("a PlayerError ends the episode, which is recorded and not scored", async () => {
  const record = await playThrowing(new PlayerError("no_reply", { what: "no reply" }));
  expect(record).toMatchObject({ error: "no reply", correctness: null, reward: null, step_count: 1 });
});

test.each([new Error("the engine's thread ended"), new OOMError({ what: "no memory" }), new TypeError("a bug")])(
  "any other error of a player is thrown: %s",
  async (error) => {
    await expect(playThrowing(error)).rejects.toBe(error);
  },
);

test("an error in a player's start is thrown", async () => {
  const error = new UsageError({ what: "no such prompt" });
  const start = () => {
    throw error;
  };
  const played = playEpisode(new SQLEnvironment(data), { name: "broken", start }, { question: data.questions[0]! });
  await expect(played).rejects.toBe(error);
});

test.each(["reset", "step", "outcome", "rules"] as const)(
  "an environment that fails in %s is recorded",
  async (where) => {
    const env = new SQLEnvironment(data);
    const failing: PlayableEnvironment = new Proxy(env, {
      get(_, name) {
        if (name === where) throw new ServerError("connection_lost", { what: `lost in ${where}` });
        const value = Reflect.get(env, name);
        return typeof value === "function" ? value.bind(env) : value;
      },
    });
    const record = await playEpisode(failing, oraclePlayer(), { question: data.questions[0]! });
    expect(record).toMatchObject({ error: `lost in ${where}`, correctness: null, reward: null });
  },
);

test.each(["onStart", "onStep"])("what %s throws is thrown", async (hook) => {
  const error = new Error("the output was closed");
  const options = { question: data.questions[0]!, [hook]: () => Promise.reject(error) };
  await expect(playEpisode(new SQLEnvironment(data), oraclePlayer(), options)).rejects.toBe(error);
});

test("an engine that fails ends an evaluation with its error, when no episode is left running", async () => {
  let sampled = 0;
  let closed = 0;
  const engine = {
    sample: async () => {
      if (++sampled > 3) throw new OOMError({ what: "no memory" });
      return { tokens: [1], logprobs: [0] };
    },
  };
  const turns = { start: () => [1], next: () => [1], say: () => [1], closed: () => true, stopIds: [] };
  const player = modelPlayer({ engine, turns, decode: () => "QUERY: SELECT 1" });
  const environment = () => Object.assign(new SQLEnvironment(data), { close: () => void closed++ });
  await expect(evaluate(data, player, { concurrency: 2, environment })).rejects.toThrow(OOMError);
  expect(closed).toBe(2);
  expect(sampled).toBeLessThanOrEqual(5);
});
