// Merges an adapter into a model's weights, tensor by tensor, for files of any size.
import { join } from "node:path";
import { ADAPTER_WEIGHTS, type AdapterConfig } from "./peft.node.ts";
import { openSafetensors } from "./safetensors.node.ts";
import type { WeightSource } from "./safetensors.ts";

/** The weights, with W + s·B·A for adapted ones. Closing it closes both sources. */
export async function mergedWeights(base: WeightSource, dir: string, { spec }: AdapterConfig): Promise<WeightSource> {
  const adapter = await openSafetensors(join(dir, ADAPTER_WEIGHTS));
  const has = new Set(adapter.names);
  return {
    names: base.names,
    metadata: base.metadata,
    info: base.info,
    read: async (name) => {
      const weight = await base.read(name);
      const at = `base_model.model.${name.replace(/\.weight$/, "")}`;
      if (!has.has(`${at}.lora_A.weight`)) return weight;
      const [a, b] = [await adapter.read(`${at}.lora_A.weight`), await adapter.read(`${at}.lora_B.weight`)];
      addProduct(weight, b, a, spec.r, spec.alpha / spec.r);
      return weight;
    },
    close: async () => {
      await Promise.all([base.close(), adapter.close()]);
    },
  };
}

/** Computes weight += factor · B · A. */
function addProduct(weight: Float32Array, b: Float32Array, a: Float32Array, r: number, factor: number): void {
  const columns = a.length / r;
  const sum = new Float64Array(columns);
  for (let row = 0; row < b.length / r; row++) {
    sum.fill(0);
    for (let i = 0; i < r; i++) {
      const left = factor * b[row * r + i]!;
      for (let column = 0; column < columns; column++) sum[column]! += left * a[i * columns + column]!;
    }
    for (let column = 0; column < columns; column++) weight[row * columns + column]! += sum[column]!;
  }
}
