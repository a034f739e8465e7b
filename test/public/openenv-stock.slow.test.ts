// The stock Python client and validator against our server. Needs a Python that finds `openenv`, named by SQLENV_PYTHON
// (and PYTHONPATH where it is a checkout); without one these tests are skipped with a message.
import { execFile, execFileSync } from "node:child_process";
import { promisify } from "node:util";
import type { RunningServer } from "sqlenv/apps/openenv";
import { afterAll, describe, expect, test } from "vitest";
import { without } from "../helpers/needs.ts";
import { serve } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const python = process.env.SQLENV_PYTHON ?? "";

function hasOpenEnv(): boolean {
  if (python === "") return false;
  try {
    execFileSync(python, ["-c", "import openenv.core.generic_client"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const isThere = hasOpenEnv();
const note = without("openenv", isThere, "set SQLENV_PYTHON to a Python that has it");

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

describe.skipIf(!isThere)(`stock OpenEnv${note}`, () => {
  let server: RunningServer;
  afterAll(() => server?.close());
  const run = async (...args: string[]) => (await promisify(execFile)(python, args)).stdout;

  test("GenericEnvClient plays an episode", async () => {
    server ??= await serve();
    const { questions } = await smallDataSet();
    const { question_id, question_text, gold_answer } = questions[0]!;
    const seen = JSON.parse(await run("-c", EPISODE, server.url, question_id, gold_answer));
    expect(seen).toMatchObject({ question: question_text, result: "1\n1", done: true });
    expect(seen.said).toContain("(code: VALIDATION_ERROR)");
    expect(seen.reward).toBeGreaterThan(1);
    expect(seen.state).toMatchObject({ episode_id: "stock", step_count: 2, correctness: 1 });
  }, 120_000);

  test("openenv validate --url passes", async () => {
    server ??= await serve();
    const report = JSON.parse(await run("-m", "openenv.cli", "validate", "--url", server.url));
    expect(report.summary).toMatchObject({ passed_count: 6, total_count: 6 });
  }, 120_000);
});
