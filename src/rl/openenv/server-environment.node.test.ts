// Any OpenEnv server as environment, against a real one that fails in every way it can.
import { afterEach, expect, test } from "vitest";
import { type Fault, type Game, type GameOptions, startGame } from "../../../test/helpers/openenv-game.ts";
import { until } from "../../../test/helpers/server-place.ts";
import type { TextEnvironment } from "../environment.ts";
import { type ConnectOptions, connectEnvironment, type ServerEnvironment } from "./server-environment.ts";
import type { ServerTask } from "./tasks.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

async function game(options?: GameOptions): Promise<Game> {
  const started = await startGame(options);
  open.push(started);
  return started;
}

const TASKS: ServerTask[] = [4, 5, 6].map((number) => ({ id: `say ${number}`, reset: { number } }));

async function connect(url: string, options: Partial<ConnectOptions> = {}): Promise<ServerEnvironment> {
  const environment = await connectEnvironment(url, { tasks: TASKS, environment_timeout: 5, ...options });
  open.push(environment);
  return environment;
}

/** Plays the replies; returns the texts and steps. */
async function play(env: TextEnvironment, environment: ServerEnvironment, id: string, replies: readonly string[]) {
  const task = [...environment.tasks("train"), ...environment.tasks("eval")].find((one) => one.id === id)!;
  await env.acquire?.();
  const first = await env.reset(task);
  const steps = [];
  for (const reply of replies) steps.push(await env.step(reply));
  return { first: first.text, steps };
}

test("an episode: the first observation, an invalid reply, a wrong and the right one", async () => {
  const { url, asked } = await game();
  const environment = await connect(url, { invalid_action_reward: -0.5, system: "Say it.", solved_reward: 0.8 });
  expect(environment).toMatchObject({
    name: "say",
    action_template: '{"guess":"{number}"}',
    observation_field: "prompt",
  });
  expect([environment.prompt.system, environment.solvedReward]).toEqual(["Say it.", 0.8]);
  const env = environment.open("training");
  const played = await play(env, environment, "say 5", ["five", "1.5", "4", "5"]);
  expect(played).toEqual({
    first: "Say 5.",
    steps: [
      { text: "The reply must be a number.", reward: -0.5, done: false, metrics: { invalid_action: 1 } },
      {
        text: "Error: guess: Input should be a valid integer",
        reward: -0.5,
        done: false,
        metrics: { invalid_action: 1 },
      },
      { text: "Again.", reward: 0, done: false, metrics: { invalid_action: 0 } },
      { text: "", reward: 1, done: true, metrics: { invalid_action: 0 } },
    ],
  });
  expect(asked.slice(-4).map(({ data }) => data)).toEqual([
    { seed: expect.any(Number), number: 5 },
    { guess: 1.5 },
    { guess: 4 },
    { guess: 5 },
  ]);
});

test("a task's own text is the first message, and its seed stays the same", async () => {
  const { url, asked } = await game();
  const tasks = [{ id: "a", text: "Guess!" }, { id: "b" }];
  const environment = await connect(url, { tasks: [...tasks, { id: "c", reset: { seed: 7 } }] });
  const env = environment.open("training");
  expect((await play(env, environment, "a", [])).first).toBe("Guess!");
  for (const id of ["b", "a", "c"]) await play(env, environment, id, []);
  const [a, b, again, c] = asked.filter(({ type }) => type === "reset").slice(-4);
  expect(again!.data).toEqual(a!.data);
  expect(b!.data.seed).not.toBe(a!.data.seed);
  expect(c!.data).toEqual({ seed: 7 });
});

test.each<[Fault, RegExp]>([
  ["refuse", /environment say, task f: no such level/],
  ["over", /task f: the episode was over before the first action/],
  ["error", /environment say, task f: the board is on fire/],
  ["drop", /task f: the connection was closed/],
  ["late", /task f: the server did not answer within 0.2 s/],
  ["no reward", /task f: the server sent no reward at the end of the episode \(NaN is sent as null\)/],
  ["NaN", /task f: the server sent a reply that is not JSON/],
  ["odd reward", /task f: the server sent a reward that is not a number/],
  ["no text", /task f: the observation has no text in its field prompt/],
])(
  "an episode with the fault %s is an error with the task's id, and the next one is played",
  async (fault, message) => {
    const { url } = await game();
    const tasks = [...TASKS, { id: "f", reset: { number: 9, fault } }];
    const environment = await connect(url, { tasks, environment_timeout: 0.2 });
    const env = environment.open("training");
    const replies = fault === "no text" ? ["1"] : ["1", "9"];
    await expect(play(env, environment, "f", replies)).rejects.toThrow(message);
    expect((await play(env, environment, "say 4", ["4"])).steps).toMatchObject([{ reward: 1, done: true }]);
  },
);

test("more episodes than the server has sessions wait for their turn", async () => {
  const { url, sessions } = await game({ capacity: 3 });
  const tasks = Array.from({ length: 40 }, (_, number) => ({ id: `${number}`, reset: { number } }));
  const environment = await connect(url, { tasks: [...tasks, { id: "held", split: "eval" }] });
  const rewards = await Promise.all(
    tasks.map(async ({ id }) => {
      const env = environment.open("training");
      const { steps } = await play(env, environment, id, [id]);
      await env.close?.();
      return steps[0]!.reward;
    }),
  );
  expect(rewards).toEqual(tasks.map(() => 1));
  expect(sessions.most).toBe(3);
  expect(sessions.refused).toBeLessThan(5);
  environment.close();
  await until(() => sessions.open === 0);
});

test("an episode that is left in the middle gives its session back", async () => {
  const { url, sessions } = await game({ capacity: 1 });
  const environment = await connect(url);
  const env = environment.open("training");
  await play(env, environment, "say 4", ["1"]);
  await env.close?.();
  await play(environment.open("training"), environment, "say 5", ["5"]);
  expect(sessions.most).toBe(1);
});

test("an episode that is given up while it waits takes no session", async () => {
  const { url, sessions } = await game({ capacity: 1 });
  const environment = await connect(url);
  const [busy, given, last] = [0, 1, 2].map(() => environment.open("training")) as [
    TextEnvironment,
    ...TextEnvironment[],
  ];
  await play(busy, environment, "say 4", ["1"]);
  const waiting = given!.acquire?.();
  await given!.close?.();
  await busy.close?.();
  await waiting;
  expect((await play(last!, environment, "say 5", ["5"])).steps).toMatchObject([{ reward: 1 }]);
  environment.close();
  await until(() => sessions.open === 0);
});

test("a full server is waited for", async () => {
  const { url, sessions } = await game({ capacity: 1 });
  const other = await connect(url);
  const busy = other.open("training");
  await play(busy, other, "say 4", []);
  const notes: string[] = [];
  const second = connect(url, { onNote: (text) => notes.push(text) });
  await until(() => notes.length > 0);
  other.close();
  await busy.close?.();
  const environment = await second;
  expect((await play(environment.open("training"), environment, "say 4", ["4"])).steps).toMatchObject([{ reward: 1 }]);
  expect([notes, sessions.refused > 0]).toEqual([[`${url} has no free session: waiting for one`], true]);
});

test("a server that restarts loses the running episode only", async () => {
  const first = await game();
  const notes: string[] = [];
  const environment = await connect(first.url, { onNote: (text) => notes.push(text) });
  const env = environment.open("training");
  await play(env, environment, "say 4", ["1"]);
  await first.close();
  await expect(env.step("4")).rejects.toThrow(/environment say, task say 4: the connection was closed/);
  await env.close?.();
  const next = play(environment.open("training"), environment, "say 5", ["5"]);
  await until(() => notes.some((text) => text.includes("cannot be reached: trying again")));
  await game({ port: first.port });
  expect((await next).steps).toMatchObject([{ reward: 1, done: true }]);
  expect(notes[0]).toMatch(
    /^an episode cannot be scored: environment say, task say 4: the connection was closed \(\d+\)$/,
  );
});

test("a server that does not come back is an error after environment_timeout", async () => {
  const first = await game();
  const environment = await connect(first.url, { environment_timeout: 0.3 });
  await first.close();
  await expect(play(environment.open("training"), environment, "say 5", ["5"])).rejects.toThrow("cannot connect to");
});

test("what is not an OpenEnv server, or another than expected, is refused at once", async () => {
  const { url } = await game();
  const schemaless = await game({ schema: { action: {} } });
  const refused = async (to: string, options: Partial<ConnectOptions> = {}) =>
    connect(to, options).then(
      () => "connected",
      (error: Error) => error.message,
    );
  expect(await refused("localhost")).toMatch(/not a URL: localhost; such as http/);
  expect(await refused("http://127.0.0.1:9")).toMatch(/cannot connect to: http:.*is the server running\?/);
  expect(await refused(`${url}/web`)).toMatch(/no OpenEnv server \(HTTP 404\).*without a path/);
  expect(await refused(schemaless.url)).toMatch(/no OpenEnv server \(its reply has no schemas/);
  expect(await refused(url, { action_template: '{"message": "{text}"}' })).toMatch(/lacks.*guess/);
  expect(await refused(url, { observation_field: "board" })).toMatch(/task say \d.*no text in its field board.*prompt/);
  expect(await refused(url, { tasks: [TASKS[0]!, TASKS[0]!] })).toMatch(/two tasks have the same id: say 4/);
});
