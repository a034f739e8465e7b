// The starter made on the spot: an ordinary model folder, the same bits for any number of threads.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { loadModelFolder } from "../src/model/folder.node.ts";
import type * as StarterModule from "../src/training/starter.node.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const { makeStarterModel } = (await import(resolve(root, "dist/training/starter.node.js"))) as typeof StarterModule;
const scratch = mkdtempSync(join(tmpdir(), "sqlenv-starter-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const weights = (name: string) => readFileSync(join(scratch, name, "model.safetensors"));

test("one thread and two give the same weights, and warming up lowers the loss", async () => {
  const make = (name: string, threads: number) =>
    makeStarterModel(join(scratch, name), { seed: 3, engine: { device: "cpu", threads }, warmup: { steps: 6 } });
  const report = await make("one", 1);
  expect(report.steps).toBe(6);
  expect(report.last_loss).toBeLessThan(report.first_loss);
  expect(await make("two", 2)).toEqual(report);
  expect(weights("two").equals(weights("one"))).toBe(true);
  const { config, weights: source } = await loadModelFolder(join(scratch, "one"));
  await source.close();
  expect(config.architecture).toBe("Qwen3ForCausalLM");
});
