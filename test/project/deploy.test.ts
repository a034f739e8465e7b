// The files that deploy the server agree with each other and with the package: paths, command, port.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { MAX_MESSAGE_BYTES } from "../../src/apps/openenv/limits.ts";
import { SERVER_STEP_BUDGET } from "../../src/apps/openenv/server.ts";
import { rewardSchema } from "../../src/gym/env/reward.ts";
import { commandOf, isIgnored, ROOT, readCopy, readStages } from "../helpers/dockerfile.ts";

const read = (file: string) => readFileSync(resolve(ROOT, file), "utf8");
const stages = readStages();
const [build, final] = [stages[0]!, stages.at(-1)!];

test("the image starts a command that exists", () => {
  const [node, main, ...flags] = commandOf(final, "CMD");
  expect([node, main]).toEqual(["node", "dist/apps/cli/main.js"]);
  const help = execFileSync(process.execPath, [resolve(ROOT, main!), flags[0]!, "--help"], { encoding: "utf8" });
  for (const flag of flags.filter((text) => text.startsWith("--"))) expect(help).toContain(flag);
});

// image.slow.test.ts builds from them and tests whether they suffice.
test("the image is built from paths that exist and that .dockerignore lets through", () => {
  const copies = stages.flatMap(({ instructions }) =>
    instructions.filter(({ name }) => name === "COPY").map(({ text }) => readCopy(text)),
  );
  const sources = copies.filter(({ from }) => from === undefined).flatMap(({ sources }) => sources);
  expect(sources.filter((path) => !existsSync(resolve(ROOT, path)) || isIgnored(path))).toEqual([]);
  const named = JSON.parse(read("package.json")).scripts.build.match(/\S+\.(?:mjs|ts|json)\b/g) as string[];
  expect(named).toContain("tsconfig.build.json");
  expect(named.filter((path) => !sources.some((source) => path === source || path.startsWith(`${source}/`)))).toEqual(
    [],
  );
});

test(".dockerignore keeps run folders, secrets and built files out of the build context", () => {
  const out = [".git/config", ".env", "runs/starter/config.yaml", "node_modules/ws/index.js", "dist/index.js"];
  expect(out.filter((path) => !isIgnored(path))).toEqual([]);
  expect(isIgnored("src/gym/sql/sandbox.test.ts")).toBe(true);
  expect(isIgnored("src/gym/sql/sandbox.ts")).toBe(false);
});

test("the image runs a supported Node as an unprivileged user, in production mode, with a health check", () => {
  for (const { image } of stages) expect(image).toBe("node:24-slim");
  const of = (name: string) => final.instructions.filter((instruction) => instruction.name === name);
  expect(of("USER").map(({ text }) => text)).toEqual(["node"]);
  expect(of("ENV")[0]!.text).toContain("NODE_ENV=production");
  expect(of("HEALTHCHECK")[0]!.text).toContain("--timeout=");
  expect(of("RUN")).toEqual([]); // it only copies from the build stage
  expect(build.instructions.map(({ text }) => text)).toContain("npm prune --omit=dev --ignore-scripts");
});

interface Service {
  readonly [key: string]: unknown;
  readonly command: readonly string[];
  readonly volumes: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly deploy: { readonly resources: { readonly limits: Readonly<Record<string, string | number>> } };
}
const compose = parse(read("compose.yaml"), { merge: true });
const { env, proxy } = compose.services as { env: Service; proxy: Service };

test("compose, OpenEnv and Space files agree on the port", () => {
  expect(proxy.ports).toEqual(["8000:8000"]);
  expect(existsSync(resolve(ROOT, proxy.volumes[0]!.split(":")[0]!))).toBe(true);
  expect(read("deploy/nginx.conf")).toMatch(/server env:8000;[\s\S]*listen 8000;/);
  expect(parse(read("openenv.yaml"))).toMatchObject({ spec_version: 1, name: "sqlenv", type: "space", port: 8000 });
  const { version, validation } = parse(read("openenv.yaml"));
  expect(version).toBe(JSON.parse(read("package.json")).version);
  const { repeat, step_cost, looking_cap, progress, correctness } = rewardSchema.parse({});
  const [least, most] = [SERVER_STEP_BUDGET * (repeat + step_cost), looking_cap + progress + correctness + step_cost];
  expect(validation.reward.range).toEqual([least, most].map((value) => Number(value.toFixed(6))));
  const front = parse(read("deploy/space/README.md").split("---")[1]!);
  expect(front).toMatchObject({ sdk: "docker", app_port: 8000, base_path: "/web", tags: ["openenv"] });
  expect(read("Dockerfile")).toContain("PORT=8000");
});

test("compose services have no privileges, a read-only disk and limits", () => {
  for (const service of [env, proxy]) {
    expect(service).toMatchObject({ read_only: true, tmpfs: ["/tmp"], cap_drop: ["ALL"] });
    expect(service.security_opt).toEqual(["no-new-privileges:true"]);
    expect(Object.keys(service.deploy.resources.limits).sort()).toEqual(["cpus", "memory", "pids"]);
  }
  expect(proxy.image).toMatch(/^nginx:\d+\.\d+$/);
  expect(proxy.user).toBe("101:101");
});

test("compose requires a key, and agrees with the server's limits", () => {
  expect(env.environment.SQLENV_API_KEY).toMatch(/^\$\{SQLENV_API_KEY:\?/); // an error if it is not set
  const [node, main, command, ...flags] = env.command;
  expect([node, main, command]).toEqual(["node", "dist/apps/cli/main.js", "serve"]);
  expect(flags).not.toContain("--rate-per-client");
  const help = execFileSync(process.execPath, [resolve(ROOT, main!), "serve", "--help"], { encoding: "utf8" });
  for (const flag of flags.filter((text) => text.startsWith("--"))) expect(help).toContain(`${flag} `);
  // Only the proxy is in that network besides the servers.
  expect(flags[flags.indexOf("--trust-proxy") + 1]).toBe(compose.networks.inside.ipam.config[0].subnet);
  expect(compose.networks.inside.internal).toBe(true);
  expect(env.networks).toEqual(["inside"]);
});

test("nginx limits requests per address, and passes the address on", () => {
  const nginx = read("deploy/nginx.conf");
  for (const [, location] of nginx.matchAll(/location [^{]*\{([^}]*)\}/g))
    expect(location).toMatch(/limit_req zone=\w+ burst=/);
  expect(nginx).toMatch(/^ {4}limit_conn \w+ \d+;/m);
  expect(nginx).toContain("proxy_set_header X-Forwarded-For $remote_addr;");
  const size = Number(/client_max_body_size (\d+)k;/.exec(nginx)![1]) * 1024;
  expect(size).toBe(MAX_MESSAGE_BYTES);
});

interface Matrix {
  readonly os: readonly string[];
  readonly node: readonly number[];
  readonly include: readonly { readonly os: string }[];
}

test("CI runs existing scripts on each supported Node version, and on each system", () => {
  const { scripts, engines } = JSON.parse(read("package.json"));
  const { jobs } = parse(read(".github/workflows/ci.yml"));
  const steps = Object.values<{ steps: { run?: string }[] }>(jobs).flatMap((job) =>
    job.steps.map(({ run = "" }) => run),
  );
  const commands = [...steps, read(".ci/run")].join("\n");
  const named = [...commands.matchAll(/^npm (?:run (?:-s )?)?([\w:]+)/gm)].map(([, name]) => name!);
  expect(named.filter((name) => name !== "ci" && !scripts[name])).toEqual([]);
  expect(named).toEqual(expect.arrayContaining(["test", "check", "test:slow", "test:nodes", "audit"]));
  expect(steps).toContain(".ci/run");
  const { os, node, include } = jobs.quick.strategy.matrix as Matrix;
  expect([...os, ...include.map((one) => one.os)]).toEqual(["ubuntu-latest", "macos-latest", "windows-latest"]);
  const [oldest, ...others] = node;
  expect(engines.node).toMatch(new RegExp(`^>=${oldest}\\.`));
  expect(read("scripts/node-versions.mjs")).toContain(
    `const MAJORS = ${JSON.stringify(others.map(String)).replace(",", ", ")}`,
  );
});

test("every package that a Python file imports is pinned in the requirements beside it", () => {
  for (const folder of ["integrations/trl", "bench", "test/reference"]) {
    const lines = read(`${folder}/requirements.txt`).split("\n");
    const pinned = lines.filter((line) => line && !line.startsWith("#"));
    for (const line of pinned) expect(line).toMatch(/^[a-z]+==\d+(\.\d+)+$/);
    const files = readdirSync(resolve(ROOT, folder)).filter((name) => name.endsWith(".py"));
    const imported = files.flatMap((file) =>
      [...read(`${folder}/${file}`).matchAll(/^(?:import (\w+)|from (\w+)[\w.]* import )/gm)].map(
        ([, a, b]) => a ?? b!,
      ),
    );
    const own = files.map((file) => file.replace(".py", ""));
    const names = pinned.map((line) => line.split("==")[0]);
    const foreign = [...new Set(imported)].filter((name) => !own.includes(name) && !STANDARD.has(name));
    expect(foreign.filter((name) => !names.includes(name))).toEqual([]);
  }
});

/** Modules of Python's own that these files use. */
const STANDARD = new Set(
  "argparse asyncio base64 concurrent copy dataclasses enum functools hashlib http json logging math os pathlib pickle platform queue random re resource shutil signal statistics sys tempfile threading time types urllib warnings weakref".split(
    " ",
  ),
);

test("the changelog is in the usual form, and its newest release is the package's version and the citation's", () => {
  const { version } = JSON.parse(read("package.json"));
  const headings = [...read("CHANGELOG.md").matchAll(/^## (.+)$/gm)].map(([, text]) => text!);
  expect(headings[0]).toBe("[Unreleased]");
  const released = headings.slice(1).map((text) => /^\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$/.exec(text)?.slice(1));
  expect(released[0]?.[0]).toBe(version);
  expect(new Set(released.map((release) => release?.[0])).size).toBe(released.length);
  const dates = released.map((release) => release?.[1]);
  expect([...dates].sort().reverse()).toEqual(dates); // newest first
  const kinds = [...read("CHANGELOG.md").matchAll(/^### (.+)$/gm)].map(([, kind]) => kind);
  expect(["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]).toEqual(expect.arrayContaining(kinds));
  const citation = parse(read("CITATION.cff"));
  expect([citation.version, citation["date-released"]]).toEqual(released[0]);
});

test("the Python package has the version of the npm package", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  expect(read("integrations/python/pyproject.toml")).toContain(`\nversion = "${version}"\n`);
  expect(read("integrations/python/sqlenv/__init__.py")).toContain(`\n__version__ = "${version}"\n`);
});
