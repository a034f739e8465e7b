// The dashboard's server: allowed hosts, and errors when it cannot start.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveDashboard } from "sqlenv/apps/dashboard";
import { expect, test } from "vitest";
import { metrics } from "../helpers/run-records.ts";

test("accepts only this machine's host names, and reports a port in use", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-serve-"));
  writeFileSync(
    join(folder, "metrics.jsonl"),
    metrics(1)
      .map((line) => `${JSON.stringify(line)}\n`)
      .join(""),
  );
  const server = await serveDashboard({ runs: [folder], port: 0 });
  const { port, hostname } = new URL(server.url);
  expect(hostname).toBe("127.0.0.1");
  const { request } = await import("node:http");
  const asked = (host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = request({ port, path: "/dashboard/api/runs", headers: { host } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      sent.on("error", reject).end();
    });
  expect(await asked(`localhost:${port}`)).toBe(200);
  expect(await asked(`evil.example:${port}`)).toBe(403);
  expect((await fetch(new URL("/", server.url), { redirect: "manual" })).headers.get("location")).toBe("/dashboard/");
  await expect(serveDashboard({ runs: [folder], port: Number(port) })).rejects.toThrow(/the port is in use.*0 for any/);
  await server.close();
  rmSync(folder, { recursive: true });
});
