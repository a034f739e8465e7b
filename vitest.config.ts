// Which tests run: `vitest run` runs the quick ones, `--mode all` (or SQLENV_TEST_ALL=1) also the slow ones,
// `--mode slow` only the files that have slow ones. A slow test is in a file `*.slow.test.ts`, or in a block
// guarded by `describe.skipIf(!process.env.SQLENV_TEST_ALL)`.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const root = fileURLToPath(new URL(".", import.meta.url));
const src = `${root}src`;

export default defineConfig(({ mode }) => {
  const all = mode === "all" || mode === "slow" || Boolean(process.env.SQLENV_TEST_ALL);
  return {
    resolve: {
      alias: [
        { find: /^sqlenv$/, replacement: `${src}/index.ts` },
        { find: /^sqlenv\/(.+)$/, replacement: `${src}/$1/index.ts` },
      ],
    },
    test: {
      include: mode === "slow" ? filesWithSlowTests() : ["src/**/*.test.ts", "test/**/*.test.ts"],
      exclude: all ? [] : ["**/*.slow.test.ts"],
      env: all ? { SQLENV_TEST_ALL: "1" } : {},
      globalSetup: ["test/shared-folder.ts"],
      testTimeout: 60_000,
      server: { deps: { external: [/\/dist\//] } }, // built code needs no transforming
      maxWorkers: "100%", // vitest's own choice leaves one core idle, which is half of a machine with two
    },
  };
});

function filesWithSlowTests(): string[] {
  return ["src", "test"]
    .flatMap((folder) => readdirSync(root + folder, { recursive: true, encoding: "utf8" }).map((f) => `${folder}/${f}`))
    .filter((file) => file.endsWith(".slow.test.ts") || (file.endsWith(".test.ts") && isGuarded(file)));
}

function isGuarded(file: string): boolean {
  return readFileSync(root + file, "utf8").includes("process.env.SQLENV_TEST_ALL");
}
