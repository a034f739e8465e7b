// Which module may import which (layers.json, from the lowest up), and which files may use Node.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../src", import.meta.url));
const layers = JSON.parse(readFileSync(new URL("layers.json", import.meta.url), "utf8")) as Record<string, string[]>;
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !/\/(wasm|web)\//.test(file),
);

function importsOf(file: string): string[] {
  const source = readFileSync(resolve(root, file), "utf8");
  const statements = source.matchAll(
    /^(?:import|export)\s[^;"]*?from\s+"([^"]+)"|\b(?:import|require\.resolve)\("([^"]+)"\)/gm,
  );
  return [...statements].map((match) => match[1] ?? match[2]!);
}

/** `gym/sql` for src/gym/sql/limits.ts; rl and files beside the layers count as one module each. */
function moduleOf(path: string): string {
  const parts = path.split("/");
  const name = ["gym", "lm", "apps"].includes(parts[0]!) ? parts.slice(0, 2).join("/") : parts[0]!;
  return name.replace(/(\.node)?\.ts$/, "");
}

test("every module is in layers.json", () => {
  expect(files.length).toBeGreaterThan(40);
  expect([...new Set(files.map(moduleOf))].filter((module) => !(module in layers))).toEqual([]);
});

test("gym and lm may not import each other, and no module may import one above it", () => {
  const order = Object.keys(layers);
  const layerOf = (module: string) => module.split("/")[0]!;
  for (const [module, imports] of Object.entries(layers)) {
    for (const target of imports)
      expect(order.indexOf(target), `${module} → ${target}`).toBeLessThan(order.indexOf(module));
    const forbidden: Record<string, string[]> = { gym: ["lm", "rl", "apps"], lm: ["gym", "rl", "apps"], rl: ["apps"] };
    expect(imports.filter((target) => forbidden[layerOf(module)]?.includes(layerOf(target)))).toEqual([]);
  }
});

test("lower modules never import upper ones", () => {
  const wrong = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => target.startsWith("."))
      .map((target) => relative(root, resolve(root, dirname(file), target)))
      .filter((target) => moduleOf(target) !== moduleOf(file) && !layers[moduleOf(file)]!.includes(moduleOf(target)))
      .map((target) => `${file} imports ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("the trainer knows environments by their interface: only rl/sql, and what configures or runs it, imports SQL", () => {
  const wrong = files
    .filter((file) => /^rl\/[^/]+$/.test(file) && !/^rl\/(config|presets|deprecated)\.ts$/.test(file))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => /\/gym\/(sql|data|env|worlds)\//.test(target))
        .map((target) => `${file} imports ${target}`),
    );
  expect(wrong).toEqual([]);
});

test("only the command line, the servers and *.node.ts files use Node, and browser-safe files do not import them", () => {
  const usesNode = (file: string) =>
    /^apps\/(cli|openenv|tinker|dashboard|playground)\//.test(file) || file.endsWith(".node.ts");
  const wrong = files
    .filter((file) => !usesNode(file))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith("node:") || target.endsWith(".node.ts"))
        .map((target) => `${file} imports ${target}`),
    );
  expect(wrong).toEqual([]);
});

test("tests of public behaviour reach the package through its name", () => {
  const folder = resolve(root, "../test/public");
  const tests = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  expect(tests.length).toBeGreaterThan(30);
  const inside = tests.flatMap((file) =>
    importsOf(resolve(folder, file))
      .filter((target) => target.startsWith(".") && !/^\.\.\/(helpers|reference)\//.test(target))
      .map((target) => `${file} imports ${target}`),
  );
  expect(inside).toEqual([]);
});

test("every imported package is a declared dependency, and vice versa", () => {
  const { dependencies } = JSON.parse(readFileSync(resolve(root, "../package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  const foreign = files.flatMap(importsOf).filter((target) => !target.startsWith(".") && !target.startsWith("node:"));
  const names = new Set(
    foreign.map((target) =>
      target
        .split("/")
        .slice(0, target.startsWith("@") ? 2 : 1)
        .join("/"),
    ),
  );
  expect([...names].sort()).toEqual(Object.keys(dependencies).sort());
});
