import { join } from "node:path";
import { expect, test } from "vitest";
import { asTyped, invocation } from "./invocation.ts";

const npm = { npm_execpath: "/usr/lib/npm-cli.js" };
const main = join(process.cwd(), "dist/apps/cli/main.js");

test.each<[string, Record<string, string>, string, string]>([
  ["npm run train", { ...npm, npm_lifecycle_event: "train", npm_package_name: "sqlenv" }, main, "npm run -s sqlenv --"],
  [
    "npx",
    { ...npm, npm_lifecycle_event: "npx", npm_package_name: "sqlenv" },
    "/p/node_modules/.bin/sqlenv",
    "npx sqlenv",
  ],
  [
    "a script of another package",
    { ...npm, npm_lifecycle_event: "go", npm_package_name: "mine" },
    "/p/x.js",
    "npx sqlenv",
  ],
  ["an installed binary", { PATH: "/usr/bin" }, "/p/node_modules/.bin/sqlenv", "npx sqlenv"],
  ["one on the path", { PATH: "/usr/bin:/p/node_modules/.bin" }, "/p/node_modules/.bin/sqlenv", "sqlenv"],
  ["a global one", {}, "/usr/local/bin/sqlenv", "sqlenv"],
  ["a global one on Windows", {}, "C:\\npm\\node_modules\\sqlenv\\dist\\apps\\cli\\main.js", "sqlenv"],
  ["the file itself", {}, main, "node dist/apps/cli/main.js"],
])("%s", (_, env, script, prefix) => {
  expect(invocation(env, script)).toBe(prefix);
});

test("commands in a text start the way the user started the program", () => {
  const text = "resume with: sqlenv train --resume runs/x; see `sqlenv --help`, and sqlenv 1.0";
  expect(asTyped(text, "npx sqlenv")).toBe(
    "resume with: npx sqlenv train --resume runs/x; see `npx sqlenv --help`, and sqlenv 1.0",
  );
  expect(asTyped("npx sqlenv train", "sqlenv")).toBe("npx sqlenv train");
});
