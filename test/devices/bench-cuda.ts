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
import { layoutOf } from "../../src/model/layout.ts";

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
  async ops() {
    const device = createCuda();
    const config = { ...CUDA_MODELS["qwen3-0.6b"]! };
    const model = randomModel(device, config, false);
    const {
      hidden_size: D,
      intermediate_size: F,
      num_attention_heads: H,
      num_key_value_heads: G,
      head_dim: d,
    } = config;
    const shape = { heads: H, kvHeads: G, headDim: d, eps: 1e-6 };
    for (const rows of [1, 8, 64]) {
      device.scope(() => {
        const act = (width: number) => {
          const buffer = device.alloc("bf16", rows * width);
          device.fill(buffer, 0.01);
          return buffer;
        };
        const [h, qkv, q, attended, gateUp, activated] = [act(D), act(4096), act(2048), act(2048), act(2 * F), act(F)];
        const [x, rstd, headRstd] = [
          device.alloc("f32", rows * D),
          device.alloc("f32", rows),
          device.alloc("f32", rows * (H + G)),
        ];
        device.fill(x, 0.1);
        const news = Array.from({ length: rows }, (_, i) => ({
          own: { block: i * 600 * 2048, capacity: 600 },
          start: 512,
          count: 1,
          ancestors: [],
        }));
        const layout = layoutOf(device, news, [0]);
        const stores = model.layers.map(() => act(0) && device.alloc("bf16", rows * 600 * 2048));
        for (const store of stores) device.fill(store, 0.01);
        const logits = device.alloc("f32", rows * 151936);
        const draw = { temperatures: device.alloc("f32", rows), uniforms: device.alloc("f32", rows) };
        device.fill(draw.temperatures, 1);
        device.fill(draw.uniforms, 0.5);
        const out = { tokens: device.alloc("i32", rows), logp: device.alloc("f32", rows) };
        const ops: Record<string, (i: number) => void> = {
          rmsNorm: (i) => device.rmsNorm(x, null, model.layers[i]!.attentionNorm, h, rstd, rows, 1e-6),
          qkv: (i) => device.linear(model.layers[i]!.qkv, h, qkv, rows),
          rotate: (i) =>
            device.rotate(qkv, model.layers[i]!.headNorms, q, headRstd, stores[i]!, layout, model.rotary, shape),
          attention: (i) => device.attention(q, stores[i]!, attended, null, layout, shape),
          outputAdd: (i) => void device.linearAdd!(model.layers[i]!.output, attended, x, rows),
          gated: (i) => void device.linearSwiGlu!(model.layers[i]!.gateUp, h, activated, rows),
          downAdd: (i) => void device.linearAdd!(model.layers[i]!.down, activated, x, rows),
          gateUp: (i) => device.linear(model.layers[i]!.gateUp, h, gateUp, rows),
          head: (i) => void (i < 4 && device.linear(model.head, h, logits, rows)),
          sample: () => device.sample(logits, 151936, 151936, rows, draw, out),
        };
        const order = ["rmsNorm", "qkv", "rotate", "attention", "outputAdd", "rmsNorm", "gated", "downAdd"];
        const timed = (work: () => void) => {
          const recording = device.decoding!.record(work);
          for (let k = 0; k < 3; k++) recording.run();
          const times = Array.from({ length: 9 }, () => device.time(() => recording.run())).sort((a, b) => a - b);
          recording.free();
          return times[4]!;
        };
        const line = Object.entries(ops).map(([name, op]) => {
          const ms = timed(() => model.layers.forEach((_, i) => op(i)));
          return `${name} ${((1000 * ms) / (name === "head" ? 4 : 28)).toFixed(2)}`;
        });
        const whole = timed(() => model.layers.forEach((_, i) => order.forEach((name) => ops[name]!(i))));
        show(`ops at ${rows} rows, us`, line.join(", "));
        show(`28 layers at ${rows} rows, ms`, whole);
      });
    }
    device.close();
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
