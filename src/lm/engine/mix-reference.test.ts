// Reference weights that are moved towards the current ones: TRL's numbers, log-probs, checkpoints.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { tinyModel } from "../../../test/helpers/tiny-model.ts";
import { addLora } from "../model/lora.ts";
import { loadEngineState, saveEngineState } from "./checkpoint.node.ts";
import { LocalEngine } from "./local-engine.ts";

const file = readFileSync(new URL("../../../test/reference/trl-adaptive.json", import.meta.url), "utf8");
const { reference: trl } = JSON.parse(file) as {
  reference: {
    ref_model_mixup_alpha: number;
    ref_model_sync_steps: number;
    first: number[];
    steps: { step: number; model: number[]; reference: number[] }[];
  };
};
const scratch = mkdtempSync(join(tmpdir(), "sqlenv-reference-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const BATCH = [{ tokens: [3, 14, 15, 9, 26, 5, 35], weights: [0, 0, 1, 1, 1, 1, 1] }];
const REFERENCE = { weights: "reference" } as const;
const engineOf = () => new LocalEngine(tinyModel(), { reference: true });

async function learn(engine: LocalEngine): Promise<void> {
  await engine.forwardBackward(BATCH, { loss: { type: "cross_entropy" } });
  await engine.optimStep({ learning_rate: 0.01 });
}

test("the reference has TRL's values after every step", async () => {
  const engine = engineOf();
  const { device, values } = engine.model;
  const start = values.length - trl.first.length; // the last ones, so that every part is reached
  const [current, reference] = [values, engine.reference].map((buffer) => device.part(buffer, start, trl.first.length));
  device.write(reference!, Float32Array.from(trl.first));
  for (const { step, model, reference: expected } of trl.steps) {
    device.write(current!, Float32Array.from(model));
    if (step % trl.ref_model_sync_steps === 0) await engine.mixReference(trl.ref_model_mixup_alpha);
    const worst = device.read(reference!).map((x, i) => Math.abs(x - expected[i]!));
    expect(Math.max(...worst)).toBeLessThan(3e-7); // one bit of float32 numbers up to 4
  }
  await engine.close();
});

test("mixing with α = 1 makes it the model, and a smaller α something between", async () => {
  const engine = engineOf();
  const loaded = await engine.logprobs(BATCH);
  await learn(engine);
  expect(await engine.logprobs(BATCH, REFERENCE)).toEqual(loaded);
  await engine.mixReference(0.5);
  const between = await engine.logprobs(BATCH, REFERENCE);
  const now = await engine.logprobs(BATCH);
  expect(between).not.toEqual(loaded);
  expect(between).not.toEqual(now);
  await engine.mixReference(1);
  expect(await engine.logprobs(BATCH, REFERENCE)).toEqual(now);
  await engine.close();
});

test("a checkpoint has the reference once it was mixed, and restores it", async () => {
  const [first, second] = [engineOf(), engineOf()];
  await saveEngineState(first, join(scratch, "before"));
  await learn(first);
  await first.mixReference(0.6);
  await learn(first);
  await saveEngineState(first, join(scratch, "after"));
  await loadEngineState(second, join(scratch, "after"));
  expect(await second.logprobs(BATCH, REFERENCE)).toEqual(await first.logprobs(BATCH, REFERENCE));
  expect(await second.logprobs(BATCH)).toEqual(await first.logprobs(BATCH));
  await second.mixReference(0.6);
  await first.mixReference(0.6);
  expect(second.model.device.read(second.reference)).toEqual(first.model.device.read(first.reference));
  await expect(loadEngineState(first, join(scratch, "before"))).rejects.toThrow(/no reference weights.*load the model/);
  for (const engine of [first, second]) await engine.close();
});

test("an engine without a reference, and one with adapters, refuse it", async () => {
  const plain = new LocalEngine(tinyModel());
  await expect(plain.mixReference(0.6)).rejects.toThrow(
    /kept no reference weights; load the model with reference: true/,
  );
  const adapted = new LocalEngine(addLora(tinyModel(), { r: 4, alpha: 8 }), { reference: true });
  await expect(adapted.mixReference(0.6)).rejects.toThrow(/with adapters cannot be mixed/);
  for (const engine of [plain, adapted]) await engine.close();
});
