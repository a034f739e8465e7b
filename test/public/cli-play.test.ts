import { once } from "node:events";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { SQLObservation } from "sqlenv/gym/env";
import type { EpisodeRecord } from "sqlenv/gym/evaluation";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ended, smallDataFolder, sqlenvInside, start } from "../helpers/cli-process.ts";

let data: string;
beforeAll(async () => {
  data = await smallDataFolder();
});
afterAll(() => rmSync(dirname(data), { recursive: true }));

const play = (args: readonly string[], lines: readonly string[] = []) =>
  sqlenvInside(["play", "--data", data, ...args], lines.map((line) => `${line}\n`).join(""));

describe("a person plays", () => {
  test("plays an episode: exploring, typing errors that cost nothing, a wrong answer, the gold query at the end", async () => {
    const lines = [
      "d",
      "d product",
      "hint",
      "SELECT name FROM product WHERE price > 100",
      "tables",
      "history",
      "a 42",
      "n",
    ];
    const { stdout, code } = await play(["--question", "shop_train_001", "--step-budget", "5"], lines);
    expect(code).toBe(0);
    const [before, after] = stdout.split("Not quite.") as [string, string];
    expect(before).toContain("How many products have the colour red?");
    expect(before).toContain("██████████ 5 of 5 steps left");
    expect(before).toContain("which table? Choose from maker, product");
    expect(before).toContain("│ maker_id  │ integer │ → maker.id  │");
    expect(before).toContain("+0.025: +0.02 it worked, +0.01 new, −0.005 a step");
    expect(before).toContain("look at product");
    expect(before).toContain("│ table │");
    expect(before).toContain("2. QUERY: SELECT name FROM product WHERE price > 100");
    expect(before).not.toContain("colour = 'red'");
    expect(after).toContain("You answered: 42 (39 too high)");
    expect(after).toContain("The answer: 3");
    expect(after).toContain("The query: SELECT count(*) FROM product WHERE colour = 'red'");
    expect(after).toContain("another?");
    expect(stdout).not.toContain("\x1b"); // no colours in a pipe
  });

  test("a right answer, another question, and quitting work", async () => {
    const { stdout, code } = await play(["--question", "shop_train_000", "--seed", "1"], ["answer: 5", "", "quit"]);
    expect(code).toBe(0);
    expect(stdout).toContain("Correct! Total reward +1.245.");
    expect(stdout.match(/steps left/g)).toHaveLength(2);
  });

  test("says so when there is no other question, instead of offering one", async () => {
    const folder = join(dirname(data), "single");
    cpSync(join(data, "databases"), join(folder, "databases"), { recursive: true });
    const all = JSON.parse(readFileSync(join(data, "questions/questions_train.json"), "utf8")) as object[];
    writeFileSync(join(folder, "questions.json"), JSON.stringify(all.slice(0, 1)));
    const { stdout, code } = await sqlenvInside(["play", "--data", folder], "a 5\n");
    expect(code).toBe(0);
    expect(stdout).toMatch(/Correct!.*That was the only question\.\n$/s);
    expect(stdout).not.toContain("another?");
  });

  test("ends with a message when the steps or the input run out", async () => {
    const { stdout, code } = await play(["--question", "shop_train_000", "--step-budget", "1"], ["s maker"]);
    expect(code).toBe(0);
    expect(stdout).toContain("No steps left.");
    expect((await play([])).code).toBe(0);
  });

  test("the guided rules give hints, accept @last and end a stuck episode", async () => {
    const lines = ["d product", "SELECT nam FROM product", "SELECT count(*) FROM product", "a @last", "n"];
    const { stdout } = await play(["--question", "shop_train_000", "--guided"], lines);
    expect(stdout).toContain("a @last    answer with the whole result of the last query");
    expect(stdout).toContain("no such column: nam; did you mean product.name? columns: product(");
    expect(stdout).toContain("Correct!");
    const failing = Array(3).fill("SELECT nam FROM product");
    const stuck = await play(["--question", "shop_train_000", "--end-after-failures", "3"], failing);
    expect(stuck.stdout).toContain("The same action failed too often.");
  });

  test("Ctrl-C exits with 130", async () => {
    const child = start(["play", "--data", data]);
    const ending = ended(child);
    await once(child.stdout, "data");
    child.kill("SIGINT");
    expect((await ending).code).toBe(130);
  });
});

describe("watching", () => {
  test("shows a player's episode as text and as JSON", async () => {
    const { stdout, code } = await play(["--player", "keyword", "--question", "shop_eval_000"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/keyword plays[\s\S]*> DESCRIBE: product[\s\S]*Correct!/);
    const json = await play(["--player", "keyword", "--question", "shop_eval_000", "--json"]);
    const record = JSON.parse(json.stdout) as EpisodeRecord;
    expect(record).toMatchObject({ question_id: "shop_eval_000", correctness: 1 });
    expect(json.stdout).not.toMatch(/gold/);
  });

  test.each([
    [["--player", "keyword", "--stdio"], /--stdio cannot be combined/],
    [["--json"], /--json needs --player/],
    [["--question", "shop_eval_00"], /did you mean shop_eval_00/],
    [["--player", "nobody"], /no such player/],
    [["--database", "park", "--difficulty", "hard"], /no question matches/],
  ])("wrong use %j exits 2", async (args, message) => {
    const { stderr, code } = await play(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe("--stdio", () => {
  /** The replies to these messages, one each; checks that none reveals the gold query. */
  async function exchange(messages: readonly (object | string)[], ...args: string[]) {
    const lines = messages.map((message) => (typeof message === "string" ? message : JSON.stringify(message)));
    const { stdout, stderr, code } = await play(["--stdio", ...args], lines);
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    expect(stdout).not.toMatch(/gold/i);
    return stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as SQLObservation & { error: { code: string; what: string; remedy: string } });
  }

  test("plays an episode for a program, without revealing the gold query", async () => {
    const replies = await exchange([
      { reset: { question_id: "shop_eval_001" } },
      { action_type: "DESCRIBE", argument: "product" },
      { action_type: "ANSWER", argument: "I do not know" },
      { action_type: "QUERY", argument: "SELECT 1" },
      { close: true },
      { reset: {} },
    ]);
    expect(replies).toHaveLength(4);
    expect(replies[0]).toMatchObject({ step_count: 0, done: false, reward: null, schema_info: "maker, product" });
    expect(replies[1]!.result).toMatch(/^product: 5 rows\n/);
    expect(replies[2]).toMatchObject({ done: true, reward_breakdown: { correctness: 0 } });
    expect(replies[3]).toMatchObject({ error_class: "episode_done", step_count: 2 });
    expect(JSON.stringify(replies)).not.toMatch(/JOIN|clock/); // words of the gold query and its answer
  });

  test("seeds and splits choose the question, the same every time", async () => {
    const ask = [
      { reset: { seed: 3 } },
      { reset: { seed: 4, split: "train" } },
      { reset: {} },
      { reset: { index: 0 } },
    ];
    const questions = (await exchange(ask, "--seed", "9", "--split", "eval")).map(({ question }) => question);
    expect((await exchange(ask, "--seed", "9", "--split", "eval")).map(({ question }) => question)).toEqual(questions);
    expect(new Set(questions).size).toBeGreaterThan(1);
  });

  test("hostile lines get an error object each, and the session continues", async () => {
    const replies = await exchange([
      { action_type: "QUERY", argument: "SELECT 1" },
      "",
      "DESCRIBE: product",
      "{",
      "[".repeat(50_000),
      '{"reset": {"question_id": "__proto__"}}',
      "x".repeat(3_000_000),
      "\u0000\u0001",
      '{"action_type": "ANSWER"}',
      { reset: { question_id: "zoo_train_000" } },
      { action_type: "QUERY", argument: "ATTACH 'x' AS y" },
      { action_type: "QUERY", argument: "y".repeat(200_000) },
      { action_type: "ANSWER", argument: "4" },
    ]);
    expect(replies.slice(0, 8).map(({ error }) => error.code)).toEqual([
      "no_episode",
      "bad_json",
      "bad_json",
      "bad_json",
      "usage",
      "line_too_long",
      "bad_json",
      "bad_message",
    ]);
    for (const { error } of replies.slice(0, 8)) expect(error.remedy).toEqual(expect.any(String));
    expect(replies.slice(9).map(({ error_class }) => error_class)).toEqual(["not_select", "bad_action", null]);
    expect(replies.at(-1)).toMatchObject({ done: true, reward_breakdown: { correctness: 1 } });
  });

  test("replies are sent immediately, not at the end", async () => {
    const child = start(["play", "--data", data, "--stdio"]);
    const ending = ended(child);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stdin.write('{"reset": {"question_id": "zoo_train_000"}}\n');
    expect(JSON.parse((await lines.next()).value as string)).toMatchObject({ step_count: 0 });
    child.stdin.write('{"action_type": "SAMPLE", "argument": "animal"}\n');
    expect(JSON.parse((await lines.next()).value as string)).toMatchObject({ step_count: 1 });
    child.stdin.write('{"close": true}\n');
    expect((await ending).code).toBe(0); // without the end of input
  });
});
