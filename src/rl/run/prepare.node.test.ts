import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../test/helpers/data-files.ts";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import { exportDataSet } from "../../gym/data/index.node.ts";
import { prepareTraining } from "./prepare.node.ts";

const SETTINGS = { per_device_train_batch_size: 1, gradient_accumulation_steps: 2, num_generations: 2 };

test("own data without evaluation questions: a tenth is held out, by seed", async () => {
  const folder = join(temporaryFolder(), "own");
  exportDataSet(await smallDataSet(), folder);
  rmSync(join(folder, "questions/questions_eval.json"));
  const prepare = (seed: number) =>
    prepareTraining({ config: { ...SETTINGS, questions_path: folder, difficulty_filter: ["easy", "medium"], seed } });
  const heldIn = async (seed: number) => {
    const prepared = await prepare(seed);
    await prepared.close();
    const { data, split, heldOut, asked } = prepared;
    const held = data!.questions.filter((question) => question.split === "eval").map(({ question_id }) => question_id);
    expect([held.length, split!.eval.questions, asked.filter((id) => held.includes(id))]).toEqual([
      heldOut,
      heldOut,
      [],
    ]);
    return held;
  };
  const held = await heldIn(1);
  expect(held.length).toBe(1);
  expect(await heldIn(1)).toEqual(held);
  const draws = await Promise.all([2, 3].map(heldIn));
  expect(draws.some(([id]) => id !== held[0])).toBe(true);
});

test("evaluation questions of the data set are kept as they are", async () => {
  const folder = join(temporaryFolder(), "own");
  const data = await smallDataSet();
  exportDataSet(data, folder);
  const prepared = await prepareTraining({ config: { ...SETTINGS, questions_path: folder } });
  await prepared.close();
  expect(prepared.heldOut).toBe(0);
  expect(prepared.data!.questions.map(({ split }) => split)).toEqual(data.questions.map(({ split }) => split));
});
