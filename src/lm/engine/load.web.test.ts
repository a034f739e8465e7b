import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Site, serveFiles } from "../../../test/helpers/chromium.ts";
import { writeTinyFolder } from "../../../test/helpers/tiny-folder.ts";
import { createCpu } from "../devices/cpu/start.node.ts";
import { loadModelFolder } from "../model/formats/folder.node.ts";
import { loadWeights } from "../model/formats/load.ts";
import { createModel } from "../model/parameters.ts";
import { loadWebModel } from "./load.web.ts";
import { LocalEngine } from "./local-engine.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-web-"));
const folder = join(scratch, "model");
let site: Site;

beforeAll(async () => {
  await writeTinyFolder(folder);
  site = await serveFiles(scratch);
});
afterAll(() => {
  site.close();
  rmSync(scratch, { recursive: true, force: true });
});

const REQUEST = { prompt: [5, 9, 40], max_new_tokens: 8, stop_ids: [], key: [1] } as const;

test("a fetched folder, chosen files and a folder on disk are the same model", async () => {
  const files = await loadModelFolder(folder);
  const model = createModel(createCpu({ threads: 1, simd: "plain" }), files.config, { trains: false });
  await loadWeights(model, files.weights);
  await files.weights.close();
  const disk = new LocalEngine(model);
  const seen: [number, number][] = [];
  const fetched = await loadWebModel(`${site.url}/model`, {
    simd: "plain",
    onProgress: (received, total) => seen.push([received, total]),
  });
  const chosen = await loadWebModel(async (name) => readOrNull(join(folder, name)), { simd: "plain", trains: false });
  const expected = await disk.sample(REQUEST);
  expect(await fetched.engine.sample(REQUEST)).toEqual(expected);
  expect(await chosen.engine.sample(REQUEST)).toEqual(expected);
  expect(fetched.turns.start("a", "b")).toEqual(chosen.turns.start("a", "b"));
  expect(fetched.facts).toMatchObject({ device: "cpu", variant: "cpu-plain", threads: 1 });
  const { size } = statSync(join(folder, "model.safetensors"));
  expect(seen.at(-1)![0]).toBe(size);
  for (const { engine } of [fetched, chosen, { engine: disk }]) await engine.close();
});

test("where there is no GPU the CPU is used, and the reason is told if a GPU was wanted", async () => {
  const read = async (name: string) => readOrNull(join(folder, name));
  for (const [device, noGpu] of [
    ["auto", "no WebGPU in this browser"],
    ["webgpu", "no WebGPU in this browser"],
    ["cpu", undefined],
  ] as const) {
    const model = await loadWebModel(read, { device, trains: false });
    expect([model.facts.device, model.noGpu]).toEqual(["cpu", noGpu]);
    await model.engine.close();
  }
});

function readOrNull(path: string): Uint8Array<ArrayBuffer> | null {
  return statSync(path, { throwIfNoEntry: false }) ? new Uint8Array(readFileSync(path)) : null;
}

test("what is missing or broken is named", async () => {
  await expect(loadWebModel(`${site.url}/none`)).rejects.toThrow(/the model has no config\.json: .*\/none/);
  await expect(loadWebModel("http://127.0.0.1:1/model")).rejects.toThrow(/cannot be fetched.*:1\/model\/config\.json/);
  const read = async (name: string) => {
    const bytes = readOrNull(join(folder, name));
    return name === "model.safetensors" ? bytes!.slice(0, -4) : bytes;
  };
  await expect(loadWebModel(read, { name: "mine" })).rejects.toThrow(/mine\/model\.safetensors: the file is cut off/);
  writeFileSync(join(scratch, "config.json"), "{");
  await expect(loadWebModel(site.url)).rejects.toThrow(/cannot be read .*config\.json/);
});
