// The package's types, the examples in its doc comments, and those in the documents compile in a project that has nothing but the package and
// its dependencies installed.
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ROOT } from "../helpers/dockerfile.ts";
import { exampleIn, exportedBy } from "../helpers/exported.ts";

const project = mkdtempSync(join(tmpdir(), "sqlenv-types-"));
afterAll(() => rmSync(project, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(project, path)), { recursive: true });
  writeFileSync(join(project, path), text);
}
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
write("index.ts", lines.join(""));
write("package.json", `{ "type": "module" }`);

const exported = [...exportedBy(join(ROOT, "src/index.node.ts")).values()];
/** What examples may use without importing it: every name of the package, and these. */
const GIVEN = `import { ${exported.map(({ name }) => name).join(", ")} } from "sqlenv";
declare const data: DataSet, env: SQLEnvironment, config: GRPOConfig, model: LoadedModel, url: string;
declare function readFileSync(path: string): Uint8Array<ArrayBuffer>;
declare function readFileSync(path: string, encoding: "utf8"): string;
`;
for (const { name, doc } of exported) {
  const [, imports = "", code = ""] = /^((?:import .*\n)*)([\s\S]*)$/.exec(exampleIn(doc) ?? "")!;
  if (code) write(`examples/${name}.ts`, `${GIVEN}${imports}export async function example() {\n${code}\n}\n`);
}

/** The TypeScript blocks of a document; each may use what those before it declare. */
function blocksOf(document: string): string {
  const blocks = [...readFileSync(join(ROOT, document), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)];
  const imports = new Set<string>();
  let code = "";
  for (const [, block] of blocks) {
    const rest = block!.replace(/^import \{ (.+) \} from "(.+)";.*\n/gm, (_, names: string, from: string) => {
      for (const name of names.split(", ")) imports.add(`import { ${name} } from "${from}";\n`);
      return "";
    });
    code += `{\n${rest}`;
  }
  if (blocks.length === 0) return "";
  const given = imports.has(`import { type DataSet } from "sqlenv";\n`)
    ? ""
    : `import type { DataSet } from "sqlenv";\n`;
  return `${[...imports].join("")}${given}declare const data: DataSet, request: Request;
export async function example() {\n${code}${"}".repeat(blocks.length)}\n}\n`;
}
const documents = ["README.md", ...readdirSync(join(ROOT, "docs")).map((file) => `docs/${file}`)];
for (const document of documents.filter((path) => path.endsWith(".md"))) {
  const code = blocksOf(document);
  if (code) write(`examples/${document.replace(/\W/g, "-")}.ts`, code);
}

test("entry points list their names, or extend another entry point", () => {
  for (const { default: file } of Object.values<{ default?: string }>(manifest.exports)) {
    const source = file?.replace("./dist", "src").replace(/js$/, "ts");
    const all = source ? [...readFileSync(join(ROOT, source), "utf8").matchAll(/^export \* from "(.+)"/gm)] : [];
    expect(
      all.filter(([, from]) => !/\/(index|engine-subpath|deprecated)(\.node)?\.ts$/.test(from!)).map(([line]) => line),
    ).toEqual([]);
  }
  expect(readFileSync(join(ROOT, "src/index.ts"), "utf8")).not.toMatch(/^export \*/m);
  expect(exported.length).toBeLessThanOrEqual(141);
});

test("every function and class has an example", () => {
  const acting = exported.filter(({ kind }) => kind === "function" || kind === "class");
  expect(acting.length).toBeGreaterThan(80);
  expect(acting.filter(({ doc }) => !exampleIn(doc)).map(({ name }) => name)).toEqual([]);
});

test.each([
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
])(
  "module %s, resolution %s: every entry point and example compile, documents included, and declarations of libraries",
  (module, moduleResolution) => {
    const compilerOptions = {
      ...{ module, moduleResolution, target: "es2022", lib: ["es2023", "dom"], strict: true, noEmit: true },
      ...{ skipLibCheck: false, types: [], preserveSymlinks: true }, // otherwise imports resolve to our own node_modules
    };
    write("tsconfig.json", JSON.stringify({ compilerOptions, include: ["index.ts", "examples"] }));
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const { stdout, status } = spawnSync(process.execPath, [tsc, "-p", project, "--pretty", "false"], {
      encoding: "utf8",
    });
    expect(stdout).toBe("");
    expect(status).toBe(0);
  },
);
