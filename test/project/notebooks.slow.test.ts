// Both notebooks from the first cell to the last, in a fresh clone.
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { without } from "../helpers/needs.ts";

const scripts = new URL("../../scripts/", import.meta.url).href;
const { problemsOf } = (await import(`${scripts}notebook-checks.mjs`)) as {
  problemsOf(notebook: unknown): string[];
};
const { findDeno, hasJupyter, runNotebooks } = (await import(`${scripts}notebook-run.mjs`)) as {
  findDeno(): string | null;
  hasJupyter(): boolean;
  runNotebooks(options: {
    deno: string | null;
    settings: Readonly<Record<string, number | string>>;
  }): Promise<Record<string, unknown>>;
};

const NAMES = ["train_grpo.ipynb", "train_grpo_colab.ipynb"];

/** Shorter than the notebooks' own training, but enough for a rising curve and a significant gain. */
const SHORT = {
  ...{ max_steps: 8, per_device_train_batch_size: 16, learning_rate: 0.002, lr_scheduler_type: "constant" },
  ...{ eval_steps: 0, final_eval_episodes: 12, final_eval_sampled_episodes: 4 },
};

const deno = hasJupyter() ? findDeno() : null;
const hasStarter = existsSync(new URL("../../models/starter/config.json", import.meta.url)); // training it here would take minutes
const lacking = !hasJupyter() ? "jupyter" : deno === null ? "deno" : !hasStarter ? "models/starter" : null;
const note =
  without("jupyter", hasJupyter(), "install it as CONTRIBUTING.md says") ||
  (lacking ? ` (skipped: no ${lacking})` : "");

test.skipIf(lacking)(
  `both notebooks run unattended, and success rises${note}`,
  async () => {
    const executed = await runNotebooks({ deno, settings: SHORT });
    expect(Object.keys(executed).sort()).toEqual(NAMES);
    for (const [name, notebook] of Object.entries(executed)) expect([name, problemsOf(notebook)]).toEqual([name, []]);
  },
  600_000,
);
