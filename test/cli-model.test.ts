// A model plays through the command line: the same episodes however many are played at once.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { sqlenv, sqlenvInside } from "./cli-process.ts";
import { writeTinyFolder } from "./tiny-folder.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-model-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const model = join(scratch, "model");
await writeTinyFolder(model, { max_position_embeddings: 2048 });

test("eval --player model", async () => {
  const run = async (concurrency: number) => {
    const args = [
      "--model",
      model,
      "--episodes",
      "4",
      "--max-tokens",
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

test("a model that is not there is one line", async () => {
  const { code, stderr } = await sqlenv(["eval", "--player", "model", "--model", join(scratch, "nothing")]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error: .*nothing.*\(model_load\)\n$/);
});

test("the prompt: by flag, by file, or as the model's folder says", async () => {
  const own = join(scratch, "own.json");
  writeFileSync(own, JSON.stringify({ id: "mine-2", system: "Play.", shots: [{ user: "a", assistant: "ANSWER: 1" }] }));
  const text = join(scratch, "words.md");
  writeFileSync(text, "Play.\n");
  const args = ["--player", "model", "--model", model, "--episodes", "1", "--step-budget", "1", "--max-tokens", "4"];
  const promptOf = async (...more: string[]) => {
    const { code, stdout, stderr } = await sqlenvInside(["eval", ...args, ...more, "--json"]);
    return code === 0 ? JSON.parse(stdout).prompt : stderr;
  };
  expect(await promptOf()).toBe("compact-1");
  expect(await promptOf("--prompt-file", own)).toBe("mine-2");
  expect(await promptOf("--prompt-file", text, "--shots", "1")).toMatch(/^words@[0-9a-f]{8}\/1-shot$/);
  writeFileSync(join(model, "sqlenv.json"), JSON.stringify({ prompt: "instruct", shots: 3 }));
  expect(await promptOf()).toBe("instruct-1/3-shot");
  expect(await promptOf("--shots", "0")).toBe("instruct-1");
  expect(await promptOf("--prompt", "compact")).toBe("compact-1");
  writeFileSync(join(model, "sqlenv.json"), "{");
  expect(await promptOf()).toMatch(/^error: sqlenv\.json does not say which prompt .*\(model_load\)\n$/);
  rmSync(join(model, "sqlenv.json"));
  writeFileSync(own, '{"system": 5}');
  expect(await promptOf("--prompt-file", own)).toMatch(/^error: --prompt-file: system: .*own\.json/);
  expect(await promptOf("--prompt-file", join(scratch, "no.md"))).toMatch(/^error: --prompt-file cannot be read/);
  expect(await promptOf("--shots", "2")).toMatch(/give 0, 1, 3/);
  expect(await promptOf("--max-tokens", "1500")).toMatch(/--max-tokens leaves less than half .*1500 of 2048/);
  expect(await promptOf("--max-context-tokens", "4096")).toMatch(/above the model's window of 2048: 4096/);
});
