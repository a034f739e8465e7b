// Runs the Python clients people install against our server: `npm run test:clients`. It makes a virtual environment per
// client, installs the versions that its requirements file pins, runs the client's check and prints a table in Markdown.
//   npm run -s test:clients -- [CLIENT…] [--newest] [--venvs DIR] [--python PATH] [--json]
// Needs Python 3.11 or later and a package index (pip's own settings apply); exits with 1 if a check fails.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const MAIN = join(root, "dist/apps/cli/main.js");
const VITEST = [process.execPath, join(root, "node_modules/vitest/vitest.mjs"), "run"];

/**
 * One row per client. `client` is the name of its Python package; where it is not, `package` is, and the command installs
 * it. The command runs in the project's folder; it must exit with 0 only if everything it checked holds. {python} in it,
 * or in `env`, is the interpreter of the row's virtual environment. {url} is the address of a `sqlenv serve` with the
 * flags in `serve`: it is started for this row only, and must have no session left when the command has ended.
 */
const ROWS = [
  {
    client: "openenv",
    requirements: "test/clients/openenv.txt",
    checks:
      "an episode; `validate` by URL, of the package and at run time; the example loop, and 200 episodes by 16 MCPToolClients, equal to a replay",
    command: [...VITEST, "test/public/openenv-stock.slow.test.ts"],
    env: { SQLENV_PYTHON: "{python}", SQLENV_TEST_NEEDS: "openenv" },
  },
  {
    client: "openenv-server",
    package: "openenv",
    requirements: "test/clients/openenv.txt",
    checks: "`train --env URL` in the echo environment of `openenv init`: the server's rewards, in its one session",
    command: [...VITEST, "test/public/train-openenv-stock.slow.test.ts"],
    env: { SQLENV_PYTHON: "{python}", SQLENV_TEST_NEEDS: "openenv" },
  },
  {
    client: "openenv-core",
    requirements: "test/clients/openenv-core.txt",
    checks: "an episode; `validate` by URL; 200 episodes by 16 MCPToolClients, equal to a replay",
    command: [...VITEST, "test/public/openenv-stock.slow.test.ts"],
    env: { SQLENV_PYTHON: "{python}", SQLENV_TEST_NEEDS: "openenv" },
  },
  {
    client: "mcp",
    requirements: "test/clients/mcp.txt",
    checks: "two clients at once list and call the tools",
    command: [...VITEST, "test/public/openenv-stock.slow.test.ts"],
    env: { SQLENV_MCP_PYTHON: "{python}", SQLENV_TEST_NEEDS: "mcp" },
  },
  {
    client: "trl",
    requirements: "integrations/trl/requirements.txt",
    checks:
      "GRPO steps by environment_factory and rollout_func, AsyncGRPO's rollout loop, equal to a replay; tiny trainings, one in two processes",
    command: [...VITEST, "test/public/trl-bridge.slow.test.ts"],
    env: { SQLENV_PYTHON: "{python}", SQLENV_TEST_NEEDS: "trl" },
  },
  {
    client: "verifiers",
    requirements: "test/clients/verifiers.txt",
    checks: "an evaluation by the OpenEnv taskset with plain text actions, rewards equal to a replay",
    command: [...VITEST, "test/public/verifiers.slow.test.ts"],
    env: { SQLENV_VERIFIERS_PYTHON: "{python}", SQLENV_TEST_NEEDS: "verifiers" },
  },
  {
    client: "openai",
    requirements: "test/clients/openai.txt",
    checks:
      "`examples/clients/play_with_openai.py` by tool calls, equal to a replay, and by text, equal to the model's own player",
    command: [...VITEST, "test/public/llm-tools.slow.test.ts"],
    env: { SQLENV_PYTHON: "{python}", SQLENV_TEST_NEEDS: "openai" },
  },
  {
    client: "agentlightning",
    requirements: "test/clients/agentlightning.txt",
    checks: "`examples/clients/agent_lightning.py`: rollouts on the LLM endpoint, each with its reward in the store",
    serve: ["--model", "starter", "--data", "starter"],
    command: ["{python}", "examples/clients/agent_lightning.py", "--env", "{url}", "--model", "starter"],
    env: { LITELLM_LOCAL_MODEL_COST_MAP: "True" }, // else it is downloaded when the package is imported
  },
  {
    client: "tinker",
    requirements: "test/clients/tinker.txt",
    checks:
      "on `serve --tinker`: cross-entropy and policy losses, 32 samples at once, a state saved and continued, a saved adapter sampled",
    command: [...VITEST, "test/public/tinker-stock.slow.test.ts"],
    env: { SQLENV_TINKER_PYTHON: "{python}", SQLENV_TEST_NEEDS: "tinker" },
  },
  {
    client: "wheel",
    package: "sqlenv", // the command builds and installs it
    requirements: "test/clients/verifiers.txt",
    checks: "built, installed and started without Node on PATH; an evaluation by verifiers, rewards equal to a replay",
    command: [...VITEST, "test/public/wheel.slow.test.ts"],
    env: { SQLENV_WHEEL_PYTHON: "{python}", SQLENV_TEST_NEEDS: "wheel" },
  },
];

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    newest: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    venvs: { type: "string" },
    python: { type: "string", default: process.platform === "win32" ? "python" : "python3" },
  },
});

/** Runs a command to its end with its output kept. */
async function run([program, ...args], env = {}) {
  const child = spawn(program, args, { cwd: root, env: { ...process.env, ...env } });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
  child.on("error", (error) => {
    said += error.message;
  });
  const [code] = await once(child, "close");
  return { code, said };
}

/** As `run`, but a failure throws with the end of the output. */
async function mustRun(command, env) {
  const { code, said } = await run(command, env);
  if (code !== 0)
    throw new Error(`${command.join(" ")} exited with ${code}:\n${said.trim().split("\n").slice(-60).join("\n")}`);
  return said;
}

/** The interpreter of a virtual environment that has these requirements. */
async function install(folder, requirements) {
  const python = join(folder, process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
  if (!existsSync(python)) await mustRun([flags.python, "-m", "venv", folder]);
  const pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  if (flags.newest) await mustRun([...pip, "--upgrade", ...namesIn(requirements)]);
  else await mustRun([...pip, "-r", requirements]);
  return python;
}

/** The packages that a requirements file names, without their versions. */
function namesIn(requirements) {
  const lines = readFileSync(join(root, requirements), "utf8").split("\n");
  return lines.map((line) => line.replace(/[=<>~!#].*/, "").trim()).filter((name) => name !== "");
}

/** Starts `sqlenv serve` on a free port. */
async function serve(args) {
  const child = spawn(process.execPath, [MAIN, "serve", "--port", "0", "--json", "--quiet", ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const [line] = await Promise.race([once(child.stdout.setEncoding("utf8"), "data"), ended]);
  if (typeof line !== "string") throw new Error(`sqlenv serve ${args.join(" ")} exited with ${line}`);
  const { url } = JSON.parse(line);
  return {
    url,
    /** The number of open sessions: 0 as soon as it is, else what is left after five seconds. */
    sessions: async () => {
      for (let tries = 50; ; tries--) {
        const metrics = await (await fetch(`${url}/metrics`)).text();
        const open = Number(/^sqlenv_sessions_active (\d+)$/m.exec(metrics)?.[1]);
        if (open === 0 || tries === 0) return open;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    stop: () => {
      child.kill("SIGTERM");
      return ended;
    },
  };
}

/** Runs a row's command, with a server if it names {url}. */
async function check(row, python) {
  const needsServer = JSON.stringify([row.command, row.env]).includes("{url}");
  const server = needsServer ? await serve(row.serve ?? []) : undefined;
  const fill = (text) => text.replaceAll("{python}", python).replaceAll("{url}", server?.url ?? "");
  const env = Object.fromEntries(Object.entries(row.env ?? {}).map(([name, value]) => [name, fill(value)]));
  try {
    await mustRun(row.command.map(fill), { SQLENV_TEST_ALL: "1", PYTHONDONTWRITEBYTECODE: "1", NO_COLOR: "1", ...env });
    const left = await server?.sessions();
    if (server && left !== 0) throw new Error(`${left} sessions are left on the server`);
  } finally {
    await server?.stop();
  }
}

/** The version of an installed Python package. */
async function versionOf(python, name) {
  const code = `import importlib.metadata as m; print(m.version(${JSON.stringify(name)}))`;
  return (await mustRun([python, "-c", code])).trim();
}

async function play(row, venvs) {
  const begun = performance.now();
  const { client, checks } = row;
  let version = "";
  let problem;
  let installed = begun;
  try {
    const python = await install(join(venvs, client), row.requirements);
    installed = performance.now();
    if (!row.package) version = await versionOf(python, client);
    await check(row, python);
    if (row.package) version = await versionOf(python, row.package);
  } catch (error) {
    problem = error.message;
  }
  const seconds = Math.round((performance.now() - installed) / 1000);
  return { client, version, checks, result: problem ? "FAILED" : "passed", seconds, ...(problem && { problem }) };
}

const unknown = positionals.filter((name) => !ROWS.some(({ client }) => client === name));
if (unknown.length > 0) {
  console.error(`no such client: ${unknown.join(", ")}; use ${ROWS.map(({ client }) => client).join(", ")}`);
  process.exit(2);
}
if (spawnSync(flags.python, ["--version"]).status !== 0) {
  console.error(`no Python at ${flags.python}; install Python 3.11 or later, or name one with --python`);
  process.exit(2);
}
const venvs = flags.venvs ? resolve(flags.venvs) : mkdtempSync(join(tmpdir(), "sqlenv-clients-"));
const results = [];
for (const row of ROWS) {
  if (positionals.length > 0 && !positionals.includes(row.client)) continue;
  process.stderr.write(`${row.client} …\n`);
  const result = await play(row, venvs);
  results.push(result);
  if (result.problem) process.stderr.write(`${row.client} FAILED\n${result.problem}\n`);
  if (!flags.venvs) rmSync(join(venvs, row.client), { recursive: true, force: true }); // TRL's has gigabytes
}
if (!flags.venvs) rmSync(venvs, { recursive: true, force: true });

if (flags.json) console.log(JSON.stringify(results, null, 2));
else {
  const keys = ["client", "version", "checks", "result", "seconds"];
  const line = (cells) => `| ${cells.join(" | ")} |`;
  console.log(
    [line(keys), line(keys.map(() => "---")), ...results.map((row) => line(keys.map((key) => row[key])))].join("\n"),
  );
}
process.exitCode = results.every(({ result }) => result === "passed") ? 0 : 1;
