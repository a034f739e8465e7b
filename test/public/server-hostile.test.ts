// Clients that claim too much memory, too many sessions or foreign names: bounded, without affecting others.
import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { type LogRecord, MAX_MESSAGE_BYTES, MAX_WAITING_BYTES } from "sqlenv/apps/openenv";
import { afterAll, describe, expect, test } from "vitest";
import { SLOW, serve, Talker, until, type Wire } from "../helpers/server-place.ts";

// Behind a trusted proxy, so that a test can be many clients.
const server = await serve({ trustProxies: ["127.0.0.1"], maxSessions: 6, sessionsPerClient: 4, threads: 1 });
afterAll(() => server.close());
const as = (client: number) => ({ "x-forwarded-for": `203.0.113.${client}` });

async function metric(name: string, url = server.url): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { headers: as(250) })).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

async function rpc(client: number, method: string, params: object = {}): Promise<Wire> {
  const body = JSON.stringify({ jsonrpc: "2.0", method, params, id: 1 });
  const response = await fetch(`${server.url}/mcp`, { method: "POST", body, headers: as(client) });
  return (await response.json()) as Wire;
}

/** The status of a GET with a custom Host header, which fetch does not allow. */
function statusFor(url: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
      .on("error", reject)
      .end();
  });
}

/** A connection that sends a head and part of its body, and no more. */
function halfBody(port: number, bytes: number, headers: Readonly<Record<string, string>>): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /step HTTP/1.1\r\nHost: localhost\r\n${lines.join("")}Content-Length: ${bytes + 1}\r\n\r\n`);
  socket.write("x".repeat(bytes));
  return socket;
}

describe("memory", () => {
  test("a client's unfinished bodies are bounded; beyond that it gets 429, and others are served", async () => {
    const sockets: Socket[] = [];
    const refused: string[] = [];
    for (let i = 0; i < 100; i++) {
      const socket = halfBody(server.port, 100_000, as(1));
      socket.once("data", (bytes) => refused.push(String(bytes)));
      sockets.push(socket);
    }
    await until(() => refused.length > 0);
    expect(refused[0]).toMatch(/^HTTP\/1.1 429 [\s\S]*retry-after: 1/i);
    expect(await metric("sqlenv_held_bytes")).toBeLessThan(9e6);
    expect((await fetch(`${server.url}/reset`, { method: "POST", headers: as(2) })).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await metric("sqlenv_held_bytes")) === 0);
  });

  test("queued requests are bounded, even without bodies on one connection", async () => {
    const busy = await serve({ threads: 1, ratePerClient: 0 });
    const talkers = [1, 2, 3].map(() => new Talker(busy.url));
    for (const talker of talkers) {
      await talker.ask({ type: "reset" });
      await talker.send({ type: "step", data: { action_type: "QUERY", argument: SLOW } }); // keeps the only thread busy
    }
    const count = 6_000;
    const socket = connect(busy.port, "127.0.0.1");
    socket.on("error", () => {});
    let replies = "";
    socket.on("data", (bytes) => {
      replies += bytes.toString("latin1");
    });
    socket.write("GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(count));
    const answered = (status: string) => replies.split(`HTTP/1.1 ${status}`).length - 1;
    await until(() => answered("") === count);
    expect(answered("200")).toBeGreaterThan(512); // more than a client with all its sessions requests at once
    expect(answered("429")).toBeGreaterThan(0);
    socket.destroy();
    await Promise.all(talkers.map((talker) => talker.close()));
    await busy.close();
  });

  test("bodies are not read without the key or from a wrong host or origin", async () => {
    const guarded = await serve({ apiKeys: ["secret"], threads: 1 });
    const answers = [];
    for (const headers of [{}, { "x-api-key": "wrong" }, { "x-api-key": "secret", origin: "https://evil.example" }]) {
      const socket = halfBody(guarded.port, 1_000, headers as Record<string, string>);
      answers.push(String(((await once(socket, "data")) as [Buffer])[0]).slice(9, 12));
      await once(socket, "close"); // no further request can follow an unread body
    }
    expect(answers).toEqual(["401", "401", "403"]);
    await guarded.close();
  });

  test("a socket's queued messages are bounded by bytes; beyond that it is paused", async () => {
    const talker = new Talker(server.url, "/ws", as(3));
    await talker.ask({ type: "reset" });
    await talker.send({ type: "step", data: { action_type: "QUERY", argument: SLOW } });
    const large = JSON.stringify({ type: "step", data: { action_type: "QUERY", argument: "x".repeat(100_000) } });
    for (let i = 0; i < 50; i++) await talker.send(large);
    let [most, answered] = [0, 0];
    const replies = Promise.all(Array.from({ length: 51 }, () => talker.next().then(() => answered++)));
    while (answered < 51) most = Math.max(most, await metric("sqlenv_held_bytes"));
    await replies;
    expect(most).toBeLessThan(MAX_WAITING_BYTES + 2 * MAX_MESSAGE_BYTES);
    await talker.close();
    expect(await metric("sqlenv_held_bytes")).toBe(0);
  });

  test("the largest action fits into a message, a slightly larger one does not", async () => {
    const talker = new Talker(server.url, "/ws", as(3));
    talker.socket.on("error", () => {});
    await talker.ask({ type: "reset" });
    const action = (length: number) => ({ action_type: "QUERY", argument: "\u0001".repeat(length) });
    const reply = await talker.ask({ type: "step", data: action(20_000) });
    expect(reply.data.observation.error_class).toBe("too_large"); // above the statement limit, and answered like any other
    await talker.send({ type: "step", data: action(22_000) });
    expect((await talker.closed).code).toBe(1009);
  });

  test("a message with thousands of errors gets a short reply", async () => {
    const keys = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`unknown${i}`, i]));
    const body = JSON.stringify({ action: { ...keys, action_type: "QUERY", argument: "SELECT 1" } });
    const response = await fetch(`${server.url}/step`, { method: "POST", body, headers: as(4) });
    const text = await response.text();
    expect([response.status, (JSON.parse(text) as Wire).detail.length]).toEqual([422, 20]);
    expect(text.length).toBeLessThan(5_000);
    const rpcKeys = await rpc(4, "tools/call", { name: "query", arguments: keys });
    expect(JSON.stringify(rpcKeys).length).toBeLessThan(2_000);
  });

  test("an unread reply times out, and the reason is logged", async () => {
    let cancel: () => void = () => {};
    const cancelled = new Promise<void>((resolve) => {
      cancel = resolve;
    });
    let sent = 0;
    const endless = async ({ url }: Request) => {
      if (new URL(url).pathname !== "/endless") return undefined;
      const chunk = new Uint8Array(65_536);
      return new Response(
        new ReadableStream({
          pull: (controller) => {
            sent += chunk.length;
            controller.enqueue(chunk);
          },
          cancel,
        }),
      );
    };
    const strict = await serve({ pages: [endless], replySeconds: 0.3, threads: 1 });
    const socket = connect(strict.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "data");
    socket.pause();
    await cancelled;
    expect(sent).toBeLessThan(50e6); // what network buffers hold; it would have continued without end
    socket.destroy();
    await strict.close();
  });

  test("a client that does not read gets no endless pongs", async () => {
    const socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(
      `GET /ws HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 203.0.113.9\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    await once(socket, "data");
    socket.pause();
    const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 125, 0, 0, 0, 0]), Buffer.alloc(125)]);
    const burst = Buffer.concat(Array.from({ length: 1_000 }, () => ping));
    for (let i = 0; i < 300; i++) if (!socket.write(burst)) await once(socket, "drain"); // 39 MB of pings, all accepted
    let read = 0;
    let tail = "";
    socket.on("data", (bytes) => {
      read += bytes.length;
      tail = (tail + bytes.toString("latin1")).slice(-500);
    });
    socket.resume();
    const state = Buffer.from('{"type":"state"}');
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | state.length, 0, 0, 0, 0]), state]));
    await until(() => tail.includes('"step_count"'));
    expect(read).toBeLessThan(20e6); // what network buffers held until then
    socket.destroy();
    await until(() => server.sessions === 0);
  });
});

describe("sessions", () => {
  test("one client cannot take all slots; when none is free, the client with the most loses an idle one", async () => {
    const ids = [];
    for (let i = 0; i < 4; i++) ids.push((await rpc(1, "openenv/session/create")).result.session_id);
    const fifth = await rpc(1, "openenv/session/create");
    expect(fifth.error).toMatchObject({ code: -32000, data: { active_sessions: 4, max_sessions: 4 } });
    expect(fifth.error.message).toContain("--sessions-per-client");
    await rpc(1, "tools/call", { name: "start", arguments: {}, session_id: ids[0] });
    const others = [new Talker(server.url, "/ws", as(2)), new Talker(server.url, "/ws", as(2))];
    for (const talker of others) await talker.ask({ type: "reset" });
    expect(server.sessions).toBe(6); // full
    const late = new Talker(server.url, "/ws", as(3));
    expect((await late.ask({ type: "reset" })).type).toBe("observation");
    expect(server.sessions).toBe(6);
    const alive = [];
    for (const session_id of ids) alive.push("result" in (await rpc(1, "tools/list", { session_id })));
    expect(alive).toEqual([true, false, true, true]); // the longest idle unused one
    // A client that has as many as the largest evicts nobody.
    const more = await rpc(2, "openenv/session/create");
    expect(more.error).toMatchObject({ code: -32000, data: { active_sessions: 6, max_sessions: 6 } });
    for (const session_id of ids) await rpc(1, "openenv/session/close", { session_id });
    await Promise.all([...others, late].map((talker) => talker.close()));
    await until(() => server.sessions === 0);
  });

  test("a session is closed only by its client, a socket's only by its socket", async () => {
    const { session_id } = (await rpc(1, "openenv/session/create")).result;
    expect((await rpc(2, "openenv/session/close", { session_id })).error.code).toBe(-32602);
    expect((await rpc(1, "openenv/session/close", { session_id })).result).toEqual({ session_id, closed: true });
    const talker = new Talker(server.url, "/ws", as(1));
    const create = { jsonrpc: "2.0", method: "openenv/session/create", id: 1 };
    const own = (await talker.ask({ type: "mcp", data: create })).data.result.session_id as string;
    expect((await rpc(1, "openenv/session/close", { session_id: own })).error.code).toBe(-32600);
    expect(server.sessions).toBe(1);
    expect((await talker.ask({ type: "state" })).type).toBe("state");
    await talker.close();
  });

  test("plain HTTP sessions of different clients are separate", async () => {
    const call = (client: number, path: string, init: RequestInit = {}) =>
      fetch(server.url + path, { ...init, headers: as(client) }).then((response) => response.json() as Promise<Wire>);
    const body = (id: string) => ({ method: "POST", body: JSON.stringify({ episode_id: id }) });
    await call(1, "/reset", body("one"));
    await call(2, "/reset", body("two"));
    expect([(await call(1, "/state")).episode_id, (await call(2, "/state")).episode_id]).toEqual(["one", "two"]);
    expect((await call(3, "/state")).episode_id).toBeNull();
  });
});

describe("names and keys", () => {
  test("a foreign host name is refused, for every route and for sockets", async () => {
    for (const path of ["/state", "/metrics", "/metadata", "/health", "/sqlenv/splits", "/web/", "/nothing"]) {
      expect([path, await statusFor(server.url + path, "evil.example")]).toEqual([path, 403]);
      expect([path, await statusFor(server.url + path, `localhost:${server.port}`)]).not.toEqual([path, 403]);
    }
    const rebound = new Talker(server.url, "/ws", { host: "evil.example" });
    await expect(rebound.opened).rejects.toThrow("403");
  });

  test("a server on every interface accepts any host name, or only the given ones", async () => {
    const any = await serve({ host: "0.0.0.0", threads: 1 });
    const named = await serve({ host: "0.0.0.0", allowedHosts: ["env.example"], threads: 1 });
    const status = ({ port }: { port: number }, host: string) => statusFor(`http://127.0.0.1:${port}/schema`, host);
    expect(await status(any, "evil.example")).toBe(200);
    expect(await status(named, "env.example")).toBe(200);
    expect(await status(named, "evil.example")).toBe(403);
    await Promise.all([any.close(), named.close()]);
  });

  test("after ten wrong keys the address has to wait, except with the right key; the log is not flooded", async () => {
    const log: LogRecord[] = [];
    const guarded = await serve({ apiKeys: ["secret"], threads: 1, onLog: (record) => log.push(record) });
    const statuses = [];
    for (let i = 0; i < 30; i++)
      statuses.push((await fetch(`${guarded.url}/schema`, { headers: { "x-api-key": `guess ${i}` } })).status);
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401));
    expect(statuses.slice(10).filter((status) => status === 429).length).toBeGreaterThan(10);
    const headers = { "x-api-key": "guess" };
    let waiting = await fetch(`${guarded.url}/schema`, { headers });
    while (waiting.status !== 429) waiting = await fetch(`${guarded.url}/schema`, { headers });
    expect(Number(waiting.headers.get("retry-after"))).toBeGreaterThan(0);
    const wrong = new Talker(guarded.url, "/ws?api_key=guess");
    await expect(wrong.opened).rejects.toThrow("429");
    const right = new Talker(guarded.url, "/ws?api_key=secret"); // at the same address
    expect((await right.ask({ type: "reset" })).type).toBe("observation");
    await right.close();
    expect((await fetch(`${guarded.url}/health`)).status).toBe(200);
    expect(log.filter(({ event }) => event === "refused").length).toBeLessThan(10);
    await guarded.close();
  });

  test("a key in the URL is for sockets only", async () => {
    const guarded = await serve({ apiKeys: ["secret"], threads: 1 });
    expect((await fetch(`${guarded.url}/schema?api_key=secret`)).status).toBe(401);
    const talker = new Talker(guarded.url, "/ws?api_key=secret");
    expect((await talker.ask({ type: "reset" })).type).toBe("observation");
    await talker.close();
    await guarded.close();
  });

  test("handshakes count toward the rate limit", async () => {
    const slow = await serve({ ratePerClient: 3, threads: 1 });
    const talkers = Array.from({ length: 8 }, () => new Talker(slow.url));
    const opened = await Promise.all(
      talkers.map(({ opened: done }) =>
        done.then(
          () => true,
          (error: Error) => {
            expect(error.message).toContain("429");
            return false;
          },
        ),
      ),
    );
    expect(opened.filter(Boolean).length).toBeLessThan(8);
    await slow.close();
  });

  test("session ids are secrets and not logged", async () => {
    const log: LogRecord[] = [];
    const talkative = await serve({ threads: 1, onLog: (record) => log.push(record) });
    const talker = new Talker(talkative.url);
    const create = { jsonrpc: "2.0", method: "openenv/session/create", id: 1 };
    const { session_id } = (await talker.ask({ type: "mcp", data: create })).data.result;
    await talker.close();
    await talkative.close();
    expect(log.map(({ event }) => event)).toEqual(expect.arrayContaining(["session_open", "socket_closed"]));
    expect(JSON.stringify(log)).not.toContain(session_id);
  });
});
