// The stock `tinker` client trains and samples on our server. Needs a Python with it, named by SQLENV_TINKER_PYTHON;
// without one it is skipped.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadBaseModel, startTinkerServer } from "sqlenv/apps/tinker";
import { expect, test } from "vitest";
import { ROOT } from "../helpers/dockerfile.ts";
import { without } from "../helpers/needs.ts";
import { runPython } from "../helpers/python.ts";
import { writeTinyFolder } from "../helpers/tiny-folder.ts";

const python = process.env.SQLENV_TINKER_PYTHON ?? "";
const note = without("tinker", python !== "", "set SQLENV_TINKER_PYTHON to a Python that has it");

interface Seen {
  readonly listed: readonly string[];
  readonly losses: readonly number[];
  readonly grad_norm: number;
  readonly samples: readonly (readonly [tokens: number, logprobs: number])[];
  readonly policy: Readonly<Record<string, { readonly loss: number; readonly gap: number }>>;
  readonly restored: number;
  readonly named: readonly [tokens: readonly number[], path: string, known: number, first: null];
  readonly refusal: string;
}

test.skipIf(python === "")(
  `the tinker client${note} trains, samples, saves and continues, and hears what is refused`,
  async () => {
    const scratch = mkdtempSync(join(tmpdir(), "sqlenv-tinker-"));
    const folder = join(scratch, "model");
    await writeTinyFolder(folder);
    const model = await loadBaseModel(folder, { threads: 1 });
    const server = await startTinkerServer(model, { port: 0, checkpoints: join(scratch, "checkpoints") });
    const flags = ["--url", server.url, "--base-model", "model"];
    const seen = await runPython<Seen>(python, join(ROOT, "test/clients"), "check_tinker.py", ...flags);
    expect(seen.listed).toEqual(["model"]);
    expect(seen.losses.toSorted((a, b) => b - a)).toEqual(seen.losses); // each step lowers it
    expect(seen.grad_norm).toBeGreaterThan(0);
    expect(seen.samples).toEqual(Array.from({ length: 32 }, () => [12, 12]));
    // Four samples of twelve tokens, two with advantage 1 and two with −0.5.
    for (const loss of ["importance_sampling", "ppo"]) expect(seen.policy[loss]!.loss).toBeCloseTo(-12, 4);
    for (const { gap } of Object.values(seen.policy)) expect(gap).toBeLessThan(1e-5);
    expect(seen.restored).toBe(0);
    expect(seen.named).toMatchObject([
      { length: 4 },
      expect.stringMatching(/^tinker:.*sampler_weights\/three$/),
      8,
      null,
    ]);
    expect(seen.refusal).toContain("this server has no loss dro");
    await server.close();
    rmSync(scratch, { recursive: true, force: true });
  },
  300_000,
);
