// Paths into dist/, for tests of built code. They throw when the sources are newer, instead of testing stale code.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const LAST_WRITTEN = "dist/web/dashboard/index.html"; // by every build
let checked = false;

/** The absolute path of a file in dist/. */
export function built(path: string): string {
  const newer = checked ? undefined : newerThanBuild();
  if (newer) throw new Error(`dist/ is older than ${newer}; run \`npm run build\` before the tests`);
  checked = true;
  return join(root, "dist", path);
}

function newerThanBuild(): string | undefined {
  const time = (file: string) => statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const builtAt = time(LAST_WRITTEN);
  for (const folder of ["src"])
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }))
      if (/\.(ts|css|html)$/.test(file) && !file.endsWith(".test.ts") && time(join(folder, file)) > builtAt)
        return join(folder, file);
  return undefined;
}
