// `sqlenv sft` on the command line: a tiny model, a mixture, a folder that can be loaded again.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModelFolder } from "sqlenv/lm/model/node";
import { afterAll, expect, test } from "vitest";
import { ALL, QUICK } from "../helpers/cases.ts";
import { sqlenv, sqlenvInside } from "../helpers/cli-process.ts";
import { writeTinyFolder } from "../helpers/tiny-folder.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-sft-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const model = join(scratch, "model");
await writeTinyFolder(model, { max_position_embeddings: 2048 });

test.runIf(QUICK)("trains on a mixture of players and saves the model", async () => {
  const mixture = join(scratch, "mixture.yaml");
  writeFileSync(
    mixture,
    "seed: 3\nplayers:\n  - {player: oracle, share: 1}\n  - {player: random, share: 1, weight: 0.5}\n",
  );
  const out = join(scratch, "tuned");
  const args = ["--steps", "2", "--batch-tokens", "1500", "--max-context-tokens", "2048", "--threads", "1", "--json"];
  const { code, stdout } = await sqlenv(["sft", "--model", model, "--out", out, "--mixture", mixture, ...args]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ steps: 2, interrupted: false, out });
  const saved = await loadModelFolder(out);
  const before = await loadModelFolder(model);
  const name = "model.norm.weight";
  expect(await saved.weights.read(name)).not.toEqual(await before.weights.read(name));
  expect(readFileSync(join(out, "tokenizer.json"), "utf8")).toBe(readFileSync(join(model, "tokenizer.json"), "utf8"));
  await Promise.all([saved.weights.close(), before.weights.close()]);
});

test.skipIf(!ALL)("makes a model by a recipe", async () => {
  const recipe = join(scratch, "recipe.yaml");
  writeFileSync(
    recipe,
    `model: {hidden_size: 32, intermediate_size: 64, num_hidden_layers: 1, num_attention_heads: 1}
stages: [{players: [{player: teacher, share: 1}]}]
sft: {steps: 2, batch_tokens: 1500}
`,
  );
  const out = join(scratch, "made");
  const { code, stdout } = await sqlenvInside(["sft", "--recipe", recipe, "--out", out, "--device", "cpu", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ steps: 2, interrupted: false, out });
  const { config, weights } = await loadModelFolder(out);
  await weights.close();
  expect(config).toMatchObject({ hidden_size: 32, num_hidden_layers: 1, architecture: "Qwen3ForCausalLM" });
});

test.runIf(QUICK).each([
  [["--out", "x", "--mixture", "nothing.yaml"], /either --model or --recipe/, 2],
  [["--out", "x", "--recipe", join(model, "config.json")], /is not a recipe/, 2],
  [["--model", model, "--out", "x"], /give --transcripts or --mixture, or both/, 2],
  [["--model", model, "--out", "x", "--mixture", "nothing.yaml"], /no such file: nothing.yaml/, 2],
  [["--model", "nowhere/at all", "--out", "x", "--transcripts", join(model, "config.json")], /line 1/, 2],
])("wrong use is one line: %j", async (args, message, expected) => {
  const { code, stderr } = await sqlenvInside(["sft", ...args]);
  expect(code).toBe(expected);
  expect(stderr).toMatch(message);
});

test("its former name still works", async () => {
  const { code, stderr } = await sqlenvInside(["warmup", "--model", model, "--out", "x"]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/give --transcripts or --mixture, or both/)]);
  expect((await sqlenvInside(["help", "warmup"])).stdout).toContain("Usage: sqlenv sft|warmup ");
});
