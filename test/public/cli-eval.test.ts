import { createHash } from "node:crypto";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import type { QuestionRecord } from "sqlenv/gym/data";
import type { EpisodeRecord, EvaluationReport } from "sqlenv/gym/evaluation";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ended, smallDataFolder, sqlenv, sqlenvInside, start } from "../helpers/cli-process.ts";

let data: string;
let server: Server;
let baseUrl: string;
beforeAll(async () => {
  data = await smallDataFolder();
  // Answers 5 whatever is asked; with the model "slow" only the first two requests get an answer.
  let slow = 0;
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (JSON.parse(body).model === "slow" && ++slow > 2) return;
    if (request.headers.authorization !== "Bearer sk-secret") response.writeHead(401).end("who are you, sk-wrong?");
    else response.end(JSON.stringify({ choices: [{ message: { content: "ANSWER: 5" } }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(dirname(data), { recursive: true });
});

const evaluate = (args: readonly string[], env = {}) => sqlenvInside(["eval", "--data", data, ...args], "", env);

describe("sqlenv eval", () => {
  test("prints one object with --json, the same for any concurrency", async () => {
    const { stdout, code } = await sqlenv(["eval", "--data", data, "--player", "oracle", "--json"]);
    expect(code).toBe(0);
    const report = JSON.parse(stdout) as EvaluationReport;
    expect(report).toMatchObject({ player: "oracle", success_rate: 1, episodes: 15, scored: 15, errors: 0 });
    expect(report.success_ci).toHaveLength(2);
    expect(report.rules).toBe("env-1");
    expect(report.seen.episodes + report.unseen.episodes).toBe(15);
    expect(stdout).not.toMatch(/gold/);
    const again = await evaluate(["--player", "oracle", "--json", "--concurrency", "7"]);
    expect(again.stdout).toBe(stdout);
  });

  test("plays by the rules given as flags, and includes their id in every result", async () => {
    const out = join(dirname(data), "guided.jsonl");
    const flags = ["--player", "keyword", "--guided", "--end-after-failures", "4", "--out", out, "--json"];
    const { stdout } = await evaluate(flags);
    expect(JSON.parse(stdout)).toMatchObject({ rules: "env-1+hints+stuck4+last+many" });
    const records = readFileSync(out, "utf8").trim().split("\n");
    expect(records.every((line) => JSON.parse(line).rules === "env-1+hints+stuck4+last+many")).toBe(true);
  });

  test("suggests a remedy when the split has no questions, and prints the hash of the evaluation set", async () => {
    const folder = join(dirname(data), "own");
    cpSync(join(data, "databases"), join(folder, "databases"), { recursive: true });
    const all = JSON.parse(readFileSync(join(data, "questions/questions_train.json"), "utf8")) as QuestionRecord[];
    const questions = all.slice(0, 3).map(({ split: _, ...question }) => question);
    writeFileSync(join(folder, "questions.json"), JSON.stringify(questions));
    const none = await sqlenvInside(["eval", "--player", "oracle", "--data", folder]);
    expect(none).toMatchObject({ code: 2, stdout: "" });
    expect(none.stderr).toMatch(
      /no eval questions, only 3 train questions: own; use --split train, mark questions with "split": "eval"/,
    );
    const { stdout } = await sqlenvInside([
      "eval",
      "--player",
      "oracle",
      "--data",
      folder,
      "--split",
      "train",
      "--json",
    ]);
    const nothing = createHash("sha256").update("").digest("hex");
    expect(JSON.parse(stdout)).toMatchObject({ episodes: 3, eval_ids_sha256: nothing });
  });

  test("prints a table for people, transcripts with --show and episodes with --out", async () => {
    const out = join(dirname(data), "episodes.jsonl");
    const args = ["--player", "keyword", "--episodes", "20", "--difficulty", "easy", "--show", "1", "--out", out];
    const { stdout, stderr, code } = await evaluate(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(/keyword on small, eval split, seed 7/);
    expect(stdout).toMatch(/unseen databases\s+\d+\s+\d+\.\d %\s+\d+\.\d – \d+\.\d %/);
    expect(stdout.match(/^=> /gm)).toHaveLength(1);
    expect(stderr).toBe(""); // no progress without a terminal
    const records = readFileSync(out, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as EpisodeRecord);
    expect(records).toHaveLength(20);
    expect(records.every(({ difficulty, player }) => difficulty === "easy" && player === "keyword")).toBe(true);
    expect(JSON.stringify(records)).not.toMatch(/gold/);
  });

  test.each([
    [["--player", "keywrd"], /no such player: keywrd; did you mean keyword\?/],
    [["--player", "zzz"], /use random, looker, keyword, oracle, teacher, chat/],
    [["--player", "constructor"], /no such player/],
    [["--player", "random", "--difficulty", "medum"], /did you mean medium\?/],
    [["--player", "random", "--database", "shp"], /did you mean shop\?/],
    [["--player", "random", "--split", "test"], /invalid --split: test/],
    [["--player", "random", "--step-budget", "0"], /--step-budget takes a whole number from 1: 0/],
    [["--player", "random", "--end-after-failures", "1"], /end_after_failures must be a whole number from 2/],
    [["--player", "random", "--episodes", "0"], /episodes/],
    [["--player", "random", "--database", "park", "--difficulty", "hard"], /no question fits/],
    [["--player", "random", "--out", "/nowhere/at/all.jsonl"], /cannot write --out/],
    [["--player", "chat"], /needs --base-url and --model/],
    [["--player", "chat", "--model", "m", "--base-url", "nowhere"], /not a base URL/],
    [[], /--player/],
  ])("wrong use %j exits 2 with one line", async (args, message) => {
    const { stdout, stderr, code } = await evaluate(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

describe("sqlenv eval --player chat", () => {
  const chat = (...more: string[]) => ["--player", "chat", "--base-url", baseUrl, "--model", "tiny", ...more];

  test("plays through an endpoint, with the key from the environment", async () => {
    const args = chat("--json", "--api-key-env", "MY_KEY");
    const { stdout, stderr, code } = await evaluate(args, { MY_KEY: "sk-secret" });
    expect(code).toBe(0);
    const report = JSON.parse(stdout) as EvaluationReport;
    expect(report).toMatchObject({ player: "chat:tiny", episodes: 15, scored: 15, mean_steps: 1 });
    expect(report.success_rate).toBeCloseTo(1 / 15); // one question has the answer 5
    expect(stdout + stderr).not.toContain("sk-secret");
  });

  test("exits 1 with the first error when every episode failed, without revealing the key", async () => {
    const { stdout, stderr, code } = await evaluate(chat("--json"), { OPENAI_API_KEY: "sk-wrong" });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ episodes: 15, scored: 0, errors: 15, success_rate: null });
    expect(stderr).toMatch(/error: every episode failed.*refuses the key \(401/);
    expect(stdout + stderr).not.toContain("sk-wrong");
  });

  test("Ctrl-C prints the report of the played episodes and exits with 130", async () => {
    const out = join(dirname(data), "partial.jsonl");
    const args = ["eval", "--data", data, ...chat("--json", "--concurrency", "1", "--out", out)];
    args[args.indexOf("tiny")] = "slow";
    const child = start(args, { OPENAI_API_KEY: "sk-secret" });
    const ending = ended(child);
    // The third request is never answered; when it arrives two episodes are finished.
    let requests = 0;
    await new Promise<void>((resolve) => server.on("request", () => ++requests === 3 && resolve()));
    child.kill("SIGINT");
    const { stdout, code } = await ending;
    expect(code).toBe(130);
    expect(JSON.parse(stdout)).toMatchObject({ episodes: 2, scored: 2, interrupted: true });
    expect(readFileSync(out, "utf8").trimEnd().split("\n")).toHaveLength(2);
  });
});
