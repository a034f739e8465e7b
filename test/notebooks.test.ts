// Both notebooks from the first cell to the last, in a fresh clone; and what is saved in them.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const scripts = new URL("../scripts/", import.meta.url).href;
const { problemsOf } = (await import(`${scripts}notebook-checks.mjs`)) as {
  problemsOf(notebook: Notebook): string[];
};
const { findDeno, hasJupyter, runNotebooks } = (await import(`${scripts}notebook-run.mjs`)) as {
  findDeno(): string | null;
  hasJupyter(): boolean;
  runNotebooks(options: {
    deno: string | null;
    settings: Readonly<Record<string, number | string | readonly string[]>>;
  }): Promise<Record<string, Notebook>>;
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
  JSON.parse(readFileSync(new URL(`../notebooks/${name}`, import.meta.url), "utf8"));

/** Shorter than the notebooks train and measure, but enough for a curve that rises. */
const SHORT = {
  ...{ max_steps: 8, per_device_train_batch_size: 32, learning_rate: 1e-3, difficulty_filter: ["easy"] },
  ...{ lr_scheduler_type: "constant", eval_steps: 0, final_eval_episodes: 12 },
};

const deno = hasJupyter() ? findDeno() : null;
const hasStarter = existsSync(new URL("../models/starter/config.json", import.meta.url)); // made on the spot it would take minutes
const lacking = !hasJupyter() ? "jupyter" : deno === null ? "deno" : !hasStarter ? "models/starter" : null;
if (lacking) console.warn(`notebooks are not run: there is no ${lacking}`);

test.skipIf(lacking)(
  `both notebooks run without a person, and show a rise${lacking ? ` (skipped: no ${lacking})` : ""}`,
  async () => {
    const executed = await runNotebooks({ deno, settings: SHORT });
    expect(Object.keys(executed).sort()).toEqual(NAMES);
    for (const [name, notebook] of Object.entries(executed)) expect([name, problemsOf(notebook)]).toEqual([name, []]);
  },
  600_000,
);

test.each(NAMES)("%s is saved with its outputs: a rising curve, before and after", (name) => {
  expect(problemsOf(saved(name))).toEqual([]);
});

describe("a notebook that is not as it should be is noticed", () => {
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
      (n) => replace(cellOf(n, "train"), /reward -?[\d.]+ at first/, "reward 9.9 at first"),
      /the reward does not rise: 9.9/,
    ],
    [
      "no gain",
      (n) => replace(cellOf(n, "standing"), /: [\d.]+ %( \([^)]*\))? before/, ": 99.9 % before"),
      /success does not rise: 99.9/,
    ],
  ])("%s", (_, spoil, expected) => {
    const notebook = saved("train_grpo.ipynb");
    spoil(notebook);
    expect(problemsOf(notebook)).toEqual([expect.stringMatching(expected)]);
  });
});
