// Misbehaving clients and a killed server: every client gets a reply or a clean close, and nothing leaks.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { ServerError } from "sqlenv";
import { SQLEnvClient } from "sqlenv/gym/client";
import { afterAll, afterEach, expect, onTestFinished, test } from "vitest";
import { smallDataFolder, start } from "../helpers/cli-process.ts";
import { ENDED, post, SLOW, serve, Talker, until } from "../helpers/server-place.ts";

const server = await serve({ maxSessions: 64, maxMessageBytes: 100_000 });
afterAll(() => server.close());

/** The server must be in its initial state after every test. */
afterEach(async () => {
  await until(() => server.sessions === 0);
  const talker = new Talker(server.url);
  expect((await talker.ask({ type: "reset", data: { seed: 1 } })).type).toBe("observation");
  expect((await talker.step("QUERY", "SELECT 1")).data.observation.result).toBe("1\n1");
  await talker.close();
  expect((await post(`${server.url}/reset`)).status).toBe(200);
});

/** A raw TCP connection after a WebSocket handshake. */
async function rawSocket(url = server.url): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(
    `GET /ws HTTP/1.1\r\nHost: ${hostname}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  );
  const [head] = (await once(socket, "data")) as [Buffer];
  expect(String(head)).toContain("101 Switching Protocols");
  return socket;
}

/** The next frame on a raw socket, ignoring pings. */
async function said(socket: Socket): Promise<Buffer> {
  for (;;) {
    let [bytes] = (await once(socket, "data")) as [Buffer];
    while (bytes[0] === 0x89) bytes = bytes.subarray(2);
    if (bytes.length > 0) return bytes;
  }
}

/** A masked frame. */
function frame(opcode: number, payload: Buffer, { fin = true } = {}): Buffer {
  const mask = Buffer.from([1, 2, 3, 4]);
  const head =
    payload.length < 126
      ? Buffer.from([(fin ? 0x80 : 0) | opcode, 0x80 | payload.length])
      : Buffer.from([(fin ? 0x80 : 0) | opcode, 0x80 | 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, mask, payload.map((byte, i) => byte ^ mask[i % 4]!)]);
}

test("truncated frames, by byte and by fragment", async () => {
  const socket = await rawSocket();
  const whole = frame(1, Buffer.from('{"type":"state"}'));
  for (const byte of whole) socket.write(Buffer.from([byte])); // a byte at a time is fine
  const answer = await said(socket);
  expect(String(answer)).toContain('"type":"state"');
  socket.write(whole.subarray(0, 7)); // and nothing more
  socket.destroy();
  const fragments = await rawSocket();
  fragments.write(frame(1, Buffer.from('{"type":'), { fin: false }));
  fragments.write(frame(0, Buffer.from('"state"}')));
  const joined = await said(fragments);
  expect(String(joined)).toContain('"type":"state"');
  fragments.write(frame(1, Buffer.from('{"type":'), { fin: false }));
  fragments.destroy();
});

test("invalid frames: unmasked, reserved bits, a continuation without a start", async () => {
  const bad = [
    Buffer.from([0x81, 0x02, 0x7b, 0x7d]),
    Buffer.from([0xf1, 0x80, 1, 2, 3, 4]),
    frame(0, Buffer.from("x")),
  ];
  for (const bytes of bad) {
    const socket = await rawSocket();
    socket.write(bytes);
    const reply = await said(socket);
    expect([reply[0], reply.readUInt16BE(2)]).toEqual([0x88, 1002]); // a close frame: protocol error
    socket.destroy();
  }
});

test("invalid UTF-8, binary frames, giant messages", async () => {
  const socket = await rawSocket();
  socket.write(frame(1, Buffer.from([0xff, 0xfe, 0x7b])));
  const reply = await said(socket);
  expect(reply.readUInt16BE(2)).toBe(1007);
  socket.destroy();
  const binary = new Talker(server.url);
  expect((await binary.ask(Buffer.from('{"type":"state"}'))).data.code).toBe("SESSION_ERROR");
  expect((await binary.closed).code).toBe(1000);
  const giant = new Talker(server.url);
  giant.socket.on("error", () => {});
  await giant.send(`{"type":"step","data":{"action_type":"QUERY","argument":"${"x".repeat(200_000)}"}}`);
  expect((await giant.closed).code).toBe(1009);
  const declared = await rawSocket();
  declared.write(Buffer.from([0x81, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4])); // promises 2^48 bytes
  const refusal = await said(declared);
  expect(refusal[0]).toBe(0x88);
  declared.destroy();
  const body = await fetch(`${server.url}/step`, { method: "POST", body: "x".repeat(200_000) }).then(
    ({ status }) => status,
    () => 413, // the connection may end before everything is sent
  );
  expect(body).toBe(413);
  expect((await post(`${server.url}/step`, `${"[".repeat(50_000)}`)).status).toBe(422);
  const deep = `{"action":{"action_type":${"[".repeat(45_000)}${"]".repeat(45_000)}}}`;
  expect((await post(`${server.url}/step`, deep)).status).toBe(422);
  const rpc = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${'{"a":'.repeat(15_000)}1${"}".repeat(15_000)}}`;
  expect((await post(`${server.url}/mcp`, rpc)).body.error.code).toBeLessThan(-32000);
});

test("JSON nested too deep for a thread's queue is refused, and leaves nothing queued", async () => {
  const nest = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  const rpc = (levels: number) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"sql":${nest(levels)}}}}`;
  expect((await post(`${server.url}/mcp`, rpc(5_000))).body.error).toMatchObject({ code: -32700 });
  expect((await post(`${server.url}/mcp`, rpc(40))).body.error).toMatchObject({ code: -32603 }); // read, and no text
  expect((await post(`${server.url}/step`, `{"action":${nest(100)}}`)).body.detail[0].type).toBe("json_invalid");
  expect((await post(`${server.url}/sqlenv/tasks`, nest(100))).status).toBe(422);
  const [talker, mcp] = [new Talker(server.url), new Talker(server.url, "/mcp")];
  expect((await talker.ask(`{"type":"step","data":{"a":${nest(100)}}}`)).data.code).toBe("INVALID_JSON");
  expect((await mcp.ask(rpc(100))).error.code).toBe(-32700);
  await Promise.all([talker.close(), mcp.close()]);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(/^sqlenv_requests_waiting (\d+)$/m.exec(metrics)?.[1]).toBe("0");
});

test("malformed texts each get an error and leave the session usable", async () => {
  const talker = new Talker(server.url);
  const odd = [
    "",
    " ",
    '{"type":"reset","data":{"__proto__":{"question_id":"x"}}}',
    '{"type":"__proto__"}',
    '{"type":"constructor"}',
    '{"type":["reset"]}',
    '{"type":"step","data":{"action_type":"QUERY","argument":{"$ne":1}}}',
    '{"type":"step","data":{"action_type":"QUERY","argument":"\\ud800"}}',
    '{"type":"reset","data":{"index":1e308}}',
    '{"type":"reset","data":{"split":{"toString":1}}}',
    `{"type":"step","data":${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}}`,
    '{"type":{"toString":1}}',
    `{"type":"step","data":{"action_type":${"[".repeat(45_000)}${"]".repeat(45_000)}}}`,
    `{"type":"reset","data":{"seed":${"[".repeat(45_000)}${"]".repeat(45_000)}}}`,
    `{"type":"step","data":{"type":"call_tool","tool_name":"query","arguments":{"sql":${"[".repeat(40_000)}${"]".repeat(40_000)}}}}`,
    '{"type":"mcp","data":{"jsonrpc":"2.0","method":"tools/call","params":{"name":"constructor"},"id":{}}}',
  ];
  for (const text of odd) {
    const { type } = await talker.ask(text);
    expect(["error", "observation", "mcp"], text).toContain(type);
  }
  expect((await talker.ask({ type: "reset" })).type).toBe("observation");
  await talker.close();
});

test("a flood is answered in order, and others are served meanwhile", async () => {
  const [flood, other] = [new Talker(server.url), new Talker(server.url)];
  await flood.ask({ type: "reset", data: { seed: 1 } });
  await other.ask({ type: "reset", data: { seed: 1 } });
  const count = 2_000;
  for (let i = 0; i < count; i++)
    await flood.send({ type: "step", data: { action_type: "QUERY", argument: `SELECT ${i}` } });
  expect((await other.step("QUERY", "SELECT 5")).data.observation.result).toBe("5\n5");
  const replies = [];
  for (let i = 0; i < count; i++) replies.push(await flood.next());
  expect(replies.slice(0, 15).map(({ data }) => data.observation.result)).toEqual(
    Array.from({ length: 15 }, (_, i) => `${i}\n${i}`),
  );
  expect(replies.slice(15).every(({ data }) => data.observation.error_class === "episode_done")).toBe(true);
  await Promise.all([flood.close(), other.close()]);
});

test("a client that never reads is throttled, then dropped", async () => {
  const impatient = await serve({ pingSeconds: 0.2, silentSeconds: 2, threads: 1, ratePerClient: 0 });
  const socket = await rawSocket(impatient.url);
  socket.pause();
  const burst = Buffer.concat(
    Array.from({ length: 1_000 }, () => frame(1, Buffer.from('{"type":"step","data":{"type":"list_tools"}}'))),
  );
  const offered = 50_000; // replies to all of it would be a hundred megabytes
  for (let i = 0; i < offered; i += 1_000) socket.write(burst);
  await until(() => impatient.sessions === 0); // it does not answer pings either, so it is dropped
  const metrics = await (await fetch(`${impatient.url}/metrics`)).text();
  expect(Number(/messages_total\{type="step"\} (\d+)/.exec(metrics)?.[1])).toBeLessThan(offered / 2);
  socket.destroy();
  await impatient.close();
});

test("clients that disconnect during a query, and half-open ones", async () => {
  const impatient = await serve({ pingSeconds: 0.2, silentSeconds: 2 });
  const talkers = [new Talker(impatient.url), new Talker(impatient.url)];
  await Promise.all(talkers.map((talker) => talker.ask({ type: "reset" })));
  for (const talker of talkers) await talker.send({ type: "step", data: { action_type: "QUERY", argument: SLOW } });
  talkers[0]!.socket.terminate();
  talkers[1]!.socket.pause(); // still connected, but not reading
  await until(() => impatient.sessions === 0);
  for (const talker of talkers) talker.socket.terminate();
  await impatient.close();
});

test("connections with unfinished requests or unknown paths", async () => {
  const { hostname, port } = new URL(server.url);
  const lazy = connect(Number(port), hostname);
  lazy.write("GET /ws HTTP/1.1\r\nHost: x\r\nUpgr");
  const wrong = connect(Number(port), hostname);
  wrong.write("GET /elsewhere HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  expect(String(((await once(wrong, "data")) as [Buffer])[0])).toContain("404 Not Found");
  const noise = connect(Number(port), hostname);
  noise.write(Buffer.from([0x16, 0x03, 0x01, 0, 0, 0, 0]));
  expect(String(((await once(noise, "data")) as [Buffer])[0])).toContain("400 Bad Request");
  lazy.destroy();
});

test("a refused upgrade ends its connection, even when the client never closes its side", async () => {
  const guarded = await serve({ apiKeys: ["secret"], threads: 1 });
  const upgrade = (path: string, headers: string) =>
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${headers}\r\n`;
  const refusals = [
    ["404", upgrade("/elsewhere", "")],
    ["401", upgrade("/ws", "")],
    ["403", upgrade("/ws", "Origin: https://evil.example\r\n")],
    ["400", upgrade("/ws", "X-API-Key: secret\r\n")], // no Sec-WebSocket-Key
  ] as const;
  for (const [status, head] of refusals) {
    const socket = connect({ port: guarded.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => {});
    socket.write(head);
    const ended = once(socket, "end");
    const [reply] = (await once(socket, "data")) as [Buffer];
    expect(String(reply).slice(9, 12)).toBe(status);
    await ended;
    // This side is still open: bytes are answered with a reset once the server's side is gone.
    await until(() => {
      if (!socket.destroyed) socket.write("x");
      return socket.destroyed;
    });
  }
  await guarded.close();
});

test("above its rate limit a client's sockets are slowed down and plain HTTP is refused", async () => {
  const slow = await serve({ ratePerClient: 3, threads: 1 });
  const talker = new Talker(slow.url);
  for (let i = 0; i < 6; i++) await talker.send({ type: "state" });
  for (let i = 0; i < 6; i++) expect((await talker.next()).type).toBe("state");
  let refused: Response | undefined;
  await until(async () => {
    refused = await fetch(`${slow.url}/schema`);
    return refused.status === 429;
  });
  expect(refused!.headers.get("retry-after")).toBe("1");
  expect((await fetch(`${slow.url}/health`)).status).toBe(200);
  await talker.close();
  await slow.close();
});

test("a shutdown finishes the running step and closes with 1001", async () => {
  const ending = await serve({ threads: 1 });
  const [busy, idle] = [new Talker(ending.url), new Talker(ending.url)];
  await busy.ask({ type: "reset" });
  await idle.ask({ type: "state" });
  const answer = busy.step("QUERY", SLOW);
  const pong = new Promise((resolve) => busy.socket.once("pong", resolve));
  busy.socket.ping();
  await pong; // so the step has arrived
  await post(`${ending.url}/reset`);
  const plain = connect(ending.port, "127.0.0.1");
  await once(plain, "connect");
  const body = JSON.stringify({ action: { action_type: "QUERY", argument: SLOW } });
  plain.write(`POST /step HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  expect((await fetch(`${ending.url}/health`)).status).toBe(200); // so that one has arrived too
  const replied = once(plain, "data");
  const closed = ending.close();
  expect(String(((await replied) as [Buffer])[0])).toContain("200 OK");
  expect((await answer).data.observation.error_class).toMatch(ENDED);
  expect([(await busy.closed).code, (await idle.closed).code]).toEqual([1001, 1001]);
  await closed;
  await expect(fetch(`${ending.url}/health`)).rejects.toThrow();
});

test("killed and restarted under load: every client gets a reply or a clear error, and continues", async () => {
  const data = await smallDataFolder();
  const run = async (port: number) => {
    const child = start(["serve", "--quiet", "--json", "--threads", "2", "--data", data, "--port", String(port)]);
    onTestFinished(() => void child.kill("SIGKILL"));
    const failed = once(child, "exit").then(([code]) => Promise.reject(new Error(`the server ended with ${code}`)));
    const [line] = (await Promise.race([once(child.stdout, "data"), failed])) as [Buffer];
    failed.catch(() => {}); // it is killed later
    return { child, ...(JSON.parse(String(line)) as { url: string; port: number }) };
  };
  const first = await run(0);
  let [finished, isOver] = [0, false];
  const players = Array.from({ length: 8 }, async (_, seed) => {
    const client = new SQLEnvClient(first.url, { retries: 100, retrySeconds: 0.005, connectSeconds: 5 });
    while (!isOver) {
      try {
        await client.reset({ seed });
        for (let i = 0; i < 5; i++) await client.step({ action_type: "QUERY", argument: `SELECT ${i}` });
        finished++;
      } catch (error) {
        expect(error).toBeInstanceOf(ServerError);
        expect(["connection_lost", "connect_failed"]).toContain((error as ServerError).code);
      }
    }
    await client.close();
  });
  await until(() => finished > 50);
  first.child.kill("SIGKILL");
  await once(first.child, "exit");
  // Clients in the middle of an episode are told that it is lost; those that were resetting wait for the next server.
  const second = await run(first.port);
  const before = finished;
  await until(() => finished > before + 50);
  isOver = true;
  await Promise.all(players);
  second.child.kill("SIGTERM");
  const [code] = (await once(second.child, "exit")) as [number];
  expect(code).toBe(0);
}, 180_000); // two processes start while the machine is busy
