// The README and docs/results.md quote the stored results: what `scripts/kept-run.mjs` and `scripts/keep-result.mjs` wrote.
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
  readonly episodes: number;
  readonly success_rate: number;
  readonly success_ci: readonly [number, number];
}
type Splits = Readonly<Record<"unseen" | "seen", Readonly<Record<"greedy" | "sampled", Cell>>>>;
interface Starter {
  readonly random: Splits;
  readonly before: Splits;
  readonly after: Splits;
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
});

test.each([
  ["unseen", "greedy"],
  ["unseen", "sampled"],
  ["seen", "greedy"],
  ["seen", "sampled"],
] as const)("docs/results.md on the default training, %s databases, %s", (split, decoding) => {
  const { random, before, after } = json<Starter>("docs/results/starter.json");
  const cell = ({ success_rate, success_ci }: Cell, bold = "") =>
    `${bold}${percent(success_rate)} %${bold} (${success_ci.map(percent).join(" – ")})`;
  const [first, second, third] = [random, before, after].map((stage) => stage[split][decoding]);
  expect(read("docs/results.md")).toContain(
    `| ${split} databases, ${decoding} | ${cell(first!)} | ${cell(second!)} | ${cell(third!, "**")} |`,
  );
});

test("docs/results.md lists the stored wrong answers of the default training, each with its gold", async () => {
  type Failures = readonly { readonly question: string }[];
  const { withFailures } = (await import(resolve(root, "scripts/failures.mjs"))) as {
    withFailures: (page: string, failures?: Failures) => string;
  };
  const { after, failures } = json<Starter & { failures?: Failures }>("docs/results/starter.json");
  const { success_rate, episodes } = after.unseen.greedy;
  if (failures) expect(failures).toHaveLength(Math.round((1 - success_rate) * episodes));
  expect(withFailures(read("docs/results.md"), failures)).toBe(read("docs/results.md"));

  const some = [
    {
      question: "Which of a|b is larger?",
      gold: { query: "SELECT a\nFROM t", answer: "`a`" },
      model: { query: null, answer: null },
    },
  ];
  expect(withFailures(read("docs/results.md"), some)).toContain(
    "| Which of a\\|b is larger? | `SELECT a FROM t` → `'a'` | no query → no answer |",
  );
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
