// The packed package contains exactly what the sources produce, whatever was in dist before, and works when installed.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../helpers/dockerfile.ts";

/** Files of the pages: names in assets/ end with a hash of what is in them. */
const PAGE =
  /^dist\/web\/(?:dashboard|playground)\/(?:index\.html|THIRD_PARTY_LICENSES\.txt|assets\/[\w.-]+-[\w-]{8}\.(?:js|css|wasm))$/;
const place = mkdtempSync(join(tmpdir(), "sqlenv-package-"));
const sources = sourceFiles();
let packed: string[] = [];
let tarball = "";

/** The files of the checkout, new ones included, without ignored ones; null outside a checkout. */
function sourceFiles(): string[] | null {
  try {
    const list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    return execFileSync("git", list, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
      .split("\n")
      .filter(Boolean);
  } catch {
    return null;
  }
}

beforeAll(() => {
  for (const file of sources ?? []) cpSync(join(ROOT, file), join(place, file));
  symlinkSync(join(ROOT, "node_modules"), join(place, "node_modules"));
  mkdirSync(join(place, "dist/old"), { recursive: true });
  for (const stray of ["stray.js", "old/removed.js"]) writeFileSync(join(place, "dist", stray), "");
  const out = join(place, "runs");
  mkdirSync(out);
  const manifest = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  manifest.scripts.build += " && echo built >> runs/builds.txt";
  writeFileSync(join(place, "package.json"), JSON.stringify(manifest));
  const flags = ["pack", "--json", "--pack-destination", out];
  const list = execFileSync("npm", flags, { cwd: place, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const [{ files, filename }] = JSON.parse(list) as [{ files: { path: string }[]; filename: string }];
  packed = files.map(({ path }) => path);
  tarball = join(out, filename);
}, 300_000);
afterAll(() => rmSync(place, { recursive: true }), 60_000);

test.skipIf(!sources)("npm pack builds once", () => {
  expect(readFileSync(join(place, "runs/builds.txt"), "utf8")).toBe("built\n");
});

test.skipIf(!sources)("the package contains what the sources produce", () => {
  const bundled = /^src\/(lm\/devices\/cpu\/wasm|apps\/(\w+\/web|web-shared))\//; // part of the kernels and the pages
  const modules = [...sources!, "src/lm/devices/cpu/kernels.generated.ts"].filter(
    (file) => /^src\/.*\.ts$/.test(file) && !file.endsWith(".test.ts") && !bundled.test(file),
  );
  const expected = [
    ...["package.json", "README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"],
    ...sources!.filter((file) => file.startsWith("models/") || /^docs\/.+\.(md|svg)$/.test(file)),
    ...modules.flatMap((file) => [".js", ".d.ts"].map((ending) => file.replace(/^src(.*)\.ts$/, `dist$1${ending}`))),
  ];
  expect(packed.filter((path) => !PAGE.test(path)).sort()).toEqual(expected.sort());
  for (const page of ["dashboard", "playground"]) expect(packed).toContain(`dist/web/${page}/index.html`);
});

test.skipIf(!sources)("the package has the pictures and pages that its README links to", () => {
  const links = [...readFileSync(join(place, "README.md"), "utf8").matchAll(/\]\((docs\/[^)#]+\.\w+)/g)];
  expect(links.length).toBeGreaterThan(8);
  expect(links.map(([, link]) => link).filter((link) => !packed.includes(link!))).toEqual([]);
});

// node-versions.mjs runs the same on other versions of Node.
test.skipIf(!sources)(
  "installed into an empty project it is imported, served and trains",
  () => {
    const smoke = [join(ROOT, "scripts/smoke.mjs"), tarball];
    const found = JSON.parse(execFileSync(process.execPath, smoke, { encoding: "utf8" })) as { entry_points: number };
    expect(found.entry_points).toBeGreaterThan(20);
  },
  240_000,
);
