// Who is let in: names of the server, keys and where they may stand, pages by their origin.
import { describe, expect, test } from "vitest";
import { Access, type Caller } from "./access.ts";
import { hostsFor, isAllowedHost } from "./allowed-hosts.ts";

const caller = (address: string, headers: Record<string, string> = {}, more: Partial<Caller> = {}): Caller => {
  const url = new URL(address);
  const all: Record<string, string> = { host: url.host, ...headers };
  return { address: "203.0.113.9", url, header: (name) => all[name], isUpgrade: true, ...more };
};
const local = "http://127.0.0.1:8000/ws";

describe("keys", () => {
  test("without keys everyone is admitted and identified by address; with keys, by key", () => {
    expect(new Access().admit(caller(local))).toEqual({ client: "203.0.113.9" });
    const access = new Access({ apiKeys: ["k", "l"] });
    expect(access.admit(caller(local))).toMatchObject({ status: 401 });
    expect(access.admit(caller("http://127.0.0.1:8000/health"))).toEqual({ client: "203.0.113.9" });
    expect(access.admit(caller(local, { authorization: "bearer k" }))).toEqual({ client: "key 1" });
    expect(access.admit(caller(local, { "x-api-key": "l" }))).toEqual({ client: "key 2" });
    expect(access.admit(caller(local, { "x-api-key": "kk" }))).toMatchObject({ status: 401 });
  });

  test("in the URL only for sockets", () => {
    const access = new Access({ apiKeys: ["k"] });
    expect(access.admit(caller(`${local}?api_key=k`))).toEqual({ client: "key 1" });
    expect(access.admit(caller(`${local}?api_key=k`, {}, { isUpgrade: false }))).toMatchObject({ status: 401 });
  });

  test("ten wrong keys, then a doubling wait for this address only; a right key is always admitted", () => {
    const access = new Access({ apiKeys: ["k"] });
    const wrong = caller(local, { "x-api-key": "x" });
    const right = caller(local, { "x-api-key": "k" });
    for (let i = 0; i < 10; i++) expect(access.admit(wrong, 0)).toMatchObject({ status: 401 });
    expect(access.admit(wrong, 1)).toMatchObject({ status: 429, retryAfter: 1 });
    expect(access.admit(right, 1)).toEqual({ client: "key 1" });
    expect(access.admit(wrong, 1)).toMatchObject({ status: 429, retryAfter: 1 }); // a right key shortens no wait
    expect(access.admit({ ...right, address: "203.0.113.10" }, 1)).toEqual({ client: "key 1" });
    expect(access.admit(wrong, 1_001)).toMatchObject({ status: 401 });
    expect(access.admit(wrong, 1_002)).toMatchObject({ status: 429, retryAfter: 2 });
    expect(access.admit(right, 4_000)).toEqual({ client: "key 1" });
    for (let now = 4_000, tries = 0; tries < 20; now += 60_000, tries++) access.admit(wrong, now);
    expect(access.admit(wrong, 4_000 + 19 * 60_000 + 1)).toMatchObject({ retryAfter: 60 });
  });
});

describe("hosts", () => {
  test("accepts loopback names and its own address; refuses a foreign name first", () => {
    const access = new Access({ hosts: hostsFor("192.168.1.5"), apiKeys: ["k"] });
    for (const host of ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "192.168.1.5:8000", "localhost."])
      expect(access.refuseOrigin(caller(`http://${host}/state`)), host).toBeUndefined();
    for (const host of ["evil.example", "localhost.evil.example", "192.168.1.50", "127.0.0.1.evil.example"])
      expect(access.refuseOrigin(caller(`http://${host}/state`)), host).toMatchObject({ status: 403 });
    const absolute = caller("http://evil.example/state", { host: "localhost" }); // GET http://evil.example/state
    expect(access.refuseOrigin(absolute)).toMatchObject({ status: 403 });
  });

  test("a server on every interface accepts any name, or only the given ones", () => {
    expect(hostsFor("0.0.0.0")).toBe("any");
    const hosts = hostsFor("0.0.0.0", ["env.example"]);
    expect(["env.example:443", "127.0.0.1", "evil.example"].map((host) => isAllowedHost(host, hosts))).toEqual([
      true,
      true,
      false,
    ]);
  });
});

test("origins: the server's own and allowed ones", () => {
  const access = new Access({ origins: ["https://a.example"] });
  const from = (address: string, origin: string) => access.allowsOrigin(caller(address, { origin }));
  expect(from(local, "http://127.0.0.1:8000")).toBe(true);
  expect(from(local, "http://127.0.0.1:9000")).toBe(false);
  expect(from(local, "https://a.example")).toBe(true);
  expect(from(local, "null")).toBe(false);
  expect(from("https://env.example/ws", "https://env.example")).toBe(true);
  expect(new Access({ origins: ["*"] }).allowsOrigin(caller(local, { origin: "null" }))).toBe(true);
});
