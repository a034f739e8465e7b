import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import type { Datum } from "../../lm/engine/index.ts";
import { resolveConfig } from "../config.ts";
import { mixtureSchema } from "./demonstrations.ts";
import { practiceMixture } from "./fine-tune.ts";
import { mixed } from "./mixing.ts";

test("practice worlds are played as examples/pretrained plays them, by the run's rules and prompt", () => {
  const file = new URL("../../../examples/pretrained/mixture.yaml", import.meta.url);
  const { seed: _, ...example } = mixtureSchema.parse(parse(readFileSync(file, "utf8")));
  const { seed, ...ours } = practiceMixture(resolveConfig({ seed: 3, difficulty_filter: ["easy", "medium", "hard"] }));
  expect(ours).toEqual(example);
  expect(seed).toBe(3);
  const run = { answer_last: true, prompt: "instruct", shots: 3, difficulty_filter: ["easy"] };
  const { difficulty_filter: difficulties, ...same } = run;
  expect(practiceMixture(resolveConfig(run))).toMatchObject({ ...same, difficulties });
});

test("items have their share, each once per epoch; items that cannot be encoded are left out", async () => {
  const datum = (token: number): Datum => ({ tokens: [token], weights: [1] });
  async function* others(): AsyncGenerator<Datum, void> {
    for (;;) yield datum(0);
  }
  const take = async (seed: number) => {
    const encoded: number[] = [];
    const encode = (item: number) => {
      encoded.push(item);
      return item === 3 ? null : datum(item);
    };
    const taken: number[] = [];
    for await (const { tokens } of mixed(others(), [1, 2, 3, 4], encode, { share: 0.4, seed })) {
      if (taken.push(tokens[0]!) === 1000) break;
    }
    return { encoded, taken };
  };
  const { encoded, taken } = await take(1);
  expect(encoded.toSorted()).toEqual([1, 2, 3, 4]); // each is encoded once
  const items = taken.filter((token) => token > 0);
  expect(items.length).toBeGreaterThan(350);
  expect(items.length).toBeLessThan(450);
  for (let round = 0; round + 3 <= items.length; round += 3)
    expect(items.slice(round, round + 3).toSorted()).toEqual([1, 2, 4]);
  expect((await take(1)).taken).toEqual(taken);
  expect((await take(2)).taken).not.toEqual(taken);
});
