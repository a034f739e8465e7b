import { expect, test } from "vitest";
import { TINY } from "../../../test/helpers/tiny-model.ts";
import { whyNoGpu } from "../devices/webgpu/find.web.ts";
import { checkLimits, webGpuCacheTokens } from "./web-gpu.ts";

const GIB = 2 ** 30;
const LIMITS = { maxBufferSize: 4 * GIB, maxStorageBufferBindingSize: GIB };

test("a model whose weights or largest matrix exceed the GPU's buffers is refused, with the sizes", () => {
  const large = { ...TINY, vocab_size: 150_000, hidden_size: 2048 };
  expect(() => checkLimits("mine", large, LIMITS)).toThrow(
    /^mine does not fit the GPU: its largest matrix takes: 1172 MiB in one buffer, of at most 1024; use a smaller model$/,
  );
  expect(() => checkLimits("mine", large, { ...LIMITS, maxStorageBufferBindingSize: 2 * GIB })).not.toThrow();
  expect(() =>
    checkLimits("mine", { ...TINY, hidden_size: 2048, intermediate_size: 16_384, num_hidden_layers: 40 }, LIMITS),
  ).toThrow(/its weights take: \d+ MiB/);
});

test("the KV cache of a large model holds fewer tokens", () => {
  expect(webGpuCacheTokens(TINY)).toBe(131_072);
  const smollm2 = { ...TINY, num_hidden_layers: 30, num_key_value_heads: 3, head_dim: 64 };
  expect(webGpuCacheTokens(smollm2)).toBe(23_301);
  expect(webGpuCacheTokens({ ...smollm2, num_hidden_layers: 300 })).toBe(8_192);
});

test("where there is no WebGPU, that is the reason", async () => {
  expect(await whyNoGpu()).toBe("no WebGPU in this browser");
});
