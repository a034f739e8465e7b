import { expect, test } from "vitest";
import { mixtureAt, recipeSchema } from "./recipe.ts";

const recipe = recipeSchema.parse({
  seed: 5,
  model: { hidden_size: 32, intermediate_size: 64, num_hidden_layers: 1, num_attention_heads: 1 },
  stages: [{ players: [{ player: "teacher", share: 1 }], worlds: 32 }, { players: [{ player: "guesser", share: 1 }] }],
  sft: { steps: 3, batch_tokens: 2000 },
});

test("stages follow one another by worlds; the last is endless", () => {
  const played = (world: number) => mixtureAt(recipe, world).players[0]!.player;
  expect([0, 31, 32, 1e6].map(played)).toEqual(["teacher", "teacher", "guesser", "guesser"]);
});

test("unknown keys and empty stages are refused", () => {
  expect(() => recipeSchema.parse({ ...recipe, teacher: 1 })).toThrow(/teacher/);
  expect(() => recipeSchema.parse({ ...recipe, stages: [] })).toThrow();
});

test("a recipe with former keys is the same recipe", () => {
  const { stages, sft, ...others } = recipe;
  expect(recipeSchema.parse({ ...others, lessons: stages, warmup: sft })).toEqual(recipe);
});
