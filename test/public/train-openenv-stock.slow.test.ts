// `sqlenv train --env URL` with OpenEnv's own server library: the echo environment that `openenv init` writes, and the
// example with Reasoning Gym's environment. Python with openenv is in SQLENV_PYTHON, a checkout of OpenEnv's folder envs
// in SQLENV_OPENENV_ENVS (the same Python then needs reasoning-gym); without them the tests are skipped with a message.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { sqlenv, sqlenvInside } from "../helpers/cli-process.ts";
import { ROOT } from "../helpers/dockerfile.ts";
import { without } from "../helpers/needs.ts";
import { versionOf } from "../helpers/python.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const python = process.env.SQLENV_PYTHON ?? "";
const envs = process.env.SQLENV_OPENENV_ENVS ?? "";
const hasOpenEnv = versionOf(python, "openenv") !== "";
const hasEnvs = envs !== "" && versionOf(python, "reasoning-gym") !== "";
const note = without("openenv", hasOpenEnv, "set SQLENV_PYTHON to a Python that has it");
const envsNote = without("openenv-envs", hasEnvs, "set SQLENV_OPENENV_ENVS to OpenEnv's folder envs");

const folder = mkdtempSync(join(tmpdir(), "sqlenv-openenv-"));
const place = await TrainingPlace.make();
const servers: ChildProcess[] = [];
afterAll(async () => {
  for (const server of servers) {
    server.kill();
    if (server.exitCode === null && server.signalCode === null) await once(server, "close");
  }
  rmSync(folder, { recursive: true, force: true });
  place.remove();
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

/** Serves an application by uvicorn; resolves when it answers. */
async function serveApp(app: string, cwd: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const port = await freePort();
  const args = ["-m", "uvicorn", app, "--port", `${port}`, "--log-level", "info"];
  const server = spawn(python, args, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  servers.push(server);
  let said = "";
  await new Promise<void>((resolve, reject) => {
    server.stderr!.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("Application startup complete")) resolve();
    });
    server.on("close", () => reject(new Error(said)));
  });
  return `http://127.0.0.1:${port}`;
}

test.skipIf(!hasOpenEnv)(
  `the echo server of \`openenv init\`: a training gets its rewards, in its one session${note}`,
  async () => {
    await promisify(execFile)(python, ["-m", "openenv.cli", "init", "words_env", "--output-dir", folder], {
      cwd: folder,
    });
    const url = await serveApp("words_env.server.app:app", folder);
    const tasks = join(folder, "tasks.jsonl");
    writeFileSync(
      tasks,
      Array.from({ length: 12 }, (_, i) => JSON.stringify({ id: `${i}`, text: `Word ${i}?` })).join("\n"),
    );
    const settings = { "--env": url, "--tasks": tasks, "--step-budget": 2, "--max-steps": 2 };
    const { code, stdout, stderr } = await place.trainInside("echo", settings);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain(
      'a reply is sent as {"message":"{text}"}; the model reads the observation\'s field echoed_message',
    );
    const episodes = place.lines("echo", "episodes.jsonl");
    expect(episodes).toHaveLength(12);
    for (const { steps, reward, error } of episodes) {
      expect([error, steps.length]).toEqual([null, 2]);
      // The server pays 0.1 per letter, 1 at most.
      const paid = steps.map(({ text }: { text: string }) => Math.min(1, 0.1 * [...text].length));
      expect(reward).toBeCloseTo(paid[0] + paid[1], 9);
      expect(steps[0].observation.result).toBe(steps[0].text);
    }
  },
  300_000,
);

test.skipIf(!hasEnvs)(
  `the example learns to spell backward${envsNote}`,
  async () => {
    const url = await serveApp("reasoning_gym_env.server.app:app", envs, { MAX_CONCURRENT_ENVS: "32" });
    const [start, run] = [join(folder, "spell"), join(folder, "spell/run")];
    await promisify(execFile)(process.execPath, [join(ROOT, "examples/openenv/prepare.mjs"), url, start], {
      cwd: ROOT,
    });
    const config = join(ROOT, "examples/openenv/spell.yaml");
    const from = ["--env", url, "--tasks", join(start, "tasks.jsonl"), "--model-name", join(start, "model")];
    const args = ["train", "--config", config, ...from, "--output-dir", run, "--eval-steps", "0", "--json"];
    const { code, stdout, stderr } = await sqlenv(args);
    expect(code, stderr).toBe(0);
    const { before, after, paired } = JSON.parse(stdout);
    expect(after.unseen.greedy.episodes).toBe(100);
    expect(after.unseen.greedy.success_rate).toBeGreaterThan(before.unseen.greedy.success_rate + 0.2);
    expect(paired[0].mcnemar_p).toBeLessThan(0.001);
    const again = await sqlenvInside(["eval", "--run", run]);
    expect(again.stdout).toContain("the numbers agree with the training's report");
  },
  1_200_000,
);
