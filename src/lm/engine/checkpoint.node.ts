// An engine's checkpoint: trained values in full precision, AdamW's moments, reference weights if they were mixed, and
// the device variant that determines their bits.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ModelLoadError, messageOf } from "../../errors.ts";
import { openSafetensors, writeSafetensors } from "../model/formats/safetensors.node.ts";
import { trainedOf } from "../model/parameters.ts";
import type { LocalEngine } from "./local-engine.ts";
import type { LoadStateOptions } from "./thread/protocol.ts";

const STATE_FILE = "engine.safetensors";
const FACTS_FILE = "engine.json";

interface Facts {
  readonly step: number;
  readonly variant: string;
}

/** Writes the trained values (all weights, or the adapters) and the optimizer's state to a folder. */
export async function saveEngineState(engine: LocalEngine, dir: string): Promise<void> {
  const { model, optimizer, isReferenceMixed } = engine;
  mkdirSync(dir, { recursive: true });
  const { m, v } = optimizer;
  const parts = { values: trainedOf(model)!.values, m, v, ...(isReferenceMixed && { reference: engine.reference }) };
  const shapes = new Map(Object.entries(parts).map(([name, { length }]) => [name, [length]]));
  function* tensors() {
    for (const [name, buffer] of Object.entries(parts)) yield { name, data: model.device.read(buffer) as Float32Array };
  }
  const facts: Facts = { step: optimizer.step, variant: model.device.variant };
  writeFileSync(join(dir, FACTS_FILE), `${JSON.stringify(facts)}\n`);
  await writeSafetensors(join(dir, STATE_FILE), shapes, tensors(), { dtype: "F32" });
}

/**
 * Restores a checkpoint. Training continues bit for bit only on the same device variant; another is rejected unless
 * allowed.
 */
export async function loadEngineState(
  engine: LocalEngine,
  dir: string,
  { anyVariant = false, optimizer: withOptimizer = true }: LoadStateOptions = {},
): Promise<void> {
  const { model, optimizer } = engine;
  const file = join(dir, STATE_FILE);
  const { step, variant } = readFacts(dir);
  const source = await openSafetensors(file).catch((cause: unknown) => {
    throw damaged(dir, cause);
  });
  try {
    if (variant !== model.device.variant && !anyVariant) {
      throw new ModelLoadError({
        what: `${file} was written on another kind of arithmetic`,
        value: `${variant}, here ${model.device.variant}`,
        remedy: "resume where it was written, or allow results that differ in the last bits",
      });
    }
    const hasReference = source.names.includes("reference");
    if (engine.isReferenceMixed && !hasReference) {
      throw new ModelLoadError({
        what: `${file} has no reference weights, and this engine's are no longer the loaded ones`,
        remedy: "load the model again",
      });
    }
    const { m, v } = optimizer;
    const parts = { values: trainedOf(model)!.values, m, v, ...(hasReference && { reference: engine.reference }) };
    for (const [name, buffer] of Object.entries(parts)) {
      const data = await source.read(name);
      if (data.length !== buffer.length) {
        throw new ModelLoadError({
          what: `${file} belongs to another model: ${name} has`,
          value: `${data.length} numbers, not ${buffer.length}`,
        });
      }
      model.device.write(buffer, data);
    }
    if (!withOptimizer) for (const moments of [m, v]) model.device.fill(moments, 0);
    optimizer.step = withOptimizer ? step : 0;
    engine.isReferenceMixed = hasReference;
    engine.changed();
  } finally {
    await source.close();
  }
}

function readFacts(dir: string): Facts {
  const file = join(dir, FACTS_FILE);
  try {
    const { step, variant } = JSON.parse(readFileSync(file, "utf8")) as Facts;
    if (Number.isInteger(step) && typeof variant === "string") return { step, variant };
  } catch (cause) {
    throw damaged(dir, new Error(`${file}: ${messageOf(cause)}`, { cause }));
  }
  throw damaged(dir, new Error(`${file} does not hold step and variant`));
}

function damaged(dir: string, cause: unknown): ModelLoadError {
  const reason = cause instanceof ModelLoadError ? cause.what : messageOf(cause);
  return new ModelLoadError({
    what: `the checkpoint is damaged: ${reason}`,
    value: dir,
    remedy: "delete it to resume from the one before it",
    cause,
  });
}
