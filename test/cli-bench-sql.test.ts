import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BenchResult } from "../src/bench/result.ts";
import { smallDataFolder, sqlenvInside } from "./cli-process.ts";

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
    for (const line of stderr.split("\n")) expect(line.replace(file, "").length).toBeLessThanOrEqual(80);

    const other = join(dirname(data), "keyword.json");
    await bench("--player", "keyword", "--out", other);
    const compared = await sqlenvInside(["bench", "compare", other, file]);
    expect(compared).toMatchObject({ code: 0 });
    expect(compared.stdout).toMatch(/A: keyword\nB: oracle\n10 questions, 2 databases/);
    for (const line of compared.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    await bench("--player", "oracle", "--out", other, "--questions", "3");
    const refused = await sqlenvInside(["bench", "compare", other, file]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(/the results are about different questions: 3 and 10/);
  });

  test("a player that never queries is wrong, with the reason", async () => {
    const { stdout } = await bench("--player", "looker", "--json", "--votes", "3");
    const result = JSON.parse(stdout) as BenchResult;
    expect(result.protocol).toMatchObject({ votes: 3, temperature: 0.8 });
    expect(result.scores.any).not.toBeNull();
    const [first] = result.questions;
    expect(Object.keys(first!)).toContain("votes");
  });

  test("with the schema given, a model behind an endpoint writes one query", async () => {
    const server = createServer((_, response) => {
      const message = { content: "```sql\nSELECT count(*) FROM animal\n```" };
      response.end(JSON.stringify({ choices: [{ message }], usage: { prompt_tokens: 70, completion_tokens: 9 } }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const { stdout } = await bench("--schema", "given", "--base-url", url, "--model", "counter", "--json");
    server.close();
    const result = JSON.parse(stdout) as BenchResult;
    expect(result.protocol).toMatchObject({ schema: "given", prompt: "given-1", rules: null, step_budget: null });
    expect(result.per_question).toMatchObject({ tokens: 9, prompt_tokens: 70 });
    expect(result.scores.all.answer).toBeNull();
    expect(result.questions.some(({ spider }) => spider)).toBe(true);
    const teacher = await bench("--schema", "given", "--player", "teacher");
    expect(teacher.stderr).toMatch(/--schema given needs a model: teacher/);
  });

  test("says in one line what is missing", async () => {
    expect((await bench()).stderr).toMatch(/^error: nobody to measure; give --model/);
    const nowhere = await bench("--player", "oracle", "--out", "/nowhere/x.json");
    expect(nowhere.stderr).toMatch(/--out cannot be written/);
    expect((await bench("--player", "oracle", "--votes", "0")).stderr).toMatch(/--votes must be at least 1/);
  });
});
