import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BenchResult, drawnBench } from "../helpers/bench.ts";
import { smallDataFolder, sqlenvInside } from "../helpers/cli-process.ts";
import { writeTinyFolder } from "../helpers/tiny-folder.ts";

let data: string;
beforeAll(async () => {
  data = await smallDataFolder();
});
afterAll(() => rmSync(dirname(data), { recursive: true }));

const bench = (...args: readonly string[]) => sqlenvInside(["bench", "spider", "--data", data, ...args]);

describe("sqlenv bench spider", () => {
  test("gold queries are right by every measure, on unseen databases only", async () => {
    const file = join(dirname(data), "oracle.json");
    const { stdout, stderr, code } = await bench("--player", "oracle", "--json", "--out", file);
    expect(code).toBe(0);
    const result = JSON.parse(stdout) as BenchResult;
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(result);
    const all = result.scores.all;
    for (const measure of ["answer", "spider", "bird", "twins"] as const)
      expect(all[measure]).toMatchObject({ rate: 1 });
    expect(all.questions).toBe(result.questions.length);
    expect(result.protocol).toMatchObject({ benchmark: "spider", schema: "unknown", votes: 1, step_budget: 10 });
    expect(result.questions.every(({ reason, tokens }) => reason === null && tokens === null)).toBe(true);
    expect(result.twins).toMatchObject({ right_looking: result.questions.length, rejected: 0 });
    expect(stdout).not.toMatch(/SELECT/); // ids and verdicts only
    const lines = drawnBench({ ...result, stopped: 3 });
    expect(lines.join(" ")).toMatch(/ statements of 3 of 10 questions hit the time limit: /);
    expect(stderr).not.toMatch(/time limit/);
    for (const line of stderr.split("\n")) expect(line.replace(file, "").length).toBeLessThanOrEqual(80);

    const other = join(dirname(data), "keyword.json");
    await bench("--player", "keyword", "--out", other);
    const compared = await sqlenvInside(["bench", "compare", other, file]);
    expect(compared).toMatchObject({ code: 0 });
    expect(compared.stdout).toMatch(/A: keyword\nB: oracle\n10 questions, 2 databases/);
    for (const line of compared.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(compared.stdout).not.toMatch(/broke/);
    writeFileSync(other, JSON.stringify({ ...result, errors: 9 }));
    const broken = await sqlenvInside(["bench", "compare", other, file]);
    expect(broken.stdout).toMatch(/^A: 9 of 10 questions failed and count as wrong$/m);
    expect(broken.stdout).not.toMatch(/^B: \d/m);
    await bench("--player", "oracle", "--out", other, "--questions", "3");
    const refused = await sqlenvInside(["bench", "compare", other, file]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(/the results are about different questions: 3 and 10/);
  });

  test("a player that never queries is wrong, with the reason", async () => {
    const server = createServer((_, response) => {
      response.end(JSON.stringify({ choices: [{ message: { content: "ANSWER: 4" } }] }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const { stdout } = await bench("--base-url", url, "--model", "guesser", "--json", "--no-guided", "--shots", "0");
    server.close();
    const { questions, scores, errors } = JSON.parse(stdout) as BenchResult;
    expect(questions).toHaveLength(10);
    for (const question of questions)
      expect(question).toMatchObject({ spider: false, bird: false, twins: false, reason: "no query" });
    expect(questions.some(({ answer }) => answer)).toBe(true); // "4" is right where four are counted
    expect(scores.all).toMatchObject({ spider: { right: 0 }, bird: { right: 0 }, twins: { right: 0 } });
    expect(errors).toBe(0);
  });

  test("--votes samples several queries and reports voted@k and pass@k", async () => {
    const { stdout } = await bench("--player", "looker", "--json", "--votes", "3");
    const result = JSON.parse(stdout) as BenchResult;
    expect(result.protocol).toMatchObject({ votes: 3, temperature: 0.8 });
    expect(result.scores.any).not.toBeNull();
    for (const { votes } of result.questions) expect(votes).toBeGreaterThanOrEqual(1);
  });

  test.each([
    [["--schema", "given", "--prompt", "instruct"], /^error: --prompt has no effect with --schema given; omit it/],
    [["--schema", "given", "--shots", "0"], /^error: --shots has no effect/],
    [["--schema", "given", "--prompt-file", "x"], /^error: --prompt-file has no effect/],
    [["--schema", "given", "--unguided"], /^error: --no-guided has no effect/],
    [["--schema", "given", "--step-budget", "10"], /^error: --step-budget has no effect/],
    [["--sample-rows", "0"], /^error: --sample-rows has no effect with --schema unknown; omit it/],
    [["--votes", "3", "--temperature", "0"], /^error: --votes with --temperature 0 would sample the same attempt/],
  ])("refuses flags without an effect: %j", async (flags, line) => {
    expect(await bench("--player", "oracle", ...flags)).toMatchObject({ code: 2, stderr: expect.stringMatching(line) });
  });

  test("--max-context-tokens limits schema, question and query where the schema is given", async () => {
    const folder = join(dirname(data), "tiny");
    await writeTinyFolder(folder, { max_position_embeddings: 4096 });
    const given = ["--schema", "given", "--model", folder, "--device", "cpu", "--max-new-tokens", "1", "--twins", "0"];
    const reasons = async (...flags: readonly string[]) => {
      const { stdout } = await bench(...given, "--json", "--questions", "2", ...flags);
      return (JSON.parse(stdout) as BenchResult).questions.map(({ reason }) => reason);
    };
    expect(await reasons("--max-context-tokens", "64")).toEqual(["schema too long", "schema too long"]);
    expect(await reasons()).toEqual(["no query", "no query"]);
    const above = await bench(...given, "--max-context-tokens", "4097");
    expect(above.stderr).toMatch(/^error: --max-context-tokens exceeds the model's window of 4096: 4097/m);
  });

  test("with the schema given, a chat endpoint writes one query", async () => {
    let requests = 0;
    const server = createServer((_, response) => {
      if (++requests === 11)
        return response.writeHead(400).end(JSON.stringify({ error: { message: "too warm ".repeat(20) } }));
      const message = { content: "```sql\nSELECT count(*) FROM animal\n```" };
      response.end(JSON.stringify({ choices: [{ message }], usage: { prompt_tokens: 70, completion_tokens: 9 } }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const { stdout } = await bench("--schema", "given", "--base-url", url, "--model", "counter", "--json");
    const broken = await bench("--schema", "given", "--base-url", url, "--model", "counter");
    server.close();
    expect(broken.stdout.replace(/\n/g, " ")).toMatch(
      / 1 of 10 questions failed and count as wrong; the first: .*too warm/,
    );
    for (const line of broken.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    const result = JSON.parse(stdout) as BenchResult;
    expect(result.protocol).toMatchObject({ schema: "given", prompt: "given-1", rules: null, step_budget: null });
    expect(result.per_question).toMatchObject({ tokens: 9, prompt_tokens: 70 });
    expect(result.scores.all.answer).toBeNull();
    expect(result.questions.some(({ spider }) => spider)).toBe(true);
    const teacher = await bench("--schema", "given", "--player", "teacher");
    expect(teacher.stderr).toMatch(/--schema given needs a model: teacher/);
  });

  test("asks the questions of another file about the same databases: Spider-Syn's words", async () => {
    const file = join(dirname(data), "dev_syn.json");
    const words = {
      SpiderQuestion: "How many animals are there?",
      SpiderSynQuestion: "What number of beasts is there?",
    };
    const records = [
      { db_id: "park", query: "SELECT count(*) FROM animal", ...words },
      { db_id: "gone", query: "SELECT 1", ...words },
    ];
    writeFileSync(file, JSON.stringify(records));
    const args = ["--player", "oracle", "--questions-from", file];
    const { stdout, stderr } = await bench(...args, "--json", "--show", "1");
    expect(stderr).toMatch(/What number of beasts is there\?/);
    const { questions, data: asked } = JSON.parse(stdout) as BenchResult;
    expect(questions).toMatchObject([{ id: "park_eval_000", spider: true }]);
    expect(asked).toMatchObject({ questions: 1, rejected: { database_missing: 1 } });
    writeFileSync(file, JSON.stringify(records.slice(1)));
    expect((await bench(...args)).stderr).toMatch(/no usable question: 1 database_missing/);
    expect((await bench(...args, "--questions-from", "none.json")).stderr).toMatch(
      /question file not found: none\.json/,
    );
  });

  test("BIRD's questions include their evidence, except with --no-evidence", async () => {
    const folder = join(dirname(data), "bird");
    mkdirSync(join(folder, "dev_databases", "park"), { recursive: true });
    copyFileSync(join(data, "databases", "park", "park.sqlite"), join(folder, "dev_databases", "park", "park.sqlite"));
    const record = { db_id: "park", question: "How many are old?", SQL: "SELECT count(*) FROM animal WHERE age > 5" };
    const records = [{ ...record, evidence: "old refers to age > 5", difficulty: "simple" }];
    writeFileSync(join(folder, "dev.json"), JSON.stringify(records));
    const bird = (...args: readonly string[]) =>
      sqlenvInside(["bench", "bird", "--data", folder, "--player", "oracle", "--show", "1", "--json", ...args]);
    const given = await bird();
    expect(given.stderr).toMatch(/How many are old\? Hint: old refers to age > 5/);
    const left = await bird("--no-evidence");
    expect(left.stderr).not.toMatch(/Hint/);
    const [one, other] = [given, left].map(({ stdout }) => JSON.parse(stdout) as BenchResult);
    expect(one!.protocol).toMatchObject({ benchmark: "bird", evidence: true });
    expect(other!.protocol.evidence).toBe(false);
    expect(other!.data.content_sha256).not.toBe(one!.data.content_sha256);
    expect(one!.scores.all.bird!.rate).toBe(1);
  });

  test("reports what is missing in one line", async () => {
    expect((await bench()).stderr).toMatch(/^error: no model to measure; give --model/);
    const nowhere = await bench("--player", "oracle", "--out", "/nowhere/x.json");
    expect(nowhere.stderr).toMatch(/cannot write --out/);
    const folder = await bench("--player", "oracle", "--out", dirname(data));
    expect(folder).toMatchObject({
      code: 2,
      stdout: "",
      stderr: `error: --out is a folder: ${dirname(data)}; choose a file (usage)\n`,
    });
    expect((await bench("--player", "oracle", "--votes", "0")).stderr).toMatch(/--votes must be at least 1/);
  });
});
