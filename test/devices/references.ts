// Compares a device with transformers: logits, log-probs and every gradient of the tiny reference models.
import { expect, test } from "vitest";
import type { Device } from "../../src/lm/devices/index.ts";
import { parseConfig } from "../../src/lm/model/config.ts";
import { loadWeights } from "../../src/lm/model/formats/load.ts";
import { openSafetensors } from "../../src/lm/model/formats/safetensors.node.ts";
import { createModel } from "../../src/lm/model/parameters.ts";
import { everyToken, logitsOf, train } from "../helpers/model-passes.ts";
import { ENTROPY_WEIGHT, type ReferenceName, readReference, TEMPERATURE } from "../reference/read.ts";
import { distance } from "./bench.ts";

/** Tests of a device; `root` is the address of the folder test/reference, `note` gets the measured errors. */
export function againstTransformers(
  name: string,
  make: () => Device,
  models: readonly ReferenceName[],
  tolerances: { readonly logits: number; readonly gradient: number },
  root: URL,
  note: (line: string) => void,
): void {
  for (const model of models) {
    test(`${name}: ${model} has the logits and gradients of transformers`, async () => {
      const reference = readReference(model, root);
      const device = make();
      const loaded = createModel(device, parseConfig(reference.config), { trains: true });
      const source = await openSafetensors(reference.folder);
      await loadWeights(loaded, source, { file: reference.folder });
      await source.close();
      const runs = reference.sequences.map((ids) => ({ tokens: [...ids], parent: null }));
      const logits = distance(logitsOf(loaded, runs), reference.logits.data);
      const { weights } = reference;
      const { logp } = train(loaded, runs, {
        ...everyToken(reference.sequences),
        ...{ temperature: TEMPERATURE, weights, entropyWeight: ENTROPY_WEIGHT },
      });
      let worst = { name: "log-probs", off: distance(logp, reference.logp) };
      for (const tensor of loaded.tensors) {
        const off = distance(device.read(tensor.grad!), reference.gradients.get(tensor.name)!.data);
        if (!(off <= worst.off)) worst = { name: tensor.name, off };
      }
      device.close();
      note(
        `${name}: ${model}: logits ${logits.toExponential(1)}, worst of ${worst.name} ${worst.off.toExponential(1)}`,
      );
      expect(logits).toBeLessThanOrEqual(tolerances.logits);
      expect(worst.off, worst.name).toBeLessThanOrEqual(tolerances.gradient);
    });
  }
}
