// `sqlenv report` and `sqlenv compare`, as a person or a script runs them.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Comparison } from "sqlenv/rl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ended, smallDataFolder, sqlenv, sqlenvInside, start } from "../helpers/cli-process.ts";
import { comparison, metrics, RESULT } from "../helpers/run-records.ts";
import { writeTinyFolder } from "../helpers/tiny-folder.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-report-"));
let data: string;
beforeAll(async () => {
  data = await smallDataFolder();
});
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
  rmSync(dirname(data), { recursive: true });
});

function runFolder(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(scratch, name);
  mkdirSync(folder);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  return folder;
}
const METRICS = metrics()
  .map((line) => `${JSON.stringify(line)}\n`)
  .join("");

describe("sqlenv report", () => {
  test("writes the pages, and prints the headline and their paths", async () => {
    const files = {
      "metrics.jsonl": METRICS,
      "results.json": JSON.stringify(RESULT),
      "comparison.json": JSON.stringify(comparison()),
    };
    const folder = runFolder("lamps", files);
    const { stdout, code } = await sqlenv(["report", folder]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^lamps\n/);
    expect(stdout).toMatch(
      /unseen databases, greedy .*10\.0 % \(5\.0 – 15\.0 %\) +80\.0 % \(75\.0 – 85\.0 %\) +better/,
    );
    expect(stdout).toContain(`wrote ${join(folder, "report.html")}`);
    expect(readFileSync(join(folder, "report.html"), "utf8")).toContain("Example episodes");
    const json = JSON.parse((await sqlenvInside(["report", folder, "--json"])).stdout);
    expect(json).toMatchObject({
      run: "lamps",
      finished: true,
      steps: 40,
      headline: expect.stringMatching(/^success on/),
    });
    expect(json.files).toHaveLength(6);
  });

  test("a running training has a report too", async () => {
    const folder = runFolder("young", { "metrics.jsonl": METRICS.slice(0, -20) });
    const { stdout, code } = await sqlenvInside(["report", folder]);
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^young: unfinished, last logged step 40/),
    });
  });

  test("--export writes the dashboard as one file and says what is in it", async () => {
    const folder = runFolder("packed", { "metrics.jsonl": METRICS, "results.json": JSON.stringify(RESULT) });
    const file = join(scratch, "packed.html");
    const { stdout, code } = await sqlenvInside(["report", folder, "--export", file, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ file, runs: [{ run: "packed", episodes: 0, kept: 0 }] });
    expect(readFileSync(file, "utf8")).toMatch(/script-src 'sha256-[\w+/]+=*'; /);
    const nowhere = await sqlenvInside(["report", folder, "--export", join(scratch, "no", "x.html")]);
    expect(nowhere).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: cannot write --export.*\n$/),
    });
  });

  test("--serve shows runs until it is interrupted", async () => {
    const folder = runFolder("served", { "metrics.jsonl": METRICS });
    const child = start(["report", folder, "--serve", "--port", "0", "--json"]);
    const run = ended(child);
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.on("data", (text: string) => resolve((JSON.parse(text) as { url: string }).url));
      void run.then(({ stderr }) => reject(new Error(stderr)));
    });
    const { runs } = (await (await fetch(`${url}api/runs`)).json()) as { runs: { id: string; step: number }[] };
    expect(runs).toMatchObject([{ id: "served", step: 40 }]);
    child.kill("SIGINT");
    expect((await run).code).toBe(0);
  });

  test.each([
    [["a", "b"], /one run at a time.*--serve/],
    [["a", "--port", "8000"], /need --serve/],
    [["a", "--serve", "--port", "x"], /--port takes a number from 0 to 65535: x/],
  ])("%j is a usage error", async (args, words) => {
    expect(await sqlenvInside(["report", ...args])).toMatchObject({ code: 2, stderr: expect.stringMatching(words) });
  });

  test("a missing folder gives one line and exit 2, a broken file exit 1", async () => {
    const missing = await sqlenvInside(["report", join(scratch, "nothing")]);
    expect(missing).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/^error: no such run: .*\n$/) });
    const folder = runFolder("broken", { "metrics.jsonl": '{"step":1}\nno\n{"step":2}\n' });
    const broken = await sqlenvInside(["report", folder, "--json"]);
    expect(broken).toMatchObject({ code: 1, stdout: "" });
    expect(broken.stderr).toMatch(/^error: .*metrics\.jsonl, line 2 cannot be read.*\(run_broken\)\n$/);
  });
});

describe("sqlenv compare", () => {
  const compare = (...args: string[]) => sqlenvInside(["compare", "--data", data, ...args]);

  test("players answer the same questions, side by side, and the pages are written", async () => {
    const out = join(scratch, "pages");
    const { stdout, stderr, code } = await compare("--player", "random,oracle", "--questions", "3", "--out", out);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^random +│ oracle$/m);
    expect(stdout).toMatch(/=> .*│ => right/);
    expect(stdout).toMatch(/^oracle +3 +3$/m);
    const kept = JSON.parse(readFileSync(join(out, "comparison.json"), "utf8")) as Comparison;
    expect(kept.players).toEqual(["random", "oracle"]);
    expect(kept.questions).toHaveLength(3);
    for (const { question_id, episodes } of kept.questions)
      expect(episodes.map((episode) => episode.question_id)).toEqual([question_id, question_id]);
    expect(readFileSync(join(out, "comparison.html"), "utf8")).toContain(kept.questions[0]!.question_id);
    expect(readFileSync(join(out, "comparison.md"), "utf8")).toContain("| turn | random | oracle |");
    expect(JSON.stringify(kept)).not.toMatch(/gold/);
  });

  test("--model adds models, repeatedly; --json prints one object", async () => {
    const folders = ["one", "two"].map((name) => join(scratch, name));
    for (const folder of folders) await writeTinyFolder(folder);
    const models = folders.flatMap((folder) => ["--model", folder]);
    const args = [...models, "--questions", "2", "--max-new-tokens", "8", "--step-budget", "2", "--json"];
    const { stdout, code } = await compare(...args);
    expect(code).toBe(0);
    const result = JSON.parse(stdout);
    expect(result.players).toEqual(["random", ...folders]);
    expect(result.questions).toHaveLength(2);
    expect(result.reports).toHaveLength(3);
    expect((await compare(...args)).stdout).toBe(stdout);
  });

  test("--markdown prints tables for a post", async () => {
    const { stdout } = await compare("--player", "oracle", "--questions", "1", "--markdown");
    expect(stdout).toMatch(/^# The same questions, side by side\n\n## /);
  });

  test.each([
    [["--player", "random,orcle"], /did you mean oracle\?/],
    [["--player", ""], /no player/],
    [["--player", "model"], /needs --model/],
    [["--questions", "0"], /--questions takes a whole number from 1: 0/],
    [["--database", "shp"], /did you mean shop\?/],
    [["--questions", "1", "--out", "/dev/null/x"], /cannot write --out/],
  ])("wrong use %j exits 2 with one line", async (args, message) => {
    const { stdout, stderr, code } = await compare(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});
