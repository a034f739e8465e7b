// `sqlenv train --dry-run`: the settings as they would be, and what memory and time the training would take.
import { loadModelAndTokenizer } from "../engine/index.node.ts";
import { estimateMemory } from "../engine/index.ts";
import type { DataSet } from "../questions/index.ts";
import { batchingOf, type GRPOConfig, GRPOTrainer, type RewardFunction, type TimingLine } from "../training/index.ts";
import { drawTable, formatBytes, formatNumber, type Output } from "./output.ts";
import { configText, engineOptions } from "./train-config.ts";
import { minutes } from "./train-screen.ts";

/** Prints what a training would be; plays and learns one step, which is thrown away, to know how long one takes. */
export async function dryRun(
  config: GRPOConfig,
  data: DataSet,
  rewardFuncs: readonly RewardFunction[],
  out: Output,
): Promise<void> {
  out.line(configText(config).trimEnd());
  out.line();
  const { questions, generation_batch_size } = batchingOf(config);
  out.line(`a generation: ${questions} questions × ${config.num_generations} episodes = ${generation_batch_size}`);
  const recompute = config.gradient_checkpointing;
  const model = await loadModelAndTokenizer(config.model_name, engineOptions(config));
  try {
    const memory = estimateMemory(model.config, { trains: true, recompute });
    out.line(
      drawTable(
        ["memory", ""],
        Object.entries(memory).map(([part, bytes]) => [part, formatBytes(bytes)]),
      ),
    );
    const { total_steps } = new GRPOTrainer({ model, data, config, rewardFuncs });
    const timings: TimingLine[] = [];
    const once = { ...config, max_steps: 1, eval_steps: 0 };
    const callbacks = [{ on_step_end: (_: unknown, { timing }: { timing: TimingLine }) => void timings.push(timing) }];
    await new GRPOTrainer({ model, data, config: once, rewardFuncs, callbacks }).train(); // kept in memory only
    const [{ step_time, sampling, training }] = timings as [TimingLine];
    const seconds = total_steps * step_time;
    out.line(
      `${formatNumber(total_steps)} steps of ${step_time.toFixed(1)} s (sampling ${sampling.toFixed(1)} s, training ${training.toFixed(1)} s): about ${minutes(seconds)}, evaluations not counted`,
    );
    out.result({ config, generation_batch_size, memory, total_steps, step_time, seconds });
  } finally {
    await model.engine.close();
  }
}
