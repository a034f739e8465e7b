// Builds the Python wheel of integrations/python, after a build: `node scripts/build-wheel.mjs [--out DIR] [--python PATH]`.
// It contains the packed npm package with its runtime dependencies, which are JavaScript and WebAssembly, so one wheel
// serves every platform. Needs Python 3.11 or later, and the package indexes of npm and pip.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const isWindows = process.platform === "win32";
const { values: flags } = parseArgs({
  options: {
    out: { type: "string", default: join(root, "integrations/python/dist") },
    python: { type: "string", default: isWindows ? "python" : "python3" },
  },
});

/** What no program reads: declarations, source maps, and zod's sources. */
const UNUSED = /\.(d\.[cm]?ts|map)$|\/node_modules\/zod\/src\//;

function run(program, args, cwd = root) {
  const { status } = spawnSync(program, args, { cwd, stdio: ["ignore", "ignore", "inherit"], shell: isWindows });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} exited with ${status}`);
}

const place = mkdtempSync(join(tmpdir(), "sqlenv-wheel-"));
try {
  const project = join(place, "python");
  const npm = join(project, "sqlenv/npm");
  const isSource = (path) => !/\/(__pycache__|dist)$/.test(path.replaceAll("\\", "/"));
  cpSync(join(root, "integrations/python"), project, { recursive: true, filter: isSource });
  cpSync(join(root, "LICENSE"), join(project, "LICENSE"));
  mkdirSync(npm);
  writeFileSync(join(npm, "package.json"), `{"private": true}\n`);
  run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", place]);
  const tarball = join(
    place,
    readdirSync(place).find((name) => name.endsWith(".tgz")),
  );
  const quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
  run("npm", ["install", "--omit=dev", "--omit=optional", "--ignore-scripts", "--no-save", ...quiet, tarball], npm);
  for (const file of readdirSync(npm, { recursive: true, encoding: "utf8" })) {
    const path = join(npm, file);
    if (UNUSED.test(path.replaceAll("\\", "/"))) rmSync(path, { recursive: true, force: true });
  }
  const out = resolve(flags.out);
  const pip = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", out];
  run(flags.python, [...pip, project]);
  const wheel = readdirSync(out).find((name) => name.endsWith(".whl"));
  console.log(`${join(out, wheel)}: ${(statSync(join(out, wheel)).size / 1e6).toFixed(1)} MB`);
} finally {
  rmSync(place, { recursive: true, force: true });
}
