// The example of an environment of one's own: it learns, and its run is read by everything that reads runs.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { readRun } from "sqlenv/apps/reports/node";
import { afterAll, expect, test } from "vitest";
import { sqlenv } from "../helpers/cli-process.ts";
import { ROOT } from "../helpers/dockerfile.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlenv-nim-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("Nim is learned: more held-out games are won than before, and the report says so", async () => {
  const run = join(folder, "nim");
  const script = join(ROOT, "examples/environment/nim.mjs");
  const { stdout } = await promisify(execFile)(process.execPath, [script, run, "100"], { cwd: ROOT });
  expect(stdout).toMatch(/^success on held-out tasks, greedy: .* before, .* after, p (=|<) 0\.0\d+ in \d+ s\n$/);
  const { result, comparison, gold, config } = await readRun(run);
  expect(result!.after.unseen.greedy.success_rate).toBeGreaterThan(result!.before.unseen.greedy.success_rate! + 0.1);
  expect(result!.paired![0]!.mcnemar_p).toBeLessThan(0.05);
  expect([comparison!.players, gold, config?.max_steps]).toEqual([["before", "after"], {}, 100]);
  expect(comparison!.questions[0]!.episodes[1]!.steps[0]!.action.action_type).toBe("TEXT");
  const report = readFileSync(join(run, "report.html"), "utf8");
  expect(report).toContain("On held-out tasks, right answers rose from");
  expect(report.split("<h2>Settings")[0]).not.toMatch(/database|DESCRIBE/);
  expect(existsSync(join(run, "model/model.safetensors"))).toBe(true);
  for (const command of [
    ["train", "--resume", run],
    ["eval", "--run", run],
  ]) {
    const { code, stderr } = await sqlenv(command);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("an environment of its own, which only its program has"),
    ]);
  }
}, 600_000);
