import { expect, test } from "vitest";
import { mixtureAt, recipeSchema } from "./recipe.ts";

const recipe = recipeSchema.parse({
  seed: 5,
  model: { hidden_size: 32, intermediate_size: 64, num_hidden_layers: 1, num_attention_heads: 1 },
  lessons: [{ players: [{ player: "teacher", share: 1 }], worlds: 32 }, { players: [{ player: "guesser", share: 1 }] }],
  warmup: { steps: 3, batch_tokens: 2000 },
});

test("lessons follow one another by worlds; the last has no end", () => {
  const played = (world: number) => mixtureAt(recipe, world).players[0]!.player;
  expect([0, 31, 32, 1e6].map(played)).toEqual(["teacher", "teacher", "guesser", "guesser"]);
});

test("unknown keys and empty lessons are refused", () => {
  expect(() => recipeSchema.parse({ ...recipe, teacher: 1 })).toThrow(/teacher/);
  expect(() => recipeSchema.parse({ ...recipe, lessons: [] })).toThrow();
});
