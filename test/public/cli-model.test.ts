// A model plays through the command line: the same episodes at any concurrency.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { sqlenv, sqlenvInside } from "../helpers/cli-process.ts";
import { writeTinyFolder } from "../helpers/tiny-folder.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-model-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const model = join(scratch, "model");
await writeTinyFolder(model, { max_position_embeddings: 8192 });

test("eval --player model gives the same episodes at any concurrency", async () => {
  const run = async (concurrency: number) => {
    const args = [
      "--model",
      model,
      "--episodes",
      "4",
      "--max-new-tokens",
      "8",
      "--temperature",
      "1",
      "--concurrency",
      String(concurrency),
    ];
    const { code, stdout } = await sqlenvInside(["eval", "--player", "model", ...args, "--step-budget", "3", "--json"]);
    expect(code).toBe(0);
    return JSON.parse(stdout);
  };
  const report = await run(4);
  expect(report).toMatchObject({ episodes: 4, errors: 0, success_rate: 0, mean_steps: 3 });
  expect(report.parse_failure_rate).toBeGreaterThan(0.5);
  expect(await run(1)).toEqual(report);
});

test("a missing model is reported in one line", async () => {
  const { code, stderr } = await sqlenv(["eval", "--player", "model", "--model", join(scratch, "nothing")]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error: .*nothing.*\(model_load\)\n$/);
});

test("eval uses and reports the prompt of the model's folder, unless a flag overrides it", async () => {
  writeFileSync(join(model, "sqlenv.json"), JSON.stringify({ prompt: "instruct", shots: 3 }));
  const args = [
    "--player",
    "model",
    "--model",
    model,
    "--episodes",
    "1",
    "--step-budget",
    "1",
    "--max-new-tokens",
    "4",
  ];
  const { stdout } = await sqlenvInside(["eval", ...args, "--max-context-tokens", "8000", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ prompt: "instruct-1/3-shot", errors: 0 });
  rmSync(join(model, "sqlenv.json"));
  const { stderr } = await sqlenvInside(["eval", ...args, "--max-new-tokens", "1500"]);
  expect(stderr).toMatch(/^error: --max-new-tokens takes more than half .*1500 of 2048/);
});
