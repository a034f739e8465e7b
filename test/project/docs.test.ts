// The reference is generated from the code, and documents name only existing commands, files and headings.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { programFor } from "../helpers/cli-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (file: string) => readFileSync(resolve(root, file), "utf8");
const documents = [
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"],
  ...readdirSync(resolve(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];

/** Every command, by all its names. */
const program = await programFor(["--help"]);
const known = new Set(
  program.commands.flatMap((command) => [
    command.name(),
    ...command.aliases(),
    ...command.commands.map((part) => `${command.name()} ${part.name()}`),
  ]),
).add("help");

test("docs/reference.md is what `npm run docs` writes", async () => {
  const { reference } = (await import(resolve(root, "scripts/reference.mjs"))) as { reference: string };
  expect(read("docs/reference.md")).toBe(reference);
});

test("docs/spider.md and its picture show the stored results", async () => {
  const { withTables, picture } = (await import(resolve(root, "scripts/spider-results.mjs"))) as {
    withTables: (page: string) => string;
    picture: string;
  };
  expect(withTables(read("docs/spider.md"))).toBe(read("docs/spider.md"));
  expect(read("docs/images/spider-smollm2.svg")).toBe(picture);
});

test.each(documents)("%s links only to existing files", (document) => {
  const links = [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((match) => match[1]!);
  const missing = links.filter((link) => !existsSync(resolve(root, dirname(document), link)));
  expect(missing).toEqual([]);
});

/** The anchors that GitHub gives the headings of a document. */
function anchorsOf(document: string): string[] {
  const headings = [...read(document).matchAll(/^#+ (.+)$/gm)].map((match) => match[1]!.toLowerCase());
  return headings.map((text) => text.replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-"));
}

test.each(documents)("%s links only to existing headings", (document) => {
  const links = [...read(document).matchAll(/\]\((?!https?:)([^)#]*\.md)?#([^)]+)\)/g)];
  const missing = links.filter(([, path, anchor]) => {
    const target = path ? relative(root, resolve(root, dirname(document), path)) : document;
    return !anchorsOf(target).includes(anchor!);
  });
  expect(missing.map(([link]) => link)).toEqual([]);
});

test("sources, examples and notebooks name only existing documents and headings", () => {
  const files = ["src", "examples", "integrations", "models", "notebooks"].flatMap((folder) =>
    readdirSync(resolve(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(ts|md|ipynb|yaml|py)$/.test(file))
      .map((file) => `${folder}/${file}`),
  );
  const missing = files.flatMap((file) =>
    [...read(file).matchAll(/(?<!\/master\/)\bdocs\/[\w/-]+\.md(?:#([\w-]+))?/g)]
      .filter(([link, anchor]) => {
        const document = link.replace(/#.*/, "");
        return !existsSync(resolve(root, document)) || (anchor && !anchorsOf(document).includes(anchor));
      })
      .map(([link]) => `${file}: ${link}`),
  );
  expect(missing).toEqual([]);
});

test.each(documents)("%s names only existing commands", (document) => {
  const named = [...read(document).matchAll(/\bsqlenv(?: --)? ((?:data |bench )?[a-z]+)(?=[ `\n])/g)].map(
    (match) => match[1]!,
  );
  expect(named.filter((command) => !known.has(command))).toEqual([]);
});

test("documents name only scripts of package.json", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = documents.flatMap((document) =>
    [...read(document).matchAll(/npm run (?:-s )?([a-z:]+)/g)].map((match) => match[1]!),
  );
  expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([]);
});
