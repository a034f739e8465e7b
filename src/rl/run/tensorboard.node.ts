// Metrics as TensorBoard event files, for people who watch their trainings there (`report_to`).
import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { encodeTfEvent, type TfEvent } from "../../io/tfevents.ts";
import type { TrainerCallback } from "../callbacks.ts";
import { evaluationMetrics } from "../evaluate-model.ts";
import type { MetricLine } from "./records.ts";

/**
 * A callback that writes every line of metrics.jsonl to an event file in a folder, under the names that transformers
 * gives them in TensorBoard: `train/reward`, `eval/unseen/greedy/success_rate`. Each process writes its own file; the
 * file of a resumed run tells readers to drop the steps that it repeats.
 *
 * @example
 * await runTraining({ model, data, config, callbacks: [tensorBoard("runs/mine/tensorboard")] });
 */
export function tensorBoard(folder: string): TrainerCallback {
  let file: string | null = null;
  const write = (line: MetricLine) => {
    const wall_time = Date.now() / 1000;
    const { step, ...scalars } = line;
    const start: TfEvent[] =
      file === null
        ? [
            { wall_time, kind: "version" },
            { wall_time, step, kind: "session_start" },
          ]
        : [];
    file ??= newFile(folder, wall_time);
    const events: TfEvent[] = [...start, { wall_time, step, kind: "scalars", scalars: renamed(scalars) }];
    appendFileSync(file, Buffer.concat(events.map(encodeTfEvent)));
  };
  return {
    on_log: (_, metrics) => write(metrics),
    on_evaluate: ({ state }, evaluation) => write(evaluationMetrics(state.step, evaluation)),
  };
}

/** A name that sorts after those of earlier processes: readers take files in that order. */
function newFile(folder: string, seconds: number): string {
  mkdirSync(folder, { recursive: true });
  for (let second = Math.floor(seconds); ; second++) {
    const file = join(folder, `events.out.tfevents.${second}.sqlenv`);
    if (!existsSync(file)) return file;
  }
}

/** Numbers that are not finite are left out: TensorBoard draws gaps for them anyway. */
function renamed(scalars: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(scalars)
      .filter(([, value]) => Number.isFinite(value))
      .map(([name, value]) => [name.startsWith("eval_") ? `eval/${name.slice(5)}` : `train/${name}`, value]),
  );
}
