// verifiers evaluates a scripted model on our server by examples/clients/verifiers_eval.py: its rewards equal a replay.
// Needs a Python with verifiers and its openenv, named by SQLENV_VERIFIERS_PYTHON; without one it is skipped.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { SQLEnvironment } from "sqlenv";
import { expect, test } from "vitest";
import { smallDataFolder } from "../helpers/cli-process.ts";
import { ROOT } from "../helpers/dockerfile.ts";
import { goldPlayer, goldReward } from "../helpers/gold-player.ts";
import { without } from "../helpers/needs.ts";
import { scriptedChat } from "../helpers/scripted-chat.ts";
import { serveProcess } from "../helpers/serve-process.ts";
import { post, until } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const python = process.env.SQLENV_VERIFIERS_PYTHON ?? "";
const note = without("verifiers", python !== "", "set SQLENV_VERIFIERS_PYTHON to a Python that has it");
const EPISODES = 6;

test.skipIf(python === "")(
  `verifiers${note} sends a model's replies as they are, and its rewards equal a replay`,
  async () => {
    const data = await smallDataSet();
    const server = await serveProcess(["--data", await smallDataFolder(), "--text-actions"]);
    const { tasks } = (await post(`${server.url}/sqlenv/tasks`, { split: "eval" })).body;
    const model = await scriptedChat(goldPlayer(data));
    const out = mkdtempSync(join(tmpdir(), "sqlenv-verifiers-"));
    const args = ["--url", server.url, "--model-url", model.url, "--model", "scripted", "--out", out];
    const { stdout } = await promisify(execFile)(
      python,
      [join(ROOT, "examples/clients/verifiers_eval.py"), ...args, "--episodes", String(EPISODES)],
      { cwd: out, maxBuffer: 1e8, env: { ...process.env, PATH: dirname(python) + delimiter + process.env.PATH } },
    );
    model.close();
    await until(async () => (await server.sessions()) === 0);
    await server.stop();
    const seen = stdout
      .split("\n")
      .filter((line) => line.startsWith('{"reset"'))
      .map((line) => JSON.parse(line));
    const env = new SQLEnvironment(data, { step_budget: 15 });
    const expected = Array.from({ length: EPISODES }, (_, index) => {
      const question = data.questions.find(({ question_id }) => question_id === tasks[index].question_id)!;
      return { reset: { split: "eval", index }, reward: goldReward(env, question), turns: 3, errors: [] };
    });
    expect(seen.sort((a, b) => a.reset.index - b.reset.index)).toEqual(expected);
    expect(new Set(expected.map(({ reward }) => reward > 1))).toEqual(new Set([true, false]));
    const [run] = readdirSync(out).filter((name) => existsSync(join(out, name, "traces.jsonl")));
    expect(
      readFileSync(join(out, run!, "traces.jsonl"), "utf8")
        .trim()
        .split("\n"),
    ).toHaveLength(EPISODES);
  },
  600_000,
);
