// The reference is made from the code, and the documents name only commands and files that exist.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (file: string) => readFileSync(resolve(root, file), "utf8");
const documents = [
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md"],
  ...readdirSync(resolve(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];

/** Every command there is. */
const known = new Set(
  ["", "data", "bench"].flatMap((group) => {
    const help = execFileSync("node", [resolve(root, "dist/cli/main.js"), ...(group ? [group] : []), "--help"], {
      encoding: "utf8",
    });
    const commands = [...help.slice(help.indexOf("Commands:")).matchAll(/^ {2}([a-z]+)/gm)].map((match) => match[1]!);
    return commands.map((command) => (group ? `${group} ${command}` : command));
  }),
);

test("docs/reference.md is what `npm run docs` writes", async () => {
  const { reference } = (await import(resolve(root, "scripts/reference.mjs"))) as { reference: string };
  expect(read("docs/reference.md")).toBe(reference);
});

test.each(documents)("%s links only to what exists", (document) => {
  const links = [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((match) => match[1]!);
  const missing = links.filter((link) => !existsSync(resolve(root, dirname(document), link)));
  expect(missing).toEqual([]);
});

test.each(documents)("%s names only commands that exist", (document) => {
  const named = [...read(document).matchAll(/\bsqlenv(?: --)? ((?:data |bench )?[a-z]+)(?=[ `\n])/g)].map(
    (match) => match[1]!,
  );
  expect(named.filter((command) => !known.has(command))).toEqual([]);
});

test("every script the documents name is in package.json", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = documents.flatMap((document) =>
    [...read(document).matchAll(/npm run (?:-s )?([a-z:]+)/g)].map((match) => match[1]!),
  );
  expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([]);
});
