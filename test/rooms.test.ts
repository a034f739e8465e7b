// Which room may import which (rooms.json), and which files may use Node.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../src", import.meta.url));
const rooms = JSON.parse(readFileSync(new URL("rooms.json", import.meta.url), "utf8")) as Record<string, string[]>;
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !file.includes("/assembly/"),
);

function importsOf(file: string): string[] {
  const source = readFileSync(resolve(root, file), "utf8");
  const statements = source.matchAll(
    /^(?:import|export)\s[^;"]*?from\s+"([^"]+)"|\b(?:import|require\.resolve)\("([^"]+)"\)/gm,
  );
  return [...statements].map((match) => match[1] ?? match[2]!);
}

function roomOf(path: string): string {
  return path.split("/")[0]!.replace(/(\.node)?\.ts$/, "");
}

test("every room is known", () => {
  expect(files.length).toBeGreaterThan(40);
  expect([...new Set(files.map(roomOf))].filter((room) => !(room in rooms))).toEqual([]);
});

test("lower rooms never import upper ones", () => {
  const wrong = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => target.startsWith("."))
      .map((target) => relative(root, resolve(root, dirname(file), target)))
      .filter((target) => roomOf(target) !== roomOf(file) && !rooms[roomOf(file)]!.includes(roomOf(target)))
      .map((target) => `${file} imports ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("only the command line, the server and *.node.ts files use Node, and nobody browser-safe imports those", () => {
  const usesNode = (file: string) => /^(cli|server)\//.test(file) || file.endsWith(".node.ts");
  const wrong = files
    .filter((file) => !usesNode(file))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith("node:") || target.endsWith(".node.ts"))
        .map((target) => `${file} imports ${target}`),
    );
  expect(wrong).toEqual([]);
});

test("packages are imported only where they are declared", () => {
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
