// Which tests run: `vitest run` runs the quick ones, `--mode all` (or SQLENV_TEST_ALL=1) also the slow ones,
// `--mode slow` only the files that have slow ones, and what they left out before. A slow test is in a file `*.slow.test.ts`, or in a block
// guarded by `describe.skipIf(!process.env.SQLENV_TEST_ALL)`, or takes its number of cases from test/helpers/cases.ts.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type UserProjectConfigExport } from "vitest/config";

type ProjectConfig = NonNullable<Extract<UserProjectConfigExport, { test?: unknown }>["test"]>;

const root = fileURLToPath(new URL(".", import.meta.url));

export default defineConfig(({ mode }) => {
  const all = mode === "all" || mode === "slow" || Boolean(process.env.SQLENV_TEST_ALL);
  const resolve = { alias: packageEntries() };
  const shared: ProjectConfig = {
    exclude: all ? [] : ["**/*.slow.test.ts"],
    env: { ...(all && { SQLENV_TEST_ALL: "1" }), ...(mode === "slow" && { SQLENV_TEST_REST: "1" }) },
    testTimeout: 60_000,
    hookTimeout: 60_000, // a machine with other load is slow
    server: { deps: { external: [/\/dist\//] } }, // built code needs no transforming
  };
  const units: ProjectConfig = {
    ...{ ...shared, name: "units", include: filesOf("src", mode) },
    isolate: false, // loading the sources anew for each file would take a third of the time
  };
  const behaviour: ProjectConfig = {
    ...{ ...shared, name: "behaviour", include: filesOf("test", mode) },
    globalSetup: ["test/helpers/shared-folder.ts"],
  };
  return {
    test: {
      reporters: ["default", [`${root}test/helpers/skipped-reporter.ts`, { quick: mode !== "slow" }]],
      maxWorkers: "100%", // vitest's own choice leaves one core idle, which is half of a machine with two
      projects: [units, behaviour].map((test) => ({ resolve, test })),
    },
  };
});

/** The package by its name: what is built, as package.json's exports have it under Node. */
function packageEntries() {
  const { name, exports } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  return Object.entries<{ default?: string }>(exports).flatMap(([path, { default: file }]) =>
    file ? [{ find: new RegExp(`^${path.replace(".", name)}$`), replacement: root + file.slice(2) }] : [],
  );
}

/** The test files of a folder; with the mode "slow" only those that have slow tests. */
function filesOf(folder: string, mode: string): string[] {
  if (mode !== "slow") return [`${folder}/**/*.test.ts`];
  return readdirSync(root + folder, { recursive: true, encoding: "utf8" })
    .map((file) => `${folder}/${file}`)
    .filter((file) => file.endsWith(".slow.test.ts") || (file.endsWith(".test.ts") && isGuarded(file)));
}

function isGuarded(file: string): boolean {
  return /process\.env\.SQLENV_TEST_ALL|\/cases\.ts"/.test(readFileSync(root + file, "utf8"));
}
