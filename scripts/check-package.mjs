// Checks the packed package with publint and Are The Types Wrong: `npm run check:package`, after a build. npm brings both;
// they go into node_modules/.cache and touch no lockfile. The package is ESM only, so resolution by CommonJS is not tried.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(root, "node_modules/.cache/package-checks");
const CHECKS = [
  { name: "publint", version: "0.3.25", bin: "publint", flags: ["--strict"] },
  { name: "@arethetypeswrong/cli", version: "0.18.5", bin: "attw", flags: ["--profile", "esm-only", "--quiet"] },
];
const shell = process.platform === "win32";

/** Installs both where that was not done yet; false where they cannot be fetched. */
function fetchChecks() {
  const isHere = () => CHECKS.every(({ bin }) => existsSync(join(cache, "node_modules/.bin", bin)));
  if (isHere()) return true;
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, "package.json"), `{"private": true}\n`); // or npm takes the project's for its own
  const flags = ["--ignore-scripts", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
  const packages = CHECKS.map(({ name, version }) => `${name}@${version}`);
  spawnSync("npm", ["install", ...flags, ...packages], { cwd: cache, stdio: ["ignore", "ignore", "inherit"], shell });
  return isHere();
}

if (fetchChecks()) {
  const place = mkdtempSync(join(tmpdir(), "sqlenv-pack-"));
  try {
    const pack = ["pack", "--ignore-scripts", "--silent", "--pack-destination", place];
    execFileSync("npm", pack, { cwd: root, stdio: ["ignore", "ignore", "inherit"], shell });
    const tarball = join(place, readdirSync(place)[0]);
    for (const { name, bin, flags } of CHECKS) {
      const { status } = spawnSync(join(cache, "node_modules/.bin", bin), [tarball, ...flags], {
        stdio: "inherit",
        shell,
      });
      console.log(`${name}: ${status === 0 ? "nothing to report" : "see above"}`);
      if (status !== 0) process.exitCode = 1;
    }
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
} else console.log("publint and Are The Types Wrong could not be fetched; the package was not checked");
