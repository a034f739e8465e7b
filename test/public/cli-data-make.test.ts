// `sqlenv data make` as a person uses it: from a file to a data set that other commands load.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Ran, sqlenvInside } from "../helpers/cli-process.ts";
import { scriptedChat } from "../helpers/scripted-chat.ts";
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

test("a folder of CSV files becomes a database with types and keys", async () => {
  const tables = join(folder, "bookshop");
  mkdirSync(tables);
  const authors = ["Ada Quill", "Ben Moss", "Cleo Wren", "Dov Hart"].map(
    (name, i) => `${i + 1},${name},"${i % 2 ? "Oslo" : "Lima"}"`,
  );
  const books = Array.from(
    { length: 40 },
    (_, i) =>
      `${i + 1},"Tale, ""No"" ${i + 1}",${(i % 4) + 1},${(5 + ((i * 13) % 40) / 4).toFixed(2)},00${i % 7},${1990 + (i % 9)}`,
  );
  writeFileSync(join(tables, "authors.csv"), `\ufeffauthor_id,full name,city\r\n${authors.join("\r\n")}\r\n`);
  writeFileSync(
    join(tables, "books.csv"),
    `id;title;author_id;price;room_code;year\n`.replaceAll(";", ",") + books.join("\n"),
  );
  const out = join(folder, "from-csv");
  const made = await sqlenv("data", "make", tables, "--out", out, "--questions", "40", "--json");
  expect(made.stderr).not.toContain("error");
  const report = JSON.parse(made.stdout);
  expect(report.databases[0]).toMatchObject({ name: "bookshop", tables: 2, rows: 44, questions: 40 });
  expect(report.databases[0].references).toEqual([
    { table: "books", column: "author_id", to: "authors", key: "author_id", declared: false },
  ]);
  const shown = await sqlenv("data", "show", "bookshop", "--data", out, "--sql");
  expect(shown.stdout).toContain("author_id INTEGER PRIMARY KEY");
  expect(shown.stdout).toContain("price REAL");
  expect(shown.stdout).toContain("room_code TEXT");
  const sample = await sqlenv(
    "data",
    "make",
    tables,
    "--out",
    join(folder, "sampled"),
    "--questions",
    "20",
    "--max-rows",
    "12",
  );
  expect(sample.stdout).toContain("books: 12 of 40 rows were copied");
});

test("excluded columns are not in the copy, and hostile CSV gives one line", async () => {
  const out = join(folder, "without-email");
  const made = await sqlenv("data", "make", file, "--out", out, "--questions", "20", "--exclude", "*.email");
  expect(made.code).toBe(0);
  expect(made.stdout).not.toContain("email addresses");
  expect(readFileSync(join(out, "databases", "brews", "brews.sqlite")).includes("info@anchor.example")).toBe(false);
  const wrong: readonly [string, string | Buffer, string][] = [
    ["ragged.csv", "a,b\n1,2\n3\n", "1 fields instead of 2 in line 3"],
    ["wide.csv", `${"c,".repeat(1_000_000)}c\n`, "more than 500 columns"],
    ["binary.csv", Buffer.from([97, 44, 98, 10, 0, 1, 2, 3]), "binary data in line 2"],
    ["latin.csv", Buffer.from([97, 10, 0xe9, 10]), "the file is not text in UTF-8"],
    ["twice.csv", "a,A\n1,2\n", "two columns have one name"],
    ["empty.csv", "", "the file is empty"],
  ];
  for (const [name, content, message] of wrong) {
    writeFileSync(join(folder, name), content);
    const { code, stdout, stderr } = await sqlenv("data", "make", join(folder, name), "--out", join(folder, "none"));
    expect([code === 0, stdout]).toEqual([false, ""]);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toContain(message);
  }
  const misspelt = await sqlenv("data", "make", file, "--out", join(folder, "none"), "--exclude", "tblBreweries.emial");
  expect(misspelt.stderr).toContain("did you mean tblBreweries.email?");
  expect(existsSync(join(folder, "none"))).toBe(false);
});

test("--rephrase keeps wordings that pass the check, and fails whole without an endpoint", async () => {
  const known = JSON.parse(
    (await sqlenv("data", "make", file, "--out", out("plain"), "--questions", "10", "--json")).stdout,
  );
  expect(known.questions).toEqual({ train: 8, eval: 2 });
  const questions = ["train", "eval"].flatMap(
    (split) =>
      JSON.parse(readFileSync(join(out("plain"), "questions", `questions_${split}.json`), "utf8")) as Question[],
  );
  const chat = await scriptedChat((messages) => {
    const text = String(messages.at(-1)!.content);
    const { question_text, gold_sql } = questions.find((one) => text.includes(one.question_text))!;
    return text.includes("### Schema") ? gold_sql : `I would like to know: ${question_text}`;
  });
  const ask = ["--rephrase", "--model", "m", "--base-url"];
  const made = await sqlenv(
    "data",
    "make",
    file,
    "--out",
    out("natural"),
    "--questions",
    "10",
    ...ask,
    chat.url,
    "--json",
  );
  chat.close();
  expect(JSON.parse(made.stdout).rephrased).toEqual({ model: "chat:m", asked: 10, kept: 10, refused: {} });
  expect(readFileSync(join(out("natural"), "questions", "questions_eval.json"), "utf8")).toContain(
    "I would like to know: ",
  );
  const nobody = "http://127.0.0.1:1/v1";
  const down = await sqlenv("data", "make", file, "--out", out("none"), "--questions", "10", ...ask, nobody);
  expect([down.code, down.stderr.trimEnd().split("\n").length]).toEqual([1, 1]);
  expect(existsSync(out("none"))).toBe(false);
});

interface Question {
  readonly question_text: string;
  readonly gold_sql: string;
}

function out(name: string): string {
  return join(folder, name);
}
