// Environments on threads: the same episodes as in the main thread, also when a thread is lost.

import { SQLEnvironment, type SQLObservation } from "sqlenv/gym/env";
import { EnvironmentThreads, evaluate, localEnvironments, playEpisode } from "sqlenv/gym/evaluation/node";
import { oraclePlayer, type Player, randomPlayer } from "sqlenv/gym/players";
import { expect, test } from "vitest";
import { smallDataSet } from "../helpers/small-data.ts";

const data = await smallDataSet();
const question = data.questions[0]!;
/** Runs for seconds: UNION looks every row up among all earlier ones. */
const SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT (i * 48271) % 2147483647 FROM n) SELECT count(*) FROM n";

test("an evaluation gives the same records, with complete observations", async () => {
  const ahead = data.questions.map(({ question_id }) => question_id);
  const threads = await EnvironmentThreads.start(data, { threads: 2, ahead });
  const options = { step_budget: 4, error_hints: true, describe_many: true, answer_last: true };
  const play = async (source: Pick<typeof threads, "open">, player: Player) => {
    const records: unknown[] = [];
    const environment = () => source.open(options);
    const onEpisode = (record: unknown) => records.push(record);
    await evaluate(data, player, { ...{ episodes: 40, seed: 3, concurrency: 5, environment, onEpisode } });
    return JSON.stringify(records); // including key order: records are written to files
  };
  for (const player of [randomPlayer(), oraclePlayer()])
    expect(await play(threads, player)).toBe(await play(localEnvironments(data), player));
  expect(threads.workSeconds).toBeGreaterThan(0);
  await threads.close();
});

test("reports the environment's errors unchanged", async () => {
  const threads = await EnvironmentThreads.start(data, { threads: 1 });
  const [env, own] = [threads.open({}), new SQLEnvironment(data)];
  const message = (work: () => unknown) => {
    try {
      work();
    } catch (error) {
      return (error as Error).message;
    }
    throw new Error("it did not refuse");
  };
  await expect(async () => env.reset({ question_id: "nope" })).rejects.toThrow(
    message(() => own.reset({ question_id: "nope" })),
  );
  await expect(async () => threads.open({}).step({ action_type: "ANSWER", argument: "1" })).rejects.toThrow(
    /no episode is running/,
  );
  expect(() => env.outcome).toThrow(/no episode is running/);
  await threads.close();
  await expect(async () => env.reset({ question_id: question.question_id })).rejects.toThrow(/closed/);
  const { file: _, ...fileless } = data;
  await expect(EnvironmentThreads.start(fileless, { threads: 1 })).rejects.toThrow(/does not give its database files/);
});

test("a thread that does not answer is ended: its episode is unscorable, others and later ones are played", async () => {
  const lost: [string, number][] = [];
  const threads = await EnvironmentThreads.start(data, {
    ...{ threads: 2, silentMs: 500 },
    onLost: (reason, episodes) => lost.push([reason, episodes]),
  });
  const scripted = (...sql: string[]): Player => ({
    name: "scripted",
    start: () => {
      const left = [...sql];
      return ({ step_count }: SQLObservation) =>
        left.length > 0
          ? { action: { action_type: "QUERY", argument: left.shift()! } }
          : { action: { action_type: "ANSWER", argument: step_count === 1 ? question.gold_answer : "?" } };
    },
  });
  const play = (player: Player) => playEpisode(threads.open({}), player, { question });
  const beside = threads.open({});
  await beside.reset({ question_id: question.question_id });
  const hanging = await play(scripted("SELECT 1", SLOW)); // on the other thread, which has fewer episodes
  expect(hanging).toMatchObject({ correctness: null, reward: null, step_count: 1 });
  expect(hanging.error).toBe("the environment's thread was lost");
  expect(await beside.step({ action_type: "ANSWER", argument: question.gold_answer })).toMatchObject({ done: true });
  expect(await beside.outcome).toMatchObject({ correctness: 1, done_reason: "answered" });
  expect(lost).toEqual([[expect.stringMatching(/^it has not answered for \d+\.\d s$/), 1]]);
  expect(await play(scripted("SELECT 3"))).toMatchObject({ correctness: 1, error: null });
  await threads.close();
});

test("other episodes of a lost thread continue on another, with the same records", async () => {
  const lost: number[] = [];
  const threads = await EnvironmentThreads.start(data, {
    ...{ threads: 1, silentMs: 300 },
    onLost: (_, episodes) => lost.push(episodes),
  });
  const describe = { action_type: "DESCRIBE", argument: "product" } as const;
  const query = { action_type: "QUERY", argument: "SELECT name FROM product" } as const;
  const answer = { action_type: "ANSWER", argument: question.gold_answer } as const;
  const own = new SQLEnvironment(data);
  own.reset({ question_id: question.question_id });
  const expected = [describe, query, query, answer].map((action) => JSON.stringify(own.step(action)));
  const [waiting, idle, slow] = [threads.open({}), threads.open({}), threads.open({})];
  for (const env of [waiting, idle, slow]) await env.reset({ question_id: question.question_id });
  const step = async (env: typeof idle, action: Parameters<typeof idle.step>[0]) =>
    JSON.stringify(await env.step(action));
  const first = [await step(waiting, describe), await step(idle, describe)];
  const failing = expect(slow.step({ action_type: "QUERY", argument: SLOW })).rejects.toThrow(/thread was lost/);
  const second = step(waiting, query); // sent while the thread runs the other episode's query
  await failing;
  expect(lost).toEqual([3]);
  for (const [env, so_far] of [
    [waiting, [first[0], await second]],
    [idle, [first[1], await step(idle, query)]],
  ] as const)
    expect([...so_far, await step(env, query), await step(env, answer)]).toEqual(expected);
  expect(waiting.outcome).toEqual(own.outcome);
  await threads.close();
});

test("closing rejects pending steps, and ends busy threads", async () => {
  const threads = await EnvironmentThreads.start(data, { threads: 1 });
  const env = threads.open({});
  await env.reset({ question_id: question.question_id });
  const working = expect(env.step({ action_type: "QUERY", argument: SLOW })).rejects.toThrow(/threads are closed/);
  await threads.close();
  await working;
});
