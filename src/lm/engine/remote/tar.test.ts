import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { readTarGz, writeTarGz } from "./tar.ts";

const files = [
  ["adapter_config.json", new TextEncoder().encode("{}")],
  ["adapter_model.safetensors", Uint8Array.from({ length: 1_300 }, (_, i) => i % 251)],
  ["empty", new Uint8Array(0)],
] as const;

test("an archive has the files that were put into it, and tar reads it", async () => {
  const archive = await writeTarGz(files);
  expect([...(await readTarGz(archive))]).toEqual(files.map(([name, data]) => [name, data]));
  const listed = execFileSync("tar", ["-tzf", "-"], { input: archive, encoding: "utf8" });
  expect(listed.trim().split("\n")).toEqual(files.map(([name]) => name));
});

test("an archive that is cut off is refused", async () => {
  const archive = await writeTarGz(files);
  await expect(readTarGz(archive.subarray(0, archive.length - 40))).rejects.toThrow();
});
