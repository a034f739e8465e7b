// `sqlenv serve --record`: trains the served model on the rollouts of agents that ask the server for tasks.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import type { DeviceChoice } from "../../../lm/devices/start.node.ts";
import { trainAgent } from "../../../rl/index.node.ts";
import { resolveConfig } from "../../../rl/index.ts";
import { loadTrainableModel } from "../../../rl/load.node.ts";
import { CONFIG_FILE, readConfigFile } from "../../../rl/run/config-file.node.ts";
import { RunFolder } from "../../../rl/run/folder.node.ts";
import { engineOptions } from "../../../rl/run/model.node.ts";
import { readTasks } from "../../../rl/run/task-file.node.ts";
import { Rollouts } from "../../openenv/index.ts";
import { writeReport } from "../../reports/index.node.ts";
import { interruptedCode } from "../terminal/interrupt.ts";
import { type Output, printable } from "../terminal/output.ts";
import { TrainingScreen } from "./train-screen.ts";

export interface RecordFlags {
  readonly model?: string;
  readonly record?: boolean;
  readonly tasks?: string;
  readonly run?: string;
  readonly config?: string;
  readonly device?: DeviceChoice;
  readonly modelThreads?: number;
}

const RECORD_OPTIONS = "Training agents (docs/agents.md):";
const DEFAULT_RUN = "runs/agent";

/** Adds the options. */
export function addRecordOptions(command: Command): Command {
  return command
    .optionsGroup(RECORD_OPTIONS)
    .option("--record", "with --model: train it on the rollouts of agents, which ask this server for tasks")
    .option("--tasks <file>", "tasks for the agents: JSON with a list, or with train and eval, or one task per line")
    .option("--run <folder>", `the training's folder; a training stopped in it continues (default: ${DEFAULT_RUN})`)
    .option("--config <file>", "YAML with settings of the training");
}

/** A training that waits for agents. */
export interface Recording {
  readonly rollouts: Rollouts;
  /** Trains to the end, or until aborted; writes the run's folder. */
  train(signal: AbortSignal, out: Output): Promise<void>;
  close(): Promise<void>;
}

/** Loads the model and opens the run's folder; undefined without --record. */
export async function openRecording(flags: RecordFlags): Promise<Recording | undefined> {
  const { record, model: name, tasks: file, run = DEFAULT_RUN, config: given, device, modelThreads } = flags;
  if (!record) {
    const stray = (["tasks", "run", "config"] as const).find((key) => flags[key] !== undefined);
    if (stray) throw new UsageError({ what: `--${stray} needs --record` });
    return undefined;
  }
  if (name === undefined || file === undefined)
    throw new UsageError({
      what: `--record needs --${name === undefined ? "model" : "tasks"}`,
      remedy: "sqlenv serve --model NAME --record --tasks FILE",
    });
  const tasks = readTasks(file);
  const kept = join(run, CONFIG_FILE);
  const settings = given !== undefined || existsSync(kept) ? readConfigFile(given ?? kept) : {};
  const config = resolveConfig({
    ...settings,
    model_name: name,
    output_dir: run,
    ...(device !== undefined && device !== "auto" && { device }),
    ...(modelThreads !== undefined && { threads: modelThreads }),
  });
  const store = new RunFolder(run);
  store.lock();
  const rollouts = new Rollouts();
  const model = await loadTrainableModel(name, engineOptions(config)).catch((error: unknown) => {
    store.unlock();
    throw error;
  });
  return {
    rollouts,
    close: async () => {
      await model.engine.close();
      store.unlock();
    },
    train: async (signal, out) => {
      const screen = new TrainingScreen(out);
      try {
        const result = await trainAgent({
          model,
          tasks,
          config,
          store,
          signal,
          place: rollouts.place,
          resume: store.newest() !== null,
          callbacks: [screen],
          onPhase: (phase) => screen.phase(phase),
          onProgress: (phase, done, total) => screen.progress(phase, done, total),
        });
        screen.stop();
        if (!result) {
          out.line(`stopped and saved in ${printable(run)}; the same command continues`);
          process.exitCode = interruptedCode(signal);
          return;
        }
        await model.engine.saveModel(join(run, "model"));
        const { headline } = await writeReport(run);
        out.line(headline ?? "");
        out.line(`${printable(run)} has the report and the model; sqlenv report ${printable(run)} --serve shows it`);
      } finally {
        screen.stop();
      }
    },
  };
}
