// The README quotes the stored results: what `scripts/kept-run.mjs` and `scripts/keep-result.mjs` wrote.
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (file: string) => readFileSync(resolve(root, file), "utf8");
const json = <T>(file: string) => JSON.parse(read(file)) as T;
const readme = read("README.md");
const percent = (rate: number) => (100 * rate).toFixed(1);

interface Cell {
  readonly success_rate: number;
  readonly success_ci: readonly [number, number];
}
interface Starter {
  readonly before: { readonly unseen: { readonly greedy: Cell } };
  readonly after: { readonly unseen: { readonly greedy: Cell } };
}
interface Result {
  readonly command: string;
  readonly accuracy: Readonly<Record<"base" | "before" | "after", { readonly answer: { readonly rate: number } }>>;
}

test("the default training's success", () => {
  const { before, after } = json<Starter>("docs/results/starter.json");
  const [was, is] = [before.unseen.greedy, after.unseen.greedy];
  const interval = is.success_ci.map(percent).join(" – ");
  expect(readme.replaceAll("\n", " ")).toContain(
    `goes from ${percent(was.success_rate)} % to **${percent(is.success_rate)} %** (95 % interval ${interval})`,
  );
  expect(read("docs/results.md")).toContain(`**${percent(is.success_rate)} %`);
});

test("the pretrained model's success on Spider, mean over seeds", () => {
  const results = readdirSync(resolve(root, "docs/results/spider")).map((file) =>
    json<Result>(`docs/results/spider/${file}`),
  );
  for (const [preset, start] of [
    ["spider-smollm2", "SFT sees the SQL"],
    ["spider-smollm2-nosql", "no SQL of Spider"],
  ] as const) {
    const runs = results.filter(({ command }) => command.includes(`--preset ${preset} `));
    const mean = (stage: "base" | "before" | "after") =>
      percent(runs.reduce((sum, { accuracy }) => sum + accuracy[stage].answer.rate, 0) / runs.length);
    const row = readme.split("\n").find((line) => line.startsWith(`| ${start}`));
    expect(row).toContain(`| ${mean("base")} % | ${mean("before")} % | **${mean("after")} %** |`);
  }
});

test("the README is two screens long", () => {
  expect(readme.split(/\s+/).length).toBeLessThanOrEqual(700);
});
