// What a training changes between its steps: the reference of the KL term, and the entropy bonus; also after a resume.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { smallDataSet } from "../../test/helpers/small-data.ts";
import { type FineTuned, taughtModel, teach } from "../../test/helpers/taught-model.ts";
import type { DataSet } from "../gym/data/index.ts";
import { loadEngineState, saveEngineState } from "../lm/engine/checkpoint.node.ts";
import type { Engine } from "../lm/engine/index.ts";
import type { TrainerCallback } from "./callbacks.ts";
import { type GRPOConfigInput, resolveConfig } from "./config.ts";
import { RunFolder } from "./run/folder.node.ts";
import { buildTrainer } from "./run/run.ts";
import { MemoryStore, type RunStore } from "./run/store.ts";
import type { TrainableEngine } from "./trainable-model.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-adapts-"));
afterAll(() => rmSync(scratch, { recursive: true }));
let data: DataSet;
let fineTuned: FineTuned;
beforeAll(async () => {
  data = await smallDataSet();
  fineTuned = await teach(data, 20);
});

const SMALL: GRPOConfigInput = {
  ...{ max_new_tokens: 20, max_completion_length: 40, max_context_tokens: 500, step_budget: 2, eval_steps: 0 },
  ...{ per_device_train_batch_size: 8, gradient_accumulation_steps: 1, num_generations: 8, learning_rate: 3e-3 },
  ...{ max_steps: 3, logging_steps: 1, lr_scheduler_type: "constant", reward_weights: [1, 0.15, 1] },
};

/** The engine without checkpoints, and with a reference that stays. */
function fixed(engine: Engine): TrainableEngine {
  return {
    sample: (request) => engine.sample(request),
    forwardBackward: (batch, options) => engine.forwardBackward(batch, options),
    optimStep: (adam) => engine.optimStep(adam),
    logprobs: (batch, options) => engine.logprobs(batch, options),
    close: () => engine.close(),
  };
}

/** Trains; `stopAfter` interrupts as Ctrl-C does. */
async function train(given: GRPOConfigInput, store: RunStore = new MemoryStore(), stopAfter = Infinity) {
  const model = taughtModel(fineTuned, { reference: true });
  const { engine } = model;
  const saved: TrainableEngine = {
    ...fixed(engine),
    mixReference: (alpha) => engine.mixReference(alpha),
    saveState: (dir) => saveEngineState(engine, dir),
    loadState: (dir) => loadEngineState(engine, dir),
  };
  const stop = new AbortController();
  const callback: TrainerCallback = {
    on_step_end: ({ state }) => {
      if (state.step === stopAfter) stop.abort();
    },
  };
  const config = resolveConfig({ ...SMALL, ...given });
  const trainer = buildTrainer({ model: { ...model, engine: saved }, data, config, store, callbacks: [callback] });
  const { metrics } = await trainer.train({ signal: stop.signal });
  const weights = engine.model.device.read(engine.model.values) as Float32Array;
  await engine.close();
  return { metrics, weights };
}

test("the reference becomes the model after every second step, with α = 1, and stays as it is in between", async () => {
  const settings = { beta: 0.1, sync_ref_model: true, ref_model_mixup_alpha: 1, ref_model_sync_steps: 2 };
  const { metrics } = await train({ ...settings, entropy_coef: 0.1 }); // a bonus moves the model, whatever the rewards
  expect(metrics[0]!.kl).toBe(0);
  expect(metrics[1]!.kl).toBeGreaterThan(0);
  expect(metrics[2]!.kl).toBe(0);
});

test("the entropy bonus starts after the first step, and its coefficient follows the target", async () => {
  const adaptive = { use_adaptive_entropy: true, entropy_coef: 0.01, entropy_coef_delta: 0.006 };
  const low = await train({ ...adaptive, entropy_target: 0 });
  const high = await train({ ...adaptive, entropy_target: 100, entropy_coef_max: 0.02 });
  const coefs = ({ metrics }: Awaited<ReturnType<typeof train>>) => metrics.map((line) => line.entropy_coef!);
  expect(coefs(low).map((coef) => coef.toFixed(3))).toEqual(["0.004", "0.000", "0.000"]);
  expect(coefs(high).map((coef) => coef.toFixed(3))).toEqual(["0.016", "0.020", "0.020"]);
  expect(high.metrics.map((line) => line["groups/skipped"])).toEqual([0, 0, 0]);
  expect(low.metrics.map(({ loss, policy_loss }) => policy_loss! - loss!)).toEqual([0, 0, 0]);
  const bonus = high.metrics.map(({ loss, policy_loss }) => policy_loss! - loss!);
  expect(bonus[0]).toBe(0);
  for (const step of [1, 2]) expect(bonus[step]).toBeCloseTo(coefs(high)[step - 1]! * high.metrics[step]!.entropy!, 6);
});

test("an interrupted training resumes to the same bits, with the mixed reference and the coefficient", async () => {
  const settings = {
    ...{ beta: 0.1, sync_ref_model: true, ref_model_sync_steps: 1, use_adaptive_entropy: true, entropy_target: 100 },
    ...{ per_device_train_batch_size: 4, gradient_accumulation_steps: 2, generation_batch_size: 4, num_generations: 4 },
  }; // two rollout batches per step
  const [whole, cut] = [new RunFolder(join(scratch, "whole")), new RunFolder(join(scratch, "cut"))];
  const expected = await train(settings, whole);
  expect((await train(settings, cut, 2)).metrics).toHaveLength(2);
  const resumed = await train(settings, cut);
  expect(resumed.metrics).toMatchObject([{ step: 3, entropy_coef: 0.015 }]);
  expect(resumed.weights.every((value, i) => value === expected.weights[i])).toBe(true);
  const lines = (store: RunFolder) => readFileSync(join(store.name, "metrics.jsonl"), "utf8");
  expect(lines(cut)).toBe(lines(whole));
});

test("an engine that cannot move its reference is refused before the training", () => {
  const model = taughtModel(fineTuned, { reference: true });
  const engine = fixed(model.engine);
  const config = resolveConfig({ ...SMALL, beta: 0.1, sync_ref_model: true });
  expect(() => buildTrainer({ model: { ...model, engine }, data, config })).toThrow(/needs an engine with mixRef/);
});
