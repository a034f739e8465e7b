// Stock Python clients and validators against our server: `openenv` 0.10, `openenv-core` 0.3 (either, as SQLENV_PYTHON has
// it) and `mcp` (SQLENV_MCP_PYTHON; openenv requires an older one). Without Python the tests are skipped with a message;
// a package that is installed and does not import fails.
import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { bundledDataSet, loadSqlite, SQLEnvironment } from "sqlenv";
import { afterAll, describe, expect, test } from "vitest";
import { smallDataFolder } from "../helpers/cli-process.ts";
import { ROOT } from "../helpers/dockerfile.ts";
import { without } from "../helpers/needs.ts";
import { versionOf } from "../helpers/python.ts";
import { type ServeProcess, serveProcess } from "../helpers/serve-process.ts";
import { until } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const python = process.env.SQLENV_PYTHON ?? "";
const mcpPython = process.env.SQLENV_MCP_PYTHON ?? "";

const openenv = versionOf(python, "openenv", "openenv-core");
const mcp = versionOf(mcpPython, "mcp");
const note = without("openenv", openenv !== "", "set SQLENV_PYTHON to a Python that has it");
const mcpNote = without("mcp", mcp !== "", "set SQLENV_MCP_PYTHON to a Python that has it");
/** Why a runtime check is skipped: it needs Docker, or this OpenEnv has only its name. */
const SKIPPED = /not implemented in this build|missing provider capabilities: network_policy/;
const run = async (interpreter: string, ...args: string[]) =>
  (await promisify(execFile)(interpreter, args, { maxBuffer: 1e8, cwd: ROOT })).stdout;

const EPISODE = `
import json, sys
from openenv.core.generic_client import GenericEnvClient
url, question_id, answer = sys.argv[1:]
with GenericEnvClient(base_url=url).sync() as env:
    first = env.reset(question_id=question_id, episode_id="stock")
    looked = env.step({"action_type": "QUERY", "argument": "SELECT 1"})
    try:
        env.step({"action_type": "DROP", "argument": "x"})
        said = ""
    except RuntimeError as error:
        said = str(error)
    last = env.step({"action_type": "ANSWER", "argument": answer})
    print(json.dumps({"question": first.observation["question"], "result": looked.observation["result"], "said": said,
                      "reward": last.reward, "done": last.done, "state": env.state()}))
`;

// Each client plays its share of the questions: reset on the socket, some steps as tools over HTTP, some on the socket.
const MANY = `
import asyncio, json, sys
from openenv.core.mcp_client import MCPToolClient
from openenv.core.env_server.mcp_types import CallToolAction
url, episodes = sys.argv[1], json.loads(sys.stdin.read())
played = []
async def play(mine):
    async with MCPToolClient(base_url=url) as env:
        for question_id, steps in mine:
            await env.reset(question_id=question_id)
            for place, (tool, args) in enumerate(steps):
                if place % 2: await env.step(CallToolAction(tool_name=tool, arguments=args))
                else: await env.call_tool(tool, **args)
            result = await env._send_and_receive({"type": "state"})
            played.append([question_id, result["data"]])
async def main():
    await asyncio.gather(*(play(episodes[i::16]) for i in range(16)))
asyncio.run(main())
print(json.dumps(played))
`;

const MCP = `
import asyncio, json, sys
from mcp import Client
async def main(url, question_id, answer):
    async with Client(url) as a, Client(url) as b:
        tools = [tool.name for tool in (await a.list_tools()).tools]
        await a.call_tool("start", {"question_id": question_id})
        await b.call_tool("start", {"seed": 1})
        wrong = await b.call_tool("query", {"statement": "x"})
        last = await a.call_tool("answer", {"answer": answer})
        print(json.dumps({"tools": tools, "is_error": wrong.is_error, "last": last.structured_content}))
asyncio.run(main(*sys.argv[1:]))
`;

// OpenEnv's own runtime checks, with a running server in place of the image that its Docker provider builds and starts.
const RUNTIME = `
import json, sys
from pathlib import Path
from openenv.validation.runner import run_validation
from openenv.validation.types import Level, ProviderCapability
class Running:
    base_url = sys.argv[2]
    def inspect(self): return {}
    def stop(self): pass
class Provider:
    name = "running"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD})
    supported_network_modes = frozenset({"public"})
    def build(self, root, execution): return "sha256:" + "0" * 64
    def start(self, spec): return Running()
report = run_validation(Path(sys.argv[1]), max_level=Level.RUNTIME, provider=Provider())
print(json.dumps([[r.check_id, r.status.value, r.evidence] for r in report.results]))
`;

describe.skipIf(openenv === "")(`stock OpenEnv ${openenv}${note}`, () => {
  let server: ServeProcess | undefined;
  afterAll(() => server?.stop());
  const isNew = !openenv.startsWith("0.3");

  test("GenericEnvClient plays an episode", async () => {
    server ??= await serveProcess(["--data", await smallDataFolder()]);
    const { questions } = await smallDataSet();
    const { question_id, question_text, gold_answer } = questions[0]!;
    const seen = JSON.parse(await run(python, "-c", EPISODE, server.url, question_id, gold_answer));
    expect(seen).toMatchObject({ question: question_text, result: "1\n1", done: true });
    expect(seen.said).toContain("(code: VALIDATION_ERROR)");
    expect(seen.reward).toBeGreaterThan(1);
    expect(seen.state).toMatchObject({ episode_id: "stock", step_count: 2, correctness: 1 });
  }, 120_000);

  test("openenv validate --url passes", async () => {
    server ??= await serveProcess(["--data", await smallDataFolder()]);
    const report = JSON.parse(await run(python, "-m", "openenv.cli", "validate", "--url", server.url, ...asJson()));
    expect(JSON.stringify(report)).toMatch(/"passed_count":6,|"verdict":"pass"/i);
  }, 120_000);

  test.skipIf(!isNew)(
    "openenv validate --level static passes in a checkout",
    async () => {
      const folder = checkout();
      const said = await run(join(dirname(python), "openenv"), "validate", folder, "--level", "static");
      rmSync(folder, { recursive: true });
      expect(said).toContain("Verdict: PASS");
    },
    120_000,
  );

  test.skipIf(!isNew)(
    "openenv validate --level runtime: the checks that need no Docker pass",
    async () => {
      server ??= await serveProcess(["--data", await smallDataFolder()]);
      const folder = checkout();
      const results = JSON.parse(await run(python, "-c", RUNTIME, folder, server.url)) as [string, string, string[]][];
      rmSync(folder, { recursive: true });
      const runtime = results.filter(([name]) => name.startsWith("runtime."));
      const passed = runtime.filter(([, status]) => status === "pass").map(([name]) => name.slice("runtime.".length));
      expect(passed.sort()).toEqual(["observation_schema", "reward_well_formed", "startup", "state_contract"]);
      for (const [name, status, evidence] of results)
        if (status !== "pass")
          expect([name, status, evidence[0]]).toEqual([name, "skip", expect.stringMatching(SKIPPED)]);
    },
    120_000,
  );

  test("examples/clients/openenv_loop.py plays five questions, with the rewards of a replay in process", async () => {
    await loadSqlite();
    const plain = await serveProcess([]);
    const said = await run(python, join(ROOT, "examples/clients/openenv_loop.py"), plain.url);
    await until(async () => (await plain.sessions()) === 0);
    await plain.stop();
    const played = said
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { question_id: string; rewards: number[] });
    const local = new SQLEnvironment(bundledDataSet(), { step_budget: 15 });
    const expected = Array.from({ length: 5 }, (_, index) => {
      const { schema_info } = local.reset({ split: "eval", index });
      const table = schema_info.split(",")[0]!;
      const counted = local.step({ action_type: "QUERY", argument: `SELECT count(*) FROM "${table}"` });
      const answered = local.step({ action_type: "ANSWER", argument: counted.result.split("\n").at(-1)! });
      return { question_id: local.state.question_id, rewards: [counted.reward, answered.reward] };
    });
    expect(played).toEqual(expected);
  }, 120_000);

  test("200 episodes by 16 MCPToolClients have the rewards of a replay in process", async () => {
    await loadSqlite();
    const data = bundledDataSet();
    const busy = await serveProcess([]);
    const episodes = Array.from({ length: 200 }, (_, i) => {
      const { question_id, gold_sql, gold_answer } = data.questions[(i * 7) % data.questions.length]!;
      const table = "sqlite_master";
      const steps: [string, Record<string, string>][] = [
        ["describe", { table }],
        ["query", { sql: i % 3 === 0 ? "SELECT nothing" : gold_sql }],
        ["query", { sql: `SELECT ${i % 5}` }],
        ["answer", { answer: i % 4 === 0 ? "surely not this" : gold_answer }],
      ];
      return [question_id, steps] as const;
    });
    const child = promisify(execFile)(python, ["-c", MANY, busy.url], { maxBuffer: 1e8 });
    child.child.stdin!.end(JSON.stringify(episodes));
    const played = JSON.parse((await child).stdout) as [string, Record<string, unknown>][];
    await until(async () => (await busy.sessions()) === 0);
    await busy.stop();
    const local = new SQLEnvironment(data, { step_budget: 15 });
    const expected = episodes.map(([question_id, steps]) => {
      local.reset({ question_id });
      for (const [tool, args] of steps)
        local.step({ action_type: tool.toUpperCase() as "QUERY", argument: Object.values(args)[0]! });
      return JSON.stringify([question_id, local.outcome]);
    });
    const got = played.map(([id, { correctness, progress, operational, done_reason }]) =>
      JSON.stringify([id, { correctness, progress, operational, done_reason }]),
    );
    expect(got.sort()).toEqual(expected.sort());
    expect(new Set(expected.map((one) => JSON.parse(one)[1].correctness))).toEqual(new Set([0, 1]));
  }, 300_000);

  /** The files of a fresh checkout that OpenEnv's validator reads. */
  function checkout(): string {
    const folder = mkdtempSync(join(tmpdir(), "sqlenv-checkout-"));
    const files = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
    for (const file of files.filter((name) => !name.includes("/") || name.startsWith("deploy/")))
      cpSync(join(ROOT, file), join(folder, file), { recursive: true });
    return folder;
  }

  function asJson(): string[] {
    return isNew ? ["--json"] : [];
  }
});

test.skipIf(mcp === "")(
  `stock MCP client ${mcp}${mcpNote} lists and calls the tools`,
  async () => {
    const server = await serveProcess(["--data", await smallDataFolder()]);
    const { question_id, gold_answer } = (await smallDataSet()).questions[0]!;
    const seen = JSON.parse(await run(mcpPython, "-c", MCP, `${server.url}/mcp`, question_id, gold_answer));
    expect(seen).toMatchObject({ is_error: true, last: { done: true, outcome: { correctness: 1 } } });
    expect(seen.tools).toContain("query");
    await until(async () => (await server.sessions()) === 0);
    await server.stop();
  },
  120_000,
);
