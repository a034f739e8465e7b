// Opens a GPU in a browser's worker for a model, checked to compute what the CPU does. Loaded only where there is one.
import { OOMError } from "../../errors.ts";
import { createWebGpuInBrowser } from "../devices/webgpu/create.web.ts";
import type { Adapter, WebGpuDevice } from "../devices/webgpu/device.ts";
import { type ModelConfig, parameterCount } from "../model/config.ts";
import { checkDevice } from "./check-device.ts";
import { MAX_CACHED_TOKENS } from "./sampling/prefix-cache.ts";

/** Bytes for the KV cache: WebGPU does not say how much memory a GPU has. */
const CACHE_BYTES = 2 ** 30;
const MIN_CACHED = 8_192; // tokens; with fewer, every turn would recompute its whole context

/** Opens the GPU; throws if there is none, if the model exceeds its limits, or if it computes wrong numbers. */
export async function openWebGpu(name: string, config: ModelConfig): Promise<WebGpuDevice> {
  const device = await createWebGpuInBrowser();
  try {
    checkLimits(name, config, device.adapter.limits);
    await checkDevice(device);
    return device;
  } catch (error) {
    device.close();
    throw error;
  }
}

/** Throws if a model's weights, or one of its matrices, are larger than a GPU's buffers may be. */
export function checkLimits(name: string, config: ModelConfig, limits: Adapter["limits"]): void {
  const { vocab_size, hidden_size, intermediate_size } = config;
  const parts = [
    ["its weights take", 4 * parameterCount(config), limits.maxBufferSize],
    [
      "its largest matrix takes",
      4 * hidden_size * Math.max(vocab_size, 2 * intermediate_size),
      limits.maxStorageBufferBindingSize,
    ],
  ] as const;
  for (const [part, bytes, most] of parts) {
    if (bytes <= most) continue;
    throw new OOMError({
      what: `${name} does not fit the GPU: ${part}`,
      value: `${mib(bytes)} MiB in one buffer, of at most ${mib(most)}`,
      remedy: "use a smaller model",
    });
  }
}

/** Tokens in the KV cache of a model on a GPU whose memory is unknown. */
export function webGpuCacheTokens(config: ModelConfig): number {
  const { num_hidden_layers, num_key_value_heads, head_dim } = config;
  const perToken = 4 * num_hidden_layers * 2 * num_key_value_heads * head_dim;
  return Math.min(MAX_CACHED_TOKENS, Math.max(MIN_CACHED, Math.floor(CACHE_BYTES / perToken)));
}

function mib(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
