// A model made by a recipe: an ordinary folder, the same bytes for any number of threads and workers.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { loadModelFolder } from "../../lm/model/formats/folder.node.ts";
import type * as RecipeModule from "./recipe.node.ts";
import { recipeSchema } from "./recipe.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const { makeModel } = (await import(resolve(root, "dist/rl/sft/recipe.node.js"))) as typeof RecipeModule;
const dir = mkdtempSync(join(tmpdir(), "sqlenv-recipe-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const recipe = recipeSchema.parse({
  seed: 5,
  model: { hidden_size: 32, intermediate_size: 64, num_hidden_layers: 1, num_attention_heads: 1 },
  stages: [{ players: [{ player: "teacher", share: 1 }], worlds: 32 }, { players: [{ player: "guesser", share: 1 }] }],
  sft: { steps: 3, batch_tokens: 2000 },
});

test("the same recipe gives the same folder, byte by byte, in bf16", async () => {
  const losses: number[][] = [[], []];
  for (const [i, name] of ["a", "b"].entries()) {
    const report = await makeModel(join(dir, name), recipe, {
      engine: { device: "cpu", threads: 1 + i },
      workers: i,
      onStep: ({ loss }) => losses[i]!.push(loss),
    });
    expect(report).toMatchObject({ steps: 3, interrupted: false });
  }
  expect(losses[0]).toEqual(losses[1]);
  for (const file of ["model.safetensors", "tokenizer.json", "config.json"]) {
    expect(readFileSync(join(dir, "a", file)).equals(readFileSync(join(dir, "b", file)))).toBe(true);
  }
  const { config, tokenizer, weights } = await loadModelFolder(join(dir, "a"));
  await weights.close();
  expect(config.hidden_size).toBe(32);
  expect(tokenizer.decode(tokenizer.encodePlain("SELECT a FROM b"))).toBe("SELECT a FROM b");
});
