// Who is let in: keys in three places, pages by their origin, names that were made to point here.
import { expect, test } from "vitest";
import { Access } from "./access.ts";

const caller = (address: string, headers: Record<string, string> = {}) => ({
  url: new URL(address),
  header: (name: string) => headers[name],
});
const local = "http://127.0.0.1:8000/ws";

test("without a key everyone may come in; with one, only who shows it", () => {
  expect(new Access({ isLocal: true }).refuse(caller(local))).toBeUndefined();
  const access = new Access({ apiKey: "k", isLocal: true });
  expect(access.refuse(caller(local))?.status).toBe(401);
  expect(access.refuse(caller("http://127.0.0.1:8000/health"))).toBeUndefined();
  expect(access.refuse(caller(`${local}?api_key=k`))).toBeUndefined();
  expect(access.refuse(caller(local, { authorization: "bearer k" }))).toBeUndefined();
  expect(access.refuse(caller(local, { "x-api-key": "k" }))).toBeUndefined();
  expect(access.refuse(caller(local, { "x-api-key": "kk" }))?.status).toBe(401);
});

test("pages: the server's own, those allowed, and no foreign name for this machine", () => {
  const access = new Access({ isLocal: true, origins: ["https://a.example"] });
  const from = (address: string, origin: string) => access.allowsOrigin(caller(address, { origin }));
  expect(from(local, "http://127.0.0.1:8000")).toBe(true);
  expect(from(local, "http://127.0.0.1:9000")).toBe(false);
  expect(from(local, "https://a.example")).toBe(true);
  expect(from(local, "null")).toBe(false);
  expect(from("http://rebound.example:8000/ws", "http://rebound.example:8000")).toBe(false);
  expect(new Access({ isLocal: true, origins: ["*"] }).allowsOrigin(caller(local, { origin: "null" }))).toBe(true);
  const open = new Access({ isLocal: false });
  expect(open.allowsOrigin(caller("https://env.example/ws", { origin: "https://env.example" }))).toBe(true);
});
