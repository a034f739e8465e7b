// The package's types compile in a project that has nothing but the package and its dependencies installed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ROOT } from "../helpers/dockerfile.ts";

const project = mkdtempSync(join(tmpdir(), "sqlenv-types-"));
afterAll(() => rmSync(project, { recursive: true }));

function link(path: string, target: string): void {
  mkdirSync(dirname(join(project, path)), { recursive: true });
  symlinkSync(target, join(project, path));
}
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
for (const [path, { dev }] of Object.entries<{ dev?: boolean }>(packages)) {
  if (path !== "" && !dev && existsSync(join(ROOT, path))) link(path, join(ROOT, path));
}
for (const name of ["package.json", "dist"]) link(`node_modules/sqlenv/${name}`, join(ROOT, name));
const entries = Object.keys(manifest.exports).filter((path) => !path.endsWith(".json"));
const lines = entries.map((path, i) => `export * as entry${i} from "${path.replace(".", manifest.name)}";\n`);
writeFileSync(join(project, "index.ts"), lines.join(""));
writeFileSync(join(project, "package.json"), `{ "type": "module" }`);

test.each([
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
])("module %s, resolution %s: every entry point, declarations of libraries checked too", (module, moduleResolution) => {
  const compilerOptions = {
    ...{ module, moduleResolution, target: "es2022", lib: ["es2023", "dom"], strict: true, noEmit: true },
    ...{ skipLibCheck: false, types: [], preserveSymlinks: true }, // or imports are looked up in our own node_modules
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["index.ts"] }));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { stdout, status } = spawnSync(process.execPath, [tsc, "-p", project, "--pretty", "false"], {
    encoding: "utf8",
  });
  expect(stdout).toBe("");
  expect(status).toBe(0);
});
