import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { comparison, episodeLine, metrics, RESULT, TIMINGS } from "../../../test/helpers/run-records.ts";
import { readEpisodes, readRun, writeReport } from "./run-report.node.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-run-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const lines = (records: readonly object[]) => records.map((record) => `${JSON.stringify(record)}\n`).join("");

/** A folder with these files in it. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(scratch, "run-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const whole = {
  "config.yaml": "model_name: starter\nseed: 42\n",
  "metrics.jsonl": lines(metrics()),
  "timings.jsonl": lines(TIMINGS),
  "warnings.jsonl": lines([{ step: 1, code: "nan", message: "m", remedy: "r" }]),
  "episodes.jsonl": lines([episodeLine(1), episodeLine(2)]),
  "results.json": JSON.stringify(RESULT),
  "comparison.json": JSON.stringify(comparison()),
};

describe("readRun", () => {
  test("reads all records of a training", async () => {
    const folder = folderWith(whole);
    const run = await readRun(folder);
    expect(run).toMatchObject({ run: basename(folder), config: { seed: 42 }, metrics: metrics(), timings: TIMINGS });
    expect(run).toMatchObject({ warnings: [{ code: "nan" }], result: RESULT, comparison: comparison() });
    expect(run.habits).toMatchObject([{ step: 1 }, { step: 2 }]);
    const steps: number[] = [];
    for await (const episode of readEpisodes(folder)) steps.push(episode.step);
    expect(steps).toEqual([1, 2]);
  });

  test("a running training has fewer records, and its last line may be incomplete", async () => {
    const text = lines(metrics(3));
    const run = await readRun(folderWith({ "metrics.jsonl": `${text}{"step":4,"rew`, "episodes.jsonl": '{"st' }));
    expect(run).toMatchObject({
      config: null,
      metrics: metrics(3),
      timings: [],
      result: null,
      comparison: null,
      habits: [],
    });
  });

  test.each([
    ["metrics.jsonl", '{"step":1}\n{"step":\n{"step":3}\n', /metrics\.jsonl, line 2 cannot be read/],
    ["metrics.jsonl", '{"step":1}\n{"loss":2}\n', /metrics\.jsonl, line 2 cannot be read.*step/],
    ["warnings.jsonl", '"text"\n', /warnings\.jsonl, line 1 cannot be read/],
    ["config.yaml", "a: [1\n", /config\.yaml cannot be read/],
    ["config.yaml", "- 1\n", /config\.yaml cannot be read: not a list of settings/],
    ["results.json", '{"run":"x"', /results\.json cannot be read/],
    ["results.json", '{"run":"x"}', /results\.json cannot be read.*model_name/],
    ["comparison.json", '{"players":[],"questions":[{}]}', /comparison\.json cannot be read.*question_id/],
  ])("a broken %s is named with its place: %s", async (name, text, message) => {
    const folder = folderWith({ [name]: text });
    await expect(readRun(folder)).rejects.toMatchObject({
      code: "run_broken",
      message: expect.stringMatching(message),
    });
  });

  test("rejects folders that are not runs", async () => {
    await expect(readRun(join(scratch, "nothing"))).rejects.toMatchObject({ code: "usage", what: "no such run" });
    await expect(readRun(folderWith({ "notes.txt": "" }))).rejects.toMatchObject({ what: "not a run's folder" });
  });
});

test("writeReport is deterministic, and writes only pages it has records for", async () => {
  const folder = folderWith(whole);
  const { files, headline } = await writeReport(folder);
  expect(files.map((file) => basename(file)).sort()).toEqual([
    "behaviour.svg",
    "comparison.html",
    "comparison.md",
    "learning_curve.png",
    "learning_curve.svg",
    "report.html",
    "summary.md",
  ]);
  expect(headline).toMatch(/^success on unseen databases, greedy/);
  const before = files.map((file) => readFileSync(file));
  await writeReport(await readRun(folder));
  expect(files.map((file) => readFileSync(file))).toEqual(before);

  const young = folderWith({ "metrics.jsonl": lines(metrics(1)) });
  expect(await writeReport(young)).toMatchObject({ headline: null, files: expect.objectContaining({ length: 3 }) });
  expect(existsSync(join(young, "comparison.html"))).toBe(false);
});
