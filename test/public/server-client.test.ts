// SQLEnvClient against a real server: same observations, timeouts, retries and errors with a remedy.
import { createServer } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { ServerError } from "sqlenv";
import { SQLEnvClient } from "sqlenv/gym/client";
import { GUIDED_RULES, SQLEnvironment } from "sqlenv/gym/env";
import { evaluate, playEpisode } from "sqlenv/gym/evaluation";
import { keywordPlayer, oraclePlayer, type Player, randomPlayer } from "sqlenv/gym/players";
import { afterAll, expect, test } from "vitest";
import { smallDataFolder, sqlenv } from "../helpers/cli-process.ts";
import { SLOW, serve, Talker, until } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const data = await smallDataSet();
const server = await serve({ step_budget: 10 });
afterAll(() => server.close());
const quick = { retries: 2, retrySeconds: 0.01 };
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "none",
    (error: unknown) => (error instanceof ServerError ? error.code : String(error)),
  );

test("observations equal the local environment's", async () => {
  const [ours, theirs] = [new SQLEnvironment(data), new SQLEnvClient(server.url)];
  for (const question of data.questions.slice(0, 6)) {
    for (const player of [randomPlayer(), keywordPlayer(), oraclePlayer()]) {
      const [here, there] = [
        await playEpisode(ours, player, { question }),
        await playEpisode(theirs, player, { question }),
      ];
      expect(there).toEqual(here);
    }
  }
  expect((await theirs.state()).step_budget).toBe(10);
  await theirs.close();
});

test("a server reports the rules it was started with to its clients", async () => {
  const guided = await serve({ step_budget: 10, threads: 1, ...GUIDED_RULES });
  const [ours, theirs] = [new SQLEnvironment(data, GUIDED_RULES), new SQLEnvClient(guided.url)];
  try {
    for (const question of data.questions.slice(0, 3)) {
      for (const player of [keywordPlayer(), oraclePlayer(), stubborn]) {
        const here = await playEpisode(ours, player, { question });
        expect(await playEpisode(theirs, player, { question })).toEqual(here);
        expect(here.rules).toBe("env-1+hints+stuck3+last+many");
        if (player === stubborn) expect(here).toMatchObject({ done_reason: "stuck", step_count: 3, correctness: 0 });
      }
    }
    expect((await theirs.state()).rules).toBe("env-1+hints+stuck3+last+many");
    const about = (await (await fetch(`${guided.url}/metadata`)).json()) as { description: string };
    expect(about.description).toContain("env-1+hints+stuck3+last+many");
  } finally {
    await theirs.close();
    await guided.close();
  }
});

/** Repeats a failing action until the end. */
const stubborn: Player = {
  name: "stubborn",
  start: () => () => ({ action: { action_type: "QUERY", argument: "SELECT nope" } }),
};

test("evaluate() returns the same summary for a remote environment", async () => {
  const options = { split: "eval", seed: 3, episodes: 30, concurrency: 4 } as const;
  const here = await evaluate(data, keywordPlayer(), options);
  const environment = () => new SQLEnvClient(server.url);
  expect(await evaluate(data, keywordPlayer(), { ...options, environment })).toEqual(here);
  await until(() => server.sessions === 0);
});

test("sqlenv eval --server plays on the server", async () => {
  const flags = ["eval", "--player", "keyword", "--data", await smallDataFolder(), "--json"];
  const [here, there] = [await sqlenv(flags), await sqlenv([...flags, "--server", server.url, "--concurrency", "4"])];
  expect(JSON.parse(there.stdout)).toEqual(JSON.parse(here.stdout));
});

test("several servers at one address: a session stays with its socket's server", async () => {
  const servers = [await serve({ threads: 1 }), await serve({ threads: 1 })];
  let next = 0;
  const balancer = createTcpServer((client) => {
    const upstream = connect(servers[next++ % 2]!.port, "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.pipe(upstream).pipe(client);
  }).listen(0, "127.0.0.1");
  await until(() => balancer.listening);
  const clients = Array.from(
    { length: 6 },
    () => new SQLEnvClient(`http://127.0.0.1:${(balancer.address() as AddressInfo).port}`),
  );
  await Promise.all(clients.map((client, seed) => client.reset({ seed, episode_id: `episode ${seed}` })));
  expect(servers.map(({ sessions }) => sessions)).toEqual([3, 3]);
  for (let i = 1; i <= 4; i++) {
    const seen = await Promise.all(
      clients.map((client) => client.step({ action_type: "QUERY", argument: `SELECT ${i}` })),
    );
    expect(seen.every(({ step_count }) => step_count === i)).toBe(true);
  }
  const states = await Promise.all(clients.map((client) => client.state()));
  expect(states.map(({ episode_id }) => episode_id)).toEqual(clients.map((_, seed) => `episode ${seed}`));
  await Promise.all(clients.map((client) => client.close()));
  balancer.close();
  await Promise.all(servers.map((one) => one.close()));
});

test("server errors keep their codes, and the session continues", async () => {
  const client = new SQLEnvClient(server.url);
  expect(await codeOf(client.step({ action_type: "QUERY", argument: "SELECT 1" }))).toBe("not_connected");
  expect(await codeOf(client.reset({ question_id: "nope" }))).toBe("EXECUTION_ERROR");
  await client.reset({ seed: 1, episode_id: "mine" });
  expect(await codeOf(client.step({ action_type: "DROP" as never, argument: "x" }))).toBe("VALIDATION_ERROR");
  expect((await client.step({ action_type: "QUERY", argument: "SELECT 1" })).step_count).toBe(1);
  expect((await client.state()).episode_id).toBe("mine");
  await client.close();
});

test("concurrent requests are answered in order", async () => {
  const client = new SQLEnvClient(server.url);
  const reset = client.reset({ seed: 2 });
  const steps = [1, 2, 3].map((n) => client.step({ action_type: "QUERY", argument: `SELECT ${n}` }));
  expect((await reset).step_count).toBe(0);
  expect((await Promise.all(steps)).map(({ result }) => result)).toEqual(["1\n1", "2\n2", "3\n3"]);
  await client.close();
});

test("a lost connection is reported, and the next reset reconnects", async () => {
  const first = await serve({ threads: 1 });
  const client = new SQLEnvClient(first.url, { retries: 30, retrySeconds: 0.01 });
  await client.reset({ seed: 1 });
  await first.close();
  expect(await codeOf(client.step({ action_type: "QUERY", argument: "SELECT 1" }))).toBe("connection_lost");
  const second = serve({ port: first.port, threads: 1 });
  expect((await client.reset({ seed: 1 })).step_count).toBe(0);
  expect((await client.step({ action_type: "QUERY", argument: "SELECT 1" })).step_count).toBe(1);
  await client.close();
  await (await second).close();
});

test("no server, a full server, a server that does not answer", async () => {
  expect(await codeOf(new SQLEnvClient("http://127.0.0.1:9", quick).reset())).toBe("connect_failed");
  expect(() => new SQLEnvClient("not a url")).toThrow(/such as http:\/\/localhost:8000/);
  const full = await serve({ maxSessions: 1, threads: 1 });
  const holder = new Talker(full.url);
  await holder.ask({ type: "state" });
  expect(await codeOf(new SQLEnvClient(full.url, quick).reset())).toBe("CAPACITY_REACHED");
  const patient = new SQLEnvClient(full.url, { retries: 50, retrySeconds: 0.01 });
  const waiting = patient.reset();
  await holder.close();
  expect((await waiting).step_count).toBe(0); // it got the freed slot
  await patient.close();
  await full.close();

  const deaf = createServer(() => {}).listen(0, "127.0.0.1");
  await until(() => deaf.listening);
  const url = `http://127.0.0.1:${(deaf.address() as AddressInfo).port}`;
  expect(await codeOf(new SQLEnvClient(url, { ...quick, retries: 0, connectSeconds: 0.1 }).reset())).toBe(
    "connect_failed",
  );
  deaf.closeAllConnections();
  deaf.close();
});

test("after a timeout the connection is closed, so that no late reply is mistaken for another", async () => {
  const client = new SQLEnvClient(server.url, { replySeconds: 0.2 });
  await client.reset({ seed: 1 });
  expect(await codeOf(client.step({ action_type: "QUERY", argument: SLOW }))).toBe("timeout");
  expect(await codeOf(client.step({ action_type: "QUERY", argument: "SELECT 1" }))).toBe("timeout");
  await until(() => server.sessions === 0);
  const again = new SQLEnvClient(server.url);
  await again.reset({ seed: 1 });
  expect((await again.step({ action_type: "QUERY", argument: "SELECT 2" })).result).toBe("2\n2");
  await again.close();
});

test("the API key is required and sent by the client; other origins are refused", async () => {
  const guarded = await serve({ apiKeys: ["other", "secret"], threads: 1, origins: ["https://friend.example"] });
  expect((await fetch(`${guarded.url}/health`)).status).toBe(200);
  for (const headers of [{}, { "x-api-key": "Secret" }, { authorization: "Bearer secre" }])
    expect((await fetch(`${guarded.url}/schema`, { headers })).status).toBe(401);
  for (const headers of [{ "x-api-key": "secret" }, { authorization: "Bearer secret" }])
    expect((await fetch(`${guarded.url}/schema`, { headers })).status).toBe(200);
  expect(await codeOf(new SQLEnvClient(guarded.url, quick).reset())).toBe("connect_failed");
  const client = new SQLEnvClient(guarded.url, { apiKey: "secret" });
  expect((await client.reset({ seed: 1 })).done).toBe(false);
  await client.close();
  const from = async (origin: string) => {
    const talker = new Talker(guarded.url, "/ws?api_key=secret", { origin });
    const isIn = await talker.opened.then(
      () => true,
      () => false,
    );
    if (isIn) await talker.close();
    return isIn;
  };
  expect(await from("https://friend.example")).toBe(true);
  expect(await from(guarded.url)).toBe(true);
  expect(await from("https://evil.example")).toBe(false);
  const cors = await fetch(`${guarded.url}/health`, { headers: { origin: "https://friend.example" } });
  expect(cors.headers.get("access-control-allow-origin")).toBe("https://friend.example");
  await guarded.close();
});
