// deploy/nginx.conf in front of a real server, as in compose.yaml, but on this machine's addresses.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { SQLEnvClient } from "../../src/gym/client/index.ts";
import { ROOT } from "../helpers/dockerfile.ts";
import { without } from "../helpers/needs.ts";
import { serve } from "../helpers/server-place.ts";

const hasNginx = spawnSync("nginx", ["-v"]).status === 0;
const note = without("nginx", hasNginx, "apt-get install nginx-light");

describe.skipIf(!hasNginx)(`nginx in front of a server${note}`, () => {
  const place = mkdtempSync(join(tmpdir(), "sqlenv-nginx-"));
  const conf = join(place, "nginx.conf");
  const log = join(place, "access.log");
  let server: Awaited<ReturnType<typeof serve>>;
  let nginx: ChildProcess;
  let port = 0;

  beforeAll(async () => {
    server = await serve({
      ...{ host: "127.0.0.1", trustProxies: ["127.0.0.1"], sessionsPerClient: 2, allowedHosts: ["gym.example"] },
    });
    port = await freePort();
    const text = readFileSync(join(ROOT, "deploy/nginx.conf"), "utf8")
      .replaceAll("env:8000", `127.0.0.1:${server.port}`)
      .replace("listen 8000", `listen 127.0.0.1:${port}`)
      .replaceAll("/tmp/", `${place}/`)
      .replace("/dev/stdout", log);
    writeFileSync(conf, text);
    const asRoot = process.getuid?.() === 0 ? "user root; " : "";
    nginx = spawn("nginx", ["-p", place, "-c", conf, "-g", `${asRoot}daemon off;`], { stdio: "ignore" });
    while (!(await reaches(port))) expect(nginx.exitCode).toBe(null);
  });
  afterAll(async () => {
    const exit = once(nginx, "exit");
    nginx.kill("SIGTERM");
    await exit;
    await server.close();
    rmSync(place, { recursive: true });
  });

  /** The status of one request from this address. */
  const ask = (localAddress: string, path = "/health", headers: Record<string, string> = {}) =>
    new Promise<number>((resolve, reject) => {
      get({ host: "127.0.0.1", port, path, localAddress, headers, agent: false }, (response) => {
        response.resume().on("end", () => resolve(response.statusCode!));
      }).on("error", reject);
    });

  /** A socket from this address, and its first reply to a reset: its type, and the code of an error. */
  async function reset(localAddress: string, headers: Record<string, string> = {}) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws?api_key=hush`, { localAddress, headers });
    socket.on("open", () => socket.send(JSON.stringify({ type: "reset", data: {} })));
    const [text] = (await once(socket, "message")) as [Buffer]; // a refusal may come with the handshake
    const { type, data } = JSON.parse(String(text)) as { type: string; data: { code?: string } };
    return { socket, type, code: data.code };
  }

  test("nginx accepts the configuration", () => {
    const { status, stderr } = spawnSync("nginx", ["-t", "-p", place, "-c", conf], { encoding: "utf8" });
    expect(status, stderr).toBe(0);
  });

  test("an episode can be played through nginx", async () => {
    const env = new SQLEnvClient(`http://127.0.0.1:${port}`);
    expect(await env.reset({ split: "eval", index: 0 })).toMatchObject({ step_count: 0 });
    expect(await env.step({ action_type: "ANSWER", argument: "no idea" })).toMatchObject({ done: true });
    await env.close();
  });

  test("the server counts sessions by the client's real address, whatever header the client sends", async () => {
    const first = [await reset("127.0.0.2"), await reset("127.0.0.2")];
    expect(first.map(({ type }) => type)).toEqual(["observation", "observation"]);
    const spoofed = { "x-forwarded-for": "192.0.2.1" };
    const third = await reset("127.0.0.2", spoofed);
    expect(third).toMatchObject({ type: "error", code: "CAPACITY_REACHED" });
    const other = await reset("127.0.0.3");
    expect(other.type).toBe("observation");
    for (const { socket } of [...first, third, other]) socket.terminate();
  });

  test("the client's Host header reaches the server", async () => {
    expect(await ask("127.0.0.4", "/health", { host: "gym.example" })).toBe(200);
    expect(await ask("127.0.0.4", "/health", { host: "evil.example" })).toBe(403);
  });

  test("only an address above its rate limit is refused", async () => {
    const statuses = await Promise.all(Array.from({ length: 900 }, () => ask("127.0.0.5")));
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(200);
    expect(await ask("127.0.0.6")).toBe(200);
  });

  test("keys in URLs are not logged", () => {
    expect(existsSync(log)).toBe(true);
    const text = readFileSync(log, "utf8");
    expect(text).toContain(`"GET /ws" 101`);
    expect(text).not.toContain("hush");
  });
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  return port;
}

function reaches(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.end();
      resolve(true);
    }).on("error", () => setTimeout(() => resolve(false), 50));
  });
}
