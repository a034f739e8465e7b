// `sqlenv data make` as a person uses it: from a file to a data set that other commands load.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Ran, sqlenvInside } from "../helpers/cli-process.ts";
import { strangeDatabase } from "../helpers/strange-data.ts";

let folder: string;
let file: string;

function sqlenv(...args: readonly string[]): Promise<Ran> {
  return sqlenvInside(args, "", { NO_COLOR: "1" });
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sqlenv-test-"));
  file = join(folder, "brews.sqlite");
  writeFileSync(file, await strangeDatabase());
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("makes a data set that check, eval and a dry training run load", async () => {
  const out = join(folder, "made");
  const made = await sqlenv("data", "make", file, "--out", out, "--questions", "60");
  expect(made).toMatchObject({ code: 0, stderr: "" });
  expect(made.stdout).toContain("48 training questions and 12 evaluation questions");
  expect(made.stdout).toContain("beers.breweryid → tblBreweries.BreweryID");
  expect(made.stdout).toContain("tblBreweries.email (email addresses)");
  expect(readdirSync(out).sort()).toEqual(["databases", "questions", "report.json", "report.md"]);
  expect(JSON.parse(readFileSync(join(out, "report.json"), "utf8")).questions).toEqual({ train: 48, eval: 12 });
  const check = await sqlenv("data", "check", "--data", out, "--json");
  expect(JSON.parse(check.stdout)).toMatchObject({ train: 48, eval: 12, failed: [], rejected: [] });
  const oracle = await sqlenv("eval", "--player", "oracle", "--data", out, "--json");
  expect(JSON.parse(oracle.stdout)).toMatchObject({ episodes: 12, success_rate: 1 });
});

test("an existing folder with files is refused, and a failure leaves nothing behind", async () => {
  const taken = join(folder, "taken");
  mkdirSync(taken);
  writeFileSync(join(taken, "mine.txt"), "");
  const wrong = join(folder, "noise.sqlite");
  writeFileSync(wrong, Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7919) % 251)));
  const cases = await Promise.all([
    sqlenv("data", "make", file, "--out", taken),
    sqlenv("data", "make", wrong, "--out", join(folder, "none")),
    sqlenv("data", "make", join(folder, "missing.db"), "--out", join(folder, "none")),
    sqlenv("data", "make", taken, "--out", join(folder, "none")),
    sqlenv("data", "make", file, "--out", join(folder, "none"), "--eval-share", "2"),
  ]);
  for (const { code, stdout, stderr } of cases) {
    expect([code, stdout]).not.toEqual([0, ""]);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  }
  expect(cases.map(({ stderr }) => stderr.split(":")[1]!.trim())).toEqual([
    "folder is not empty",
    "database noise",
    "no such file or folder",
    "the folder has no SQLite and no CSV files",
    "--eval-share takes a number from 0 to below 1",
  ]);
  expect(existsSync(join(folder, "none"))).toBe(false);
  expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual([]);
});
