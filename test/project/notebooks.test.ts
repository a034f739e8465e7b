// What is saved in the notebooks; notebooks.slow.test.ts runs them.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const scripts = new URL("../../scripts/", import.meta.url).href;
const { problemsOf } = (await import(`${scripts}notebook-checks.mjs`)) as {
  problemsOf(notebook: Notebook): string[];
};

const NAMES = ["train_grpo.ipynb", "train_grpo_colab.ipynb"];

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
      (n) => replace(cellOf(n, "evaluation"), /: [\d.]+ %( \([^)]*\))? before/, ": 99.9 % before"),
      /success does not rise: 99.9/,
    ],
  ])("%s", (_, spoil, expected) => {
    const notebook = saved("train_grpo.ipynb");
    spoil(notebook);
    expect(problemsOf(notebook)).toEqual([expect.stringMatching(expected)]);
  });
});
