// A run is resumed only with the inputs it was started with.
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sqlenvInside } from "../helpers/cli-process.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());
const run = "run";
const inputs = place.path(run, "inputs.json");
beforeAll(async () => {
  const { code, stderr } = await place.trainInside(run, { "--max-steps": 1 });
  expect(code, stderr).toBe(0);
}, 60_000);

const resume = (...more: string[]) => sqlenvInside(["train", "--resume", place.path(run), ...more]);

test.each([
  ["a database", () => place.path("small", "databases"), /databases \(.+\)/],
  ["the model", () => join(place.model, "generation_config.json"), /the model \(generation_config\.json\)/],
])("resuming is refused when %s has changed, by name", async (what, path, message) => {
  const files = what === "a database" ? place.files("small").filter((file) => file.endsWith(".sqlite")) : [];
  const file = files.length > 0 ? place.path("small", files[0]!) : path();
  const before = readFileSync(file);
  if (what === "a database") {
    const changed = Buffer.from(before);
    changed.writeUInt32BE(changed.readUInt32BE(24) + 1, 24); // the change counter, as any transaction increments it
    writeFileSync(file, changed);
  } else appendFileSync(file, " ");
  const { code, stderr } = await resume();
  writeFileSync(file, before);
  expect(code).toBe(2);
  expect(stderr).toMatch(/error: the run was begun with other inputs; what has changed is: /);
  expect(stderr).toMatch(message);
});

test("files that are not part of the model may change", async () => {
  const file = join(place.model, "notes.json");
  writeFileSync(file, "{}");
  const { code, stderr } = await resume();
  rmSync(file);
  expect(code, stderr).toBe(0);
});

test("a run of another version is resumed with a warning, one without recorded inputs with a note", async () => {
  const kept = readFileSync(inputs, "utf8");
  writeFileSync(inputs, kept.replace(/"version": "[^"]*"/, '"version": "0.0.1"'));
  const other = await resume();
  expect(other.code, other.stderr).toBe(0);
  expect(other.stdout).toContain("the run was begun with sqlenv 0.0.1, this is ");
  rmSync(inputs);
  const unknown = await resume();
  expect(unknown.code, unknown.stderr).toBe(0);
  expect(unknown.stdout).toContain("this run does not say what it was begun with");
  expect(readFileSync(inputs, "utf8")).toBe(kept);
});
