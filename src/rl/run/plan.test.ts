import { expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import { KNOWN_MODELS } from "../../lm/model/formats/known.ts";
import { resolveConfig } from "../config.ts";
import { presetNamed } from "../presets.ts";
import { evaluationEpisodes, evaluationSeconds, GPU_CLASSES, planFor, sftSeconds, stepSeconds } from "./plan.ts";

test("the preset for a free T4 fits it, and takes 30 to 60 minutes with its evaluations", async () => {
  const config = resolveConfig(presetNamed("colab-t4"));
  const small = await smallDataSet();
  const copies = Array.from({ length: 40 }, (_, i) =>
    small.questions.map((question) => ({ ...question, question_id: `${question.question_id}_${i}` })),
  );
  const data = { ...small, questions: copies.flat() };
  const model = KNOWN_MODELS[config.model_name]!.config;
  const t4 = GPU_CLASSES[0]!;
  const steps = config.max_steps;
  const episodes = evaluationEpisodes(config, data, steps);
  const seconds =
    config.sft_steps * sftSeconds(model, config, t4) +
    steps * stepSeconds(model, config, t4) +
    evaluationSeconds(model, episodes, t4);
  expect(planFor(config.model_name, model, config, t4).refused).toBeNull();
  expect(episodes).toBe(3 * 2 * 24 + 3 * 2 * 2 * 12 + 8 * 12);
  expect(seconds / 60).toBeGreaterThan(30);
  expect(seconds / 60).toBeLessThan(60);
});
