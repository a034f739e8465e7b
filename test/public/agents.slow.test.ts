// Agents with more around them: `serve --record` that is killed and continues, and the example with the Vercel AI SDK.
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { loadModelAndTokenizer, RunFolder, resolveConfig, trainAgent } from "sqlenv";
import { readRun } from "sqlenv/apps/reports/node";
import { saveFreshModel } from "sqlenv/rl/node";
import { afterAll, expect, test } from "vitest";
import { sqlenvInside, start } from "../helpers/cli-process.ts";
import { ROOT } from "../helpers/dockerfile.ts";
import { without } from "../helpers/needs.ts";
import { until } from "../helpers/server-place.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlenv-agents-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const texts = Array.from({ length: 12 }, (_, i) => `Say ${i}.`);
const tasks = texts.map((text, i) => ({ id: `t${i}`, text }));

async function talk({ text }: { text: string }, baseURL: string, ask = fetch): Promise<number> {
  const body = JSON.stringify({ model: "policy", messages: [{ role: "user", content: text }] });
  const { choices } = await (await ask(`${baseURL}/chat/completions`, { method: "POST", body })).json();
  return choices[0].message.content.length / 100;
}

/** Starts the command; resolves with its URL and process when it listens. */
async function record(...args: string[]) {
  const child = start(["serve", "--json", "--quiet", "--record", "--threads", "1", "--model-threads", "1", ...args], {
    PORT: "0",
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (bytes) => (stdout += String(bytes)));
  child.stderr.on("data", (bytes) => (stderr += String(bytes)));
  await until(() => stdout.includes("\n") || child.exitCode !== null);
  return { child, url: child.exitCode === null ? (JSON.parse(stdout).url as string) : "", stderr: () => stderr };
}

/** Plays rollouts until the training has ended or the server has gone. */
async function work(url: string): Promise<void> {
  try {
    for (;;) {
      const response = await fetch(`${url}/rollouts/next`, { method: "POST" });
      if (response.status === 410) return;
      if (response.status === 204) continue;
      const { rollout_id, task } = await response.json();
      const body = JSON.stringify({ reward: await talk(task, `${url}/rollouts/${rollout_id}/v1`) });
      await fetch(`${url}/rollouts/${rollout_id}/reward`, { method: "POST", body });
    }
  } catch {
    return; // killed
  }
}

test("serve --record, killed and started again, ends with the bytes of a training in process", async () => {
  const fresh = join(folder, "fresh");
  const messages = texts.map((text) => ["system", "user", "assistant"].map((role) => ({ role, content: text })));
  const shape = { hidden_size: 16, num_hidden_layers: 1, intermediate_size: 32 };
  await saveFreshModel(fresh, messages.map((one) => ({ messages: one, weight: 1 })) as never, shape);
  const settings = {
    ...{ max_new_tokens: 12, max_completion_length: 64, max_context_tokens: 500, step_budget: 3, save_steps: 1 },
    ...{ per_device_train_batch_size: 8, gradient_accumulation_steps: 1, num_generations: 4, max_steps: 5 },
    ...{ logging_steps: 1, eval_steps: 0, eval_episodes: 2, final_eval_episodes: 2, learning_rate: 1e-3 },
  };
  const model = await loadModelAndTokenizer(fresh, { device: "cpu", threads: 1 });
  const config = resolveConfig({ ...settings, model_name: fresh });
  const store = new RunFolder(join(folder, "here"));
  await trainAgent({
    model,
    tasks,
    config,
    store,
    run: (task, { baseURL, fetch }) => talk(task, baseURL, fetch as never),
  });
  await model.engine.close();

  const run = join(folder, "there");
  writeFileSync(join(folder, "tasks.jsonl"), tasks.map((task) => `${JSON.stringify(task)}\n`).join(""));
  writeFileSync(join(folder, "settings.yaml"), JSON.stringify(settings));
  const args = [
    "--model",
    fresh,
    "--tasks",
    join(folder, "tasks.jsonl"),
    "--run",
    run,
    "--config",
    join(folder, "settings.yaml"),
  ];
  const first = await record(...args);
  const workers = Array.from({ length: 4 }, () => work(first.url));
  await until(() => existsSync(join(run, "checkpoints/step-2")));
  first.child.kill("SIGKILL");
  await Promise.all(workers);
  const second = await record(...args);
  expect(second.stderr()).toBe("");
  const ended = once(second.child, "exit");
  await Promise.all(Array.from({ length: 4 }, () => work(second.url)));
  expect((await ended)[0]).toBe(0);
  for (const file of ["metrics.jsonl", "episodes.jsonl"])
    expect(readFileSync(join(run, file), "utf8")).toBe(readFileSync(join(folder, "here", file), "utf8"));
  expect(existsSync(join(run, "report.html"))).toBe(true);
  expect(existsSync(join(run, "model/model.safetensors"))).toBe(true);
}, 120_000);

test("serve --record says what it lacks", async () => {
  for (const [args, message] of [
    [[], "--record needs --model"],
    [["--model", "starter"], "--record needs --tasks"],
    [["--model", "starter", "--tasks", join(folder, "none.jsonl")], "cannot read the tasks"],
  ] as const) {
    const { code, stderr } = await sqlenvInside(["serve", "--record", ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  }
});

/** Installs what the example's README names into a copy of the example; false without a registry. */
function installed(): boolean {
  const example = join(folder, "agent");
  cpSync(join(ROOT, "examples/agent"), example, { recursive: true });
  const [, named] = /^npm install --no-save --ignore-scripts (.*)$/m.exec(
    readFileSync(join(example, "README.md"), "utf8"),
  )!;
  writeFileSync(join(example, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const { version } = JSON.parse(readFileSync(join(ROOT, "node_modules/zod/package.json"), "utf8"));
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund"];
  try {
    const names = [...named!.split(" "), `zod@${version}`, `sqlenv@file:${ROOT}`];
    execFileSync("npm", ["install", ...flags, ...names], { cwd: example, stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const isHere = installed();
const note = without("npm registry", isHere, "the example installs the Vercel AI SDK");

test.skipIf(!isHere)(
  `an agent of the Vercel AI SDK learns to use its tools on held-out databases${note}`,
  async () => {
    const agent = readFileSync(join(folder, "agent/agent.mjs"), "utf8");
    expect(agent.trimEnd().split("\n").length).toBeLessThanOrEqual(40);
    const run = join(folder, "sql-agent");
    const options = { cwd: join(folder, "agent"), maxBuffer: 1e7 };
    const { stdout } = await promisify(execFile)(process.execPath, ["train.mjs", run, "6", "80"], options);
    expect(stdout).toMatch(/success on held-out tasks, greedy: .* before, .* after, p (=|<) 0\.0\d+ in \d+ s\n$/);
    const { result } = await readRun(run);
    expect(result!.after.unseen.greedy.success_rate).toBeGreaterThan(result!.before.unseen.greedy.success_rate! + 0.1);
    expect(result!.paired![0]!.mcnemar_p).toBeLessThan(0.05);
  },
  1_500_000,
);
