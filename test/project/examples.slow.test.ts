// The examples run unchanged: types stripped, against the built package, with a tiny model.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "@swc/wasm-typescript";
import { expect, test } from "vitest";
import { writeTinyFolder } from "../helpers/tiny-folder.ts";

const examples = fileURLToPath(new URL("../../examples", import.meta.url));

test("the example of training from code runs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-example-"));
  await writeTinyFolder(join(folder, "tiny"));
  const source = readFileSync(join(examples, "train/train.ts"), "utf8");
  const stripped = join(examples, "train", `.train.${process.pid}.mjs`); // inside the package, which it imports by name
  writeFileSync(stripped, transformSync(source, { mode: "strip-only" }).code);
  try {
    const printed = execFileSync("node", [stripped, join(folder, "tiny"), "1"], { cwd: folder, encoding: "utf8" });
    expect(printed).toMatch(
      /\d+ questions to train on\nright at random: \d of 8\nstep 0: [\s\S]*step 0, a glance: .*\nstep 1: reward/,
    );
    expect(printed).toMatch(/reward -?\d\.\d{3} at the start, -?\d\.\d{3} at the end/);
    expect(existsSync(join(folder, "trained/model.safetensors"))).toBe(true);
  } finally {
    rmSync(stripped, { force: true });
    rmSync(folder, { recursive: true });
  }
});
