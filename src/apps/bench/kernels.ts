// Where the time of the CPU engine goes: each kernel's share of training and of sampling, and how busy the threads are.
import type { CpuDevice, ObserveKernel } from "../../lm/devices/cpu/device.ts";
import type { LocalEngine } from "../../lm/engine/index.ts";
import { contexts, ENGINE_MODELS, ENGINE_SPEC, randomEngine } from "./engine.ts";

export interface KernelShare {
  readonly kernel: string;
  readonly calls: number;
  readonly ms: number;
  /** Share of the workload's wall time. */
  readonly share: number;
  /** Share of the kernel's time in which a thread works, mean over the threads. */
  readonly busy: number;
}

export interface KernelProfile {
  readonly workload: string;
  readonly tokens_per_s: number;
  /** Largest share first. */
  readonly kernels: readonly KernelShare[];
  /** Share of the time between kernels: packing of batches, bookkeeping, sampling's scheduler; one thread works. */
  readonly outside: number;
  /** Share of the whole workload in which a thread works, mean over the threads. */
  readonly busy: number;
}

const ROUNDS = 3;

/** Profiles a model of this size with random weights. */
export async function benchKernels(
  name: string,
  makeDevice: (observe: ObserveKernel) => CpuDevice,
  onProgress: (what: string) => void = () => {},
): Promise<KernelProfile[]> {
  const times = new Map<string, { calls: number; seconds: number; worked: number }>();
  const device = makeDevice((kernel, seconds, worked) => {
    const sum = times.get(kernel) ?? { calls: 0, seconds: 0, worked: 0 };
    times.set(kernel, { calls: sum.calls + 1, seconds: sum.seconds + seconds, worked: sum.worked + worked });
  });
  const { threads } = device;
  const engine = randomEngine(device, ENGINE_MODELS[name]!);
  const profiles: KernelProfile[] = [];
  try {
    for (const [workload, work] of Object.entries(workloads(engine))) {
      onProgress(workload);
      await work(); // packs weights and compiles
      times.clear();
      const start = performance.now();
      let tokens = 0;
      for (let round = 0; round < ROUNDS; round++) tokens += await work();
      const total = (performance.now() - start) / 1000;
      const sums = [...times.values()];
      const inside = sums.reduce((sum, { seconds }) => sum + seconds, 0);
      const worked = sums.reduce((sum, kernel) => sum + kernel.worked, 0);
      const kernels = [...times].map(([kernel, { calls, seconds, worked }]) => ({
        kernel,
        calls: Math.round(calls / ROUNDS),
        ms: (1000 * seconds) / ROUNDS,
        share: seconds / total,
        busy: worked / seconds / threads,
      }));
      profiles.push({
        workload,
        tokens_per_s: tokens / total,
        kernels: kernels.sort((a, b) => b.ms - a.ms),
        outside: 1 - inside / total,
        busy: (worked + total - inside) / total / threads,
      });
    }
    return profiles;
  } finally {
    await engine.close();
  }
}

/** What is profiled; each returns its number of tokens. */
function workloads(engine: LocalEngine): Record<string, () => Promise<number>> {
  const { sequences, context, shared_prompt, new_tokens } = ENGINE_SPEC;
  const train = (count: number, length: number, shared: number) => async () => {
    const batch = contexts(engine, count, length, shared).map((tokens) => ({
      tokens,
      weights: tokens.map((_, i) => (i < Math.max(1, shared) ? 0 : 1)),
    }));
    await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } });
    return count * length;
  };
  const sample = (size: number, group: number) => async () => {
    const prompts = contexts(engine, size, context - new_tokens, context - new_tokens, group);
    engine.forgetCache();
    await Promise.all(
      prompts.map((prompt, i) =>
        engine.sample({ prompt, max_new_tokens: new_tokens, stop_ids: [], key: ["kernels", i] }),
      ),
    );
    return size * new_tokens;
  };
  return {
    [`training, ${sequences} × ${context}`]: train(sequences, context, 0),
    [`training, ${sequences} × ${context}, shared prompt of ${shared_prompt}`]: train(
      sequences,
      context,
      shared_prompt,
    ),
    "training, 2 × 1024": train(2, 1024, 0),
    "sampling 1": sample(1, 1),
    "sampling 32": sample(32, 1),
    "sampling 4 prompts × 8": sample(32, 8),
  };
}
