// What is saved in the notebooks; notebooks.slow.test.ts runs them.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const scripts = new URL("../../scripts/", import.meta.url).href;
const { expectedResults, problemsOf, staleness } = (await import(`${scripts}notebook-checks.mjs`)) as {
  expectedResults(root: string): Expected;
  problemsOf(notebook: Notebook): string[];
  staleness(notebook: Notebook, expected: Expected): string[];
};

const NAMES = ["train_grpo.ipynb", "train_grpo_colab.ipynb"];

interface Expected {
  sha256: string;
  before: number;
  after: number;
}

interface Output {
  output_type: string;
  text?: string[];
  data?: Record<string, string[]>;
}

interface Cell {
  id: string;
  cell_type: string;
  source: string[];
  execution_count?: number | null;
  outputs?: Output[];
}

interface Notebook {
  cells: Cell[];
}

const saved = (name: string): Notebook =>
  JSON.parse(readFileSync(new URL(`../../notebooks/${name}`, import.meta.url), "utf8"));

test.each(NAMES)("%s is saved with its outputs: a rising curve, before and after", (name) => {
  expect(problemsOf(saved(name))).toEqual([]);
});

const expected = expectedResults(fileURLToPath(new URL("../..", import.meta.url)));

test.each(NAMES)("%s shows the bundled starter, and the results that the documents quote", (name) => {
  expect(staleness(saved(name), expected), "run `npm run notebooks -- --save`").toEqual([]);
  expect(staleness(saved(name), { ...expected, sha256: "0".repeat(64) })).toEqual([
    expect.stringMatching(/^it started/),
  ]);
  expect(staleness(saved(name), { ...expected, after: 12.3 })).toEqual([expect.stringMatching(/^its results are not/)]);
});

test("both notebooks trained the same weights", () => {
  const hashes = NAMES.map((name) => /weights after: sha256 ([0-9a-f]{64})/.exec(JSON.stringify(saved(name)))?.[1]);
  expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/);
  expect(hashes[1]).toBe(hashes[0]);
});

describe("detects a broken notebook", () => {
  const cellOf = (notebook: Notebook, id: string) => notebook.cells.find((cell) => cell.id === id)!;
  const replace = (cell: Cell, pattern: RegExp, by: string) => {
    for (const output of cell.outputs!) {
      for (const lines of [output.text, output.data?.["text/plain"]])
        lines?.splice(0, lines.length, ...lines.map((line) => line.replace(pattern, by)));
    }
  };
  test.each<[string, (notebook: Notebook) => void, RegExp]>([
    [
      "an error",
      (n) => cellOf(n, "baseline").outputs!.push({ output_type: "error", ename: "E", evalue: "broke" } as Output),
      /cell baseline failed: E broke/,
    ],
    ["other questions", (n) => replace(cellOf(n, "smoke"), /473/, "471"), /nothing matches .*Loaded 473/],
    ["a cell that was not run", (n) => Object.assign(cellOf(n, "live"), { execution_count: null }), /live was not run/],
    ["no picture", (n) => Object.assign(cellOf(n, "curve"), { outputs: [] }), /cell curve shows no picture/],
    [
      "a reward that falls",
      (n) => replace(cellOf(n, "train"), /reward -?[\d.]+ at the start/, "reward 9.9 at the start"),
      /the reward does not rise: 9.9/,
    ],
    [
      "no gain",
      (n) => replace(cellOf(n, "evaluation"), /: better/, ": not significant"),
      /success is not better: [\d.]+ %, then [\d.]+ % \(not significant\)/,
    ],
    ["no weights", (n) => replace(cellOf(n, "save"), /saved to/, "not"), /nothing matches .*saved to/],
    [
      "a temporary folder",
      (n) => replace(cellOf(n, "setup"), /Project root: \S+/, "Project root: /tmp/sqlenv-x"),
      /an output names a temporary folder: \/tmp\/sqlenv-x/,
    ],
    ["a long line", (n) => cellOf(n, "load").source.push("x".repeat(93)), /cell load has a line of more than 92/],
  ])("%s", (_, spoil, sentence) => {
    const notebook = saved("train_grpo.ipynb");
    spoil(notebook);
    expect(problemsOf(notebook)).toEqual([expect.stringMatching(sentence)]);
  });
});
