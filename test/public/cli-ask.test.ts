// `sqlenv ask` as a person and as a script use it: files of their own, what is printed, samples, many questions.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ran, smallDataFolder, sqlenvInside } from "../helpers/cli-process.ts";
import { type ScriptedChat, scriptedChat } from "../helpers/scripted-chat.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlenv-ask-"));
const shop = join(folder, "shop.sqlite");
const tables = join(folder, "tables");
const data = await smallDataFolder();

beforeAll(() => {
  cpSync(join(data, "databases", "shop", "shop.sqlite"), shop);
  mkdirSync(tables);
  writeFileSync(join(tables, "towns.csv"), "name,people\nOslo,700000\nBergen,290000\nNarvik,14000\n");
  writeFileSync(join(tables, "rivers.csv"), "name,km\nGlomma,604\nLågen,199\n");
});
afterAll(() => {
  for (const path of [folder, join(data, "..")]) rmSync(path, { recursive: true, force: true });
});

const ask = (args: readonly string[], input = ""): Promise<Ran> =>
  sqlenvInside(["ask", ...args], input, { HF_HUB_CACHE: folder });
const keyword = (source: string, ...args: string[]) => ask(["--player", "keyword", "--data", source, ...args]);

/** SHA-256 of every file below a folder. */
function sums(path: string): Record<string, string> {
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map((file) => join(file.parentPath, file.name)).sort();
  return Object.fromEntries(names.map((name) => [name, createHash("sha256").update(readFileSync(name)).digest("hex")]));
}

describe("sqlenv ask", () => {
  test("answers about SQLite files, CSV files, folders of them and data sets, and changes none of them", async () => {
    const before = { ...sums(folder), ...sums(data) };
    for (const [source, question, answer, ...flags] of [
      [shop, "How many products are there?", "5"],
      [join(tables, "towns.csv"), "How many towns are there?", "3"],
      [tables, "How many rivers are there?", "2"],
      [data, "How many animals are there?", "4", "--database", "park"],
    ] as const) {
      const { stdout, stderr, code } = await keyword(source, ...flags, "--json", question);
      expect({ code, told: JSON.parse(stdout) }).toMatchObject({
        code: 0,
        told: { question, answer: expect.stringMatching(answer), unsure: null },
      });
      expect(stderr).toContain("SELECT count(*)"); // the steps, for people
    }
    expect({ ...sums(folder), ...sums(data) }).toEqual(before);
  });

  test("prints each step, then the answer and its query, in 80 columns and without colours in a pipe", async () => {
    const { stdout, stderr, code } = await keyword(shop, "Which", "products", "have the colour red?");
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    const lines = stdout.split("\n");
    expect(lines[0]).toBe("  describe   product");
    expect(lines[1]).toBe("             5 rows: id, name, price, colour, year made, maker_id");
    expect(stdout).toMatch(/\n {2}query {6}SELECT .*\n {13}.*\n\n {2}answer {5}3 rows\n {2}┌/s);
    expect(stdout).toMatch(/\n {2}sql {8}SELECT product.name FROM product WHERE .*red.*\n$/s);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
    expect(stdout).not.toContain("\x1b");
  });

  test("prints one object with --json", async () => {
    const { stdout } = await keyword(shop, "--json", "--step-budget", "7", "What is the price of the chair?");
    expect(stdout.trim().split("\n")).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({
      database: "shop",
      answer: "45.0",
      sql: expect.stringContaining("price"),
      result: { columns: ["price"], rows: [[45]], truncated: null },
      agreement: null,
      samples: 0,
      support: "result",
      done_reason: "answered",
      steps: expect.arrayContaining([
        expect.objectContaining({ action_type: "DESCRIBE", argument: "product", error: null }),
      ]),
      model: "keyword",
      prompt: null,
      rules: "env-1",
      step_budget: 7,
    });
  });

  test("asks every line of stdin, continues after one that cannot be asked, and then exits 1", async () => {
    const input = `How many makers are there?\n\n${"x".repeat(1_000_000)}\nHow many products are there?`;
    const { stdout, stderr, code } = await ask(["--player", "keyword", "--data", shop, "--json"], input);
    expect(code).toBe(1);
    const told = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(told).toMatchObject([{ answer: "3" }, { answer: null, error: { code: "usage" } }, { answer: "5" }]);
    expect(stdout.length).toBeLessThan(20_000);
    expect(stderr.match(/^error: .*$/gm)).toEqual([expect.stringMatching(/longer than 2000 characters.*\(usage\)$/)]);
    const people = await ask(["--player", "keyword", "--data", shop], "How many makers are there?\n");
    expect(people).toMatchObject({ code: 0, stderr: "" });
    expect(people.stdout).toMatch(/^How many makers are there\?\n {2}describe/);
  });

  test.each<[readonly string[], RegExp]>([
    [["How many?"], /required option '--data <source>' not specified/],
    [["--data", data, "How many?"], /several databases: park, shop, store, zoo; name one: --database NAME/],
    [["--data", data, "--database", "shp", "How many?"], /no such --database: shp; did you mean shop\?/],
    [["--data", shop], /no question; ask one: .*ask --data my.sqlite/],
    [["--data", shop, "--player", "oracle", "x"], /knows the gold query.*: oracle; use model, chat/],
    [["--data", shop, "--player", "keywrd", "x"], /no such player: keywrd; did you mean keyword/],
    [["--data", shop, "--min-agreement", "2", "x"], /takes a share from 0 to 1: 2/],
    [["--data", shop, "--samples", "33", "x"], /--samples takes at most 32: 33/],
    [["--data", shop, "--temperature", "0", "x"], /at --temperature 0 are all equal.*--samples 0/],
    [["--data", shop, "--player", "model", "--engine", "http://127.0.0.1:1", "x"], /--engine needs --model/],
    [["--data", shop, "--player", "chat", "x"], /needs --base-url and --model/],
  ])("wrong use %j exits 2 with one line", async (args, message) => {
    const { stdout, stderr, code } = await ask(args.includes("--player") ? args : ["--player", "keyword", ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

describe("samples", () => {
  let chat: ScriptedChat;
  let asked = 0;
  beforeAll(async () => {
    // Queries first, then answers: 3 in the first episode, and in turn 3, 3 and 4 in the others.
    chat = await scriptedChat((messages) => {
      if (messages.length === 2) return "QUERY: SELECT count(*), 4 FROM product WHERE colour = 'red'";
      return `ANSWER: ${[3, 3, 4][asked++ % 3]}`;
    });
  });
  afterAll(() => chat.close());

  const sampled = (...args: string[]) => {
    asked = 0;
    const flags = ["--base-url", chat.url, "--model", "m", "--shots", "0"];
    return ask(["--data", shop, ...flags, ...args, "How many products are red?"]);
  };

  test("are compared with the answer, and what they say is printed", async () => {
    const { stdout, code } = await sampled();
    expect(code).toBe(0);
    expect(stdout).toContain("  answer     3\n  sql        SELECT count(*), 4 FROM");
    expect(stdout).toMatch(/\n {2}agreement {2}3 of 5 samples agree\n {13}others: 4 \(2 times\)\n$/);
  });

  test("make the answer unsure below --min-agreement, and the exit code stays 0", async () => {
    const { stdout, code } = await sampled("--samples", "2", "--min-agreement", "0.9", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      answer: "3",
      agreement: 0.5,
      samples: 2,
      unsure: { reason: "samples_disagree", text: "1 of 2 samples agrees" },
      answers: [
        { answer: "3", samples: 1 },
        { answer: "4", samples: 1 },
      ],
      model: "chat:m",
      prompt: "instruct-1",
      rules: "env-1+hints+stuck3+last+many",
    });
    const shown = await sampled("--samples", "2", "--min-agreement", "0.9");
    expect(shown.stdout).toMatch(/\n {2}unsure {5}1 of 2 samples agrees\n {13}others: 4\n$/);
    expect((await sampled("--samples", "0", "--temperature", "0")).stdout).not.toContain("agree");
  });

  test("are asked too if the answer is missing, which exits 1", async () => {
    const { stdout, code } = await sampled("--samples", "1", "--step-budget", "1", "--json");
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ answer: null, sql: null, unsure: { reason: "no_answer" } });
    const shown = await sampled("--samples", "1", "--step-budget", "1");
    expect(shown.stdout).toMatch(/ {2}no answer\n {2}unsure {5}the episode ended without an answer: no steps left\n$/);
  });

  test("a player that fails ends the question with one line", async () => {
    const args = ["--data", shop, "--base-url", `${chat.url}/nowhere`, "--model", "m", "How many?"];
    const { stderr, code } = await ask(args);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: the model failed: .*\(player_failed\)\n$/);
  });
});

test("Ctrl-C stops a question, with the exit code of other commands", async () => {
  const silent = createServer(() => {}); // never answers
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`;
    const ran = ask(["--data", shop, "--base-url", url, "--model", "m", "How many?"]);
    await once(silent, "request");
    process.emit("SIGINT");
    expect(await ran).toEqual({ stdout: "", stderr: "interrupted\n", code: 130, signal: null });
  } finally {
    silent.closeAllConnections();
    silent.close();
  }
});
