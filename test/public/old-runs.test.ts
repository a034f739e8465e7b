// Run folders of earlier versions open: they are resumed and reported on, whatever their settings were called.
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadModelAndTokenizer } from "sqlenv";
import { afterAll, expect, test } from "vitest";
import { parse } from "yaml";
import { ALL } from "../helpers/cases.ts";
import { sqlenvInside } from "../helpers/cli-process.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());

/** A stored run folder, with its model and data set at this place. */
function stored(name: string): string {
  const run = place.path(name);
  cpSync(fileURLToPath(new URL(`../reference/run-folders/${name}`, import.meta.url)), run, { recursive: true });
  for (const file of readdirSync(run, { recursive: true, encoding: "utf8" }).map((file) => join(run, file)))
    if (/\.(json|yaml)$/.test(file) && statSync(file).isFile())
      writeFileSync(file, readFileSync(file, "utf8").replaceAll("PLACE", place.scratch));
  return run;
}

test.skipIf(!ALL)(
  "version 1, stopped after SFT by imitation_episodes and one step of GRPO: resumed to its end",
  async () => {
    const run = stored("v1-stopped");
    const { engine } = await loadModelAndTokenizer(place.model, { device: "cpu" });
    const { variant } = engine.facts; // the checkpoint may be of another machine
    await engine.close();
    writeFileSync(join(run, "checkpoints/step-1/engine.json"), JSON.stringify({ step: 1, variant }));
    const { code, stdout, stderr } = await sqlenvInside(["train", "--resume", run, "--device", "cpu"]);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/^step 2\/2/m);
    expect(stdout).not.toMatch(/supervised fine-tuning/); // its model is in `warmed`
    expect(existsSync(join(run, "sft"))).toBe(false);
    const { steps, split } = JSON.parse(place.text("v1-stopped", "results.json"));
    expect(steps).toBe(2);
    expect(split).toMatchObject({ overlap: true, grpo: { databases: split.sft.databases } }); // as it was begun
    expect(place.text("v1-stopped", "report.html")).toMatch(/sft_steps/);
  },
);

test("version 1, finished: reported on, with today's names", async () => {
  const run = stored("v1-finished");
  const { code, stderr } = await sqlenvInside(["report", run]);
  expect(code, stderr).toBe(0);
  const page = place.text("v1-finished", "report.html");
  expect(page).toMatch(/sft_learning_rate/);
  expect(page).not.toMatch(/imitation_/);
});

test("a new folder says its version, and one of a newer version is refused in one line", async () => {
  const run = stored("v1-finished");
  const file = join(run, "config.yaml");
  const settings = parse(readFileSync(file, "utf8"));
  writeFileSync(file, `version: 3\n${readFileSync(file, "utf8")}`);
  for (const args of [
    ["train", "--resume", run],
    ["report", run],
    ["train", "--config", file],
  ]) {
    const { code, stderr } = await sqlenvInside(args);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^.*config\.yaml is of a newer version: 3; update sqlenv/),
    ]);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  }
  const { output_dir: _, ...others } = settings;
  writeFileSync(file, JSON.stringify({ version: "two", ...others }));
  expect((await sqlenvInside(["report", run])).stderr).toMatch(/is of an unknown version: two; give 1 to 2/);
});
