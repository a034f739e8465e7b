// Tool calls over the LLM endpoint: by plain HTTP, and by the stock `openai` package (SQLENV_PYTHON), which plays the
// environment's episodes. Without Python its tests are skipped with a message.
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type EpisodeRecord, evaluate, modelPlayer, SQLEnvironment } from "sqlenv";
import { SERVER_STEP_BUDGET } from "sqlenv/apps/openenv";
import { formatObservation } from "sqlenv/gym/players";
import { loadModelAndTokenizer } from "sqlenv/lm/engine/node";
import { afterAll, describe, expect, test } from "vitest";
import { smallDataFolder } from "../helpers/cli-process.ts";
import { ROOT } from "../helpers/dockerfile.ts";
import { without } from "../helpers/needs.ts";
import { serveProcess } from "../helpers/serve-process.ts";
import { until, type Wire } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";
import { environmentTools, writeToolModel } from "../helpers/tool-model.ts";

const python = process.env.SQLENV_PYTHON ?? "";
const hasOpenAi = (() => {
  if (python === "") return false;
  try {
    execFileSync(python, ["-c", "import openai, mcp"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();
const note = without("openai", hasOpenAi, "set SQLENV_PYTHON to a Python that has it and mcp");

const data = await smallDataSet();
const questions = data.questions.filter(({ split }) => split === "eval");
const env = new SQLEnvironment(data, { step_budget: SERVER_STEP_BUDGET });
const EXAMPLE = "examples/clients/play_with_openai.py";
const SYSTEM =
  "You answer a question about a SQLite database. Explore it with the tools, one call per reply; end with answer.";
const tools = environmentTools();
const QUERY = { name: "query", arguments: { sql: "SELECT count(*) FROM animal" } };
const ANSWER = { name: "answer", arguments: { answer: "4" } };

/** Plays the two calls in process. */
function played(question_id: string) {
  const first = env.reset({ question_id });
  const second = env.step({ action_type: "QUERY", argument: QUERY.arguments.sql });
  const last = env.step({ action_type: "ANSWER", argument: ANSWER.arguments.answer });
  return { texts: [first, second, last].map(formatObservation), outcome: env.outcome };
}

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-tools-"));
const folder = join(scratch, "caller");
await writeToolModel(
  folder,
  questions.map(({ question_id }) => {
    const [user = "", result = "", end = ""] = played(question_id).texts;
    const calls = [
      [QUERY, result],
      [ANSWER, end],
    ] as const;
    return { system: SYSTEM, user, tools, calls };
  }),
);
const server = await serveProcess(["--model", folder, "--data", await smallDataFolder(), "--model-threads", "1"]);
afterAll(async () => {
  await server.stop();
  rmSync(scratch, { recursive: true, force: true });
});

const example = async (...args: string[]) => {
  const { stdout } = await promisify(execFile)(python, [EXAMPLE, ...args], { cwd: ROOT });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Wire);
};

describe("tool calls over HTTP", () => {
  const messages = [
    { role: "system", content: SYSTEM },
    { role: "user", content: played(questions[0]!.question_id).texts[0] },
  ];
  const body = { model: "caller", messages, tools, temperature: 0, max_tokens: 100 };
  const ask = async (more: object = {}) => {
    const text = JSON.stringify({ ...body, ...more });
    const response = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body: text });
    return response.text();
  };

  test("a reply has the call, and the next one answers its result", async () => {
    const { choices } = JSON.parse(await ask()) as Wire;
    const [{ message, finish_reason }] = choices;
    expect([finish_reason, message.content]).toEqual(["tool_calls", null]);
    const [call] = message.tool_calls;
    expect(call).toMatchObject({ type: "function", function: { name: "query" } });
    expect(JSON.parse(call.function.arguments)).toEqual(QUERY.arguments);
    const result = { role: "tool", tool_call_id: call.id, content: played(questions[0]!.question_id).texts[1] };
    const next = JSON.parse(await ask({ messages: [...messages, message, result] })) as Wire;
    expect(next.choices[0].message.tool_calls[0].function.name).toBe("answer");
  });

  test("a stream has the same call in one part", async () => {
    const events = (await ask({ stream: true })).split("\n\n").filter((event) => event.startsWith("data: {"));
    const parts = events.map((event) => (JSON.parse(event.slice(6)) as Wire).choices[0]);
    const calls = parts.flatMap(({ delta }) => delta.tool_calls ?? []);
    expect(calls).toMatchObject([{ index: 0, type: "function", function: { name: "query" } }]);
    expect(parts.map(({ delta }) => delta.content ?? "").join("")).toBe("");
    expect(parts.at(-1).finish_reason).toBe("tool_calls");
  });

  test("with tool_choice none the call is text", async () => {
    const { choices } = JSON.parse(await ask({ tool_choice: "none" })) as Wire;
    expect(choices[0].message.tool_calls).toBeUndefined();
    expect(choices[0].finish_reason).not.toBe("tool_calls");
  });
});

describe.skipIf(!hasOpenAi)(`the openai package${note}`, () => {
  test("plays by tool calls, with the outcomes of a replay", async () => {
    const where = ["--env", server.url, "--llm", `${server.url}/v1`];
    const episodes = await example(...where, "--model", "caller", "--episodes", String(questions.length));
    expect(episodes).toEqual(
      questions.map(({ question_id }, index) => {
        const { correctness, progress, operational, done_reason } = played(question_id).outcome;
        const actions = [QUERY, ANSWER].map(({ name, arguments: args }) => [name, args]);
        return { index, actions, correctness, progress, operational, done_reason };
      }),
    );
    expect(new Set(episodes.map(({ correctness }) => correctness))).toEqual(new Set([0, 1]));
    await until(async () => (await server.sessions()) === 0);
  }, 300_000);

  test("plays the starter by text as its own player does", async () => {
    const starter = await serveProcess(["--model", "starter", "--data", await smallDataFolder()]);
    const where = ["--env", starter.url, "--llm", `${starter.url}/v1`];
    const count = String(questions.length);
    const episodes = await example(...where, "--model", "starter", "--text", "--episodes", count);
    await starter.stop();
    const model = await loadModelAndTokenizer("starter", { trains: false });
    const decode = (ids: readonly number[]) => model.tokenizer.decode(ids, { skipSpecial: true });
    const own = new Map<string, EpisodeRecord>();
    await evaluate(data, modelPlayer({ ...model, decode }), {
      split: "eval",
      step_budget: SERVER_STEP_BUDGET,
      onEpisode: (record) => own.set(record.question_id, record),
    });
    await model.engine.close();
    const texts = questions.map(({ question_id }) => own.get(question_id)!.steps.map(({ text }) => text));
    expect(episodes.map(({ actions }) => actions.map(([, { text }]: [string, Wire]) => text))).toEqual(texts);
  }, 300_000);

  test("without tools in the template, says so and fails", async () => {
    const starter = await serveProcess(["--model", "starter", "--data", await smallDataFolder()]);
    const where = ["--env", starter.url, "--llm", `${starter.url}/v1`];
    await expect(example(...where, "--model", "starter", "--episodes", "1")).rejects.toThrow(/has no tools/);
    await starter.stop();
  }, 300_000);
});
