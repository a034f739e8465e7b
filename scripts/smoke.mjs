// Installs the packed package into an empty project, as a user would, and tries it: `node scripts/smoke.mjs TARBALL`.
// Imports from JavaScript and TypeScript, an episode on its server, a training by npx. Prints one JSON object: the Node it
// ran on, and the hashes of what the training wrote.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { hashesOf, TRAINING } from "./smoke-training.mjs";

/** Messages of Node and V8 themselves: warnings, unknown flags. */
const NOISE = /^.*(?:\(node:\d+\)|Warning:|unrecognized flag).*$/m;

const root = fileURLToPath(new URL("..", import.meta.url));
const tarball = resolve(process.argv[2] ?? "");
const project = mkdtempSync(join(tmpdir(), "sqlenv-smoke-"));
// Tools that start with `#!/usr/bin/env node` run on the same Node as this script.
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`, NO_COLOR: "1" };
const shell = process.platform === "win32"; // npm and npx are scripts there
const run = (command, args) =>
  execFileSync(command, args, { cwd: project, env, shell, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

function equal(found, wanted, what) {
  if (found !== wanted) throw new Error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}

/** Runs the installed command and checks what it prints besides its result. */
async function sqlenv(args) {
  const child = spawn("npx", ["--no-install", "sqlenv", ...args], { cwd: project, env, shell });
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (texts[name] += text));
  const [code] = await once(child, "close");
  equal(code, 0, `sqlenv ${args[0]} ended (${texts.stderr})`);
  equal(NOISE.exec(texts.stderr)?.[0], undefined, `sqlenv ${args[0]} printed`);
  return texts.stdout;
}

/** One episode against the installed server, by the installed client. */
async function serve() {
  const main = join(project, "node_modules/sqlenv/dist/apps/cli/main.js");
  const server = spawn(process.execPath, [main, "serve", "--port", "0", "--json", "--quiet"], { cwd: project, env });
  server.stderr.pipe(process.stderr);
  const exit = once(server, "exit");
  const [line] = await Promise.race([once(server.stdout, "data"), exit.then(() => ["{}"])]);
  const { url } = JSON.parse(String(line));
  const program = `
    import { SQLEnvClient } from "sqlenv/gym/client";
    const env = new SQLEnvClient(${JSON.stringify(url)});
    const { schema_info } = await env.reset({ split: "eval", index: 0 });
    const described = await env.step({ action_type: "DESCRIBE", argument: schema_info.split(", ")[0] });
    const answered = await env.step({ action_type: "ANSWER", argument: "no idea" });
    console.log(JSON.stringify([described.error, answered.done]));
    await env.close();`;
  equal(
    run(process.execPath, ["--input-type=module", "-e", program]).trim(),
    "[null,true]",
    "an episode on the server",
  );
  server.kill("SIGTERM");
  equal((await exit)[0], 0, "the server ended");
}

/** A program in TypeScript: its types are checked against the installed package, and it runs. */
function typescript() {
  const program = `
import { bundledDataSet, loadSqlite, type QuestionRecord, SQLEnvironment } from "sqlenv";
import type { GRPOConfig } from "sqlenv/rl";
await loadSqlite();
const env = new SQLEnvironment(bundledDataSet());
export type Asked = QuestionRecord;
const budget: GRPOConfig["step_budget"] = 3;
console.log(JSON.stringify([typeof env.reset({ seed: 7 }).question, budget]));
`;
  writeFileSync(join(project, "program.ts"), program);
  const options = ["--strict", "--target", "es2023", "--module", "nodenext", "--types", "", "--outDir", "compiled"];
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...options, "program.ts"]);
  equal(run(process.execPath, ["compiled/program.js"]).trim(), '["string",3]', "a program in TypeScript");
}

try {
  writeFileSync(join(project, "package.json"), `{"private": true, "type": "module"}\n`);
  const quiet = ["--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  run("npm", ["install", "--ignore-scripts", ...quiet, tarball]);
  const manifest = JSON.parse(readFileSync(join(project, "node_modules/sqlenv/package.json"), "utf8"));
  equal((await sqlenv(["--version"])).trim(), manifest.version, "sqlenv --version");
  const entries = Object.keys(manifest.exports)
    .filter((path) => !path.endsWith(".json"))
    .map((path) => path.replace(".", "sqlenv"));
  const imports = entries.map((entry) => `await import(${JSON.stringify(entry)});`).join("\n");
  run(process.execPath, ["--input-type=module", "-e", imports]);
  typescript();
  await serve();
  await sqlenv(["train", ...TRAINING, "--output-dir", "run"]);
  const result = {
    node: process.versions.node,
    version: manifest.version,
    entry_points: entries.length,
    ...hashesOf(join(project, "run")),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  rmSync(project, { recursive: true, force: true });
}
