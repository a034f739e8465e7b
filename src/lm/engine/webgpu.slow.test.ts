// An engine on WebGPU against one on the CPU: losses of training steps, sampled tokens and their log-probs.
import { describe, expect, test } from "vitest";
import { TINY, tinyModel } from "../../../test/helpers/tiny-model.ts";
import { missingWebGpu } from "../../../test/helpers/webgpu.ts";
import { random } from "../../random.ts";
import { createCpu } from "../devices/cpu/start.node.ts";
import type { Device } from "../devices/index.ts";
import { createWebGpu } from "../devices/webgpu/create.node.ts";
import type { Datum } from "./engine.ts";
import { LocalEngine } from "./local-engine.ts";

const missing = missingWebGpu();
const COMPILING_MS = 300_000; // a software adapter compiles each kernel for a good part of a second

/** Groups of three with a shared prompt. */
function groups(): Datum[] {
  const r = random("webgpu engine");
  const some = (count: number) => Array.from({ length: count }, () => r.int(2, TINY.vocab_size - 1));
  return [some(19), some(3)].flatMap((prompt) =>
    [11, 1, 6].map((length) => {
      const tokens = [...prompt, ...some(length)];
      return { tokens, weights: tokens.map((_, i) => (i < prompt.length ? 0 : 1)) };
    }),
  );
}

async function train(device: Device) {
  const engine = new LocalEngine(tinyModel({ device }));
  const losses: number[] = [];
  for (let step = 0; step < 4; step++) {
    losses.push((await engine.forwardBackward(groups(), { loss: { type: "cross_entropy" } })).loss);
    await engine.optimStep({ learning_rate: 3e-3, weight_decay: 0.01, max_grad_norm: 1 });
  }
  const prompts = groups().map(({ tokens }) => tokens);
  const samples = await Promise.all(
    prompts.map((prompt, i) => engine.sample({ prompt, max_new_tokens: 9, stop_ids: [], key: ["webgpu", i] })),
  );
  const whole = samples.map(({ tokens }, i) => [...prompts[i]!, ...tokens]);
  const recomputed = await engine.logprobs(whole.map((tokens) => ({ tokens, weights: [] })));
  const apart = samples.flatMap(({ logprobs }, i) =>
    logprobs.map((logp, at) => Math.abs(logp - recomputed[i]![prompts[i]!.length + at]!)),
  );
  const weights = device.read(engine.model.values);
  await engine.close();
  return { losses, weights, tokens: samples.map(({ tokens }) => tokens), apart: Math.max(...apart) };
}

describe.skipIf(missing !== undefined)(`an engine on WebGPU${missing ? ` (${missing})` : ""}`, () => {
  test(
    "has the CPU's losses and tokens, the log-probs that training computes, and the same bits each time",
    async () => {
      const want = await train(createCpu({ threads: 1 }));
      const got = await train(createWebGpu());
      for (const [step, loss] of want.losses.entries())
        expect(Math.abs(got.losses[step]! / loss - 1), `step ${step}`).toBeLessThanOrEqual(3e-5);
      expect(got.tokens).toEqual(want.tokens);
      expect(got.apart).toBeLessThanOrEqual(1e-4);
      expect(await train(createWebGpu())).toEqual(got);
    },
    COMPILING_MS,
  );
});
