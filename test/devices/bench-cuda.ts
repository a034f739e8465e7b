// Scratch: first numbers on the card.
import { writeFileSync } from "node:fs";
import {
  CUDA_MODELS,
  measureCeilings,
  measureDecode,
  measureRoofline,
  measureTraining,
  randomModel,
} from "../../src/bench/cuda.ts";
import { createCuda } from "../../src/devices/cuda/cuda.node.ts";
import { LocalEngine } from "../../src/engine/local.ts";

const results: Record<string, unknown> = {};
const show = (name: string, value: unknown) => {
  results[name] = value;
  console.log(name, JSON.stringify(value));
  if (process.env.OUT) writeFileSync(`${process.env.OUT}/bench-cuda.json`, JSON.stringify(results, null, 1));
};
const steps: Record<string, () => Promise<void>> = {
  async main() {
    const device = createCuda();
    const ceilings = measureCeilings(device);
    show("ceilings", ceilings);
    device.trim();
    const model = randomModel(device, CUDA_MODELS["qwen3-0.6b"]!, true);
    const engine = new LocalEngine(model, { maxRows: 16_384 });
    const rows = measureRoofline(model, device, ceilings);
    for (const { kernel, milliseconds, share, bound } of rows)
      console.log(`${kernel.padEnd(48)} ${milliseconds.toFixed(4)} ms ${(100 * share).toFixed(0)} % ${bound}`);
    show("roofline", rows);
    show("training", await measureTraining(engine, device, ceilings));
    for (const size of [1, 8, 64]) show(`decode ${size}`, await measureDecode(engine, size));
    show("decode 64 shared", await measureDecode(engine, 64, { prompt: 512, new_tokens: 128, isShared: true }));
    await engine.close();
  },
  async others() {
    {
      const device = createCuda();
      const ceilings = { tflops: 753, terabytes_per_s: 4.23 };
      const engine = new LocalEngine(randomModel(device, CUDA_MODELS["qwen3-1.7b"]!, true), { maxRows: 16_384 });
      show("training 1.7b", await measureTraining(engine, device, ceilings));
      await engine.close();
    }
    {
      const device = createCuda({ precision: "fp32" });
      const engine = new LocalEngine(randomModel(device, CUDA_MODELS["qwen3-0.6b"]!, true), {
        maxRows: 2048,
        recompute: true,
      });
      show(
        "training 0.6b fp32 recompute, 2 x 1024",
        await measureTraining(engine, device, { tflops: 51, terabytes_per_s: 4.23 }, { sequences: 2, length: 1024 }),
      );
      await engine.close();
    }
  },
};
for (const name of process.argv.slice(2)) await steps[name]!();
