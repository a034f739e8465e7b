// A workspace for trainings: a temporary folder with the small data set and a tiny model after a short SFT.
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { exportDataSet } from "../../src/gym/data/index.node.ts";
import { evaluate } from "../../src/gym/evaluation/index.ts";
import { oraclePlayer, randomPlayer } from "../../src/gym/players/index.ts";
import { saveFreshModel } from "../../src/rl/sft/init-model.node.ts";
import { type Transcript, transcriptOf } from "../../src/rl/sft/transcripts.ts";
import { type Ran, sqlenv, sqlenvInside } from "./cli-process.ts";
import { copyOfShared } from "./shared-folder.ts";
import { smallDataSet } from "./small-data.ts";

const SIZES = { hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 1, head_dim: 16, intermediate_size: 32 };

/** The smallest training whose steps still have non-zero advantages. */
const SETTINGS = {
  "--preset": "none",
  "--difficulty-filter": "easy,medium,hard",
  "--per-device-train-batch-size": 6,
  "--gradient-accumulation-steps": 1,
  "--num-generations": 3,
  "--num-train-epochs": 10,
  "--max-steps": 4,
  "--learning-rate": 0.01,
  "--step-budget": 3,
  "--max-new-tokens": 12,
  "--max-completion-length": 36,
  "--max-context-tokens": 512,
  "--logging-steps": 1,
  "--eval-steps": 0,
  "--final-eval-episodes": 2,
  "--comparison-episodes": 2,
  "--save-steps": 1,
  "--threads": 1,
};

type Settings = Readonly<Record<string, string | number>>;

/** A condition on a run's folder to wait for. */
export type Moment = (run: string) => boolean;

/** Waits for the condition; false if the process ended first. */
export async function reached(child: ChildProcess, run: string, moment: Moment): Promise<boolean> {
  while (child.exitCode === null && child.signalCode === null) {
    if (moment(run)) return true;
    await setTimeout(1); // polls the folder
  }
  return false;
}

/** Sends the signal when the condition holds; false if the process ended first. */
export async function signalAt(
  child: ChildProcess,
  run: string,
  moment: Moment,
  signal: NodeJS.Signals,
): Promise<boolean> {
  return (await reached(child, run, moment)) && child.kill(signal);
}

export class TrainingPlace {
  /** A path in the temporary folder. */
  readonly scratch = mkdtempSync(join(tmpdir(), "sqlenv-train-"));
  readonly data = join(this.scratch, "small");
  readonly model = join(this.scratch, "model");

  /** A workspace with the data set and the model. */
  static async make(): Promise<TrainingPlace> {
    const place = new TrainingPlace();
    await copyOfShared("training-place", place.scratch, fill);
    return place;
  }

  /** The arguments of a training; settings replace the small ones. */
  args(run: string, settings: Settings = {}): string[] {
    const all = { ...SETTINGS, "--questions-path": this.data, "--model-name": this.model, ...settings };
    const flags = Object.entries(all).flatMap(([flag, value]) => [flag, String(value)]);
    return ["train", "--output-dir", this.path(run), ...flags];
  }

  /** Trains into a folder of that name, in a separate process. */
  train(run: string, settings: Settings = {}, ...more: string[]): Promise<Ran> {
    return sqlenv([...this.args(run, settings), ...more]);
  }

  /** The same in this process. */
  trainInside(run: string, settings: Settings = {}, ...more: string[]): Promise<Ran> {
    return sqlenvInside([...this.args(run, settings), ...more]);
  }

  path(...parts: readonly string[]): string {
    return join(this.scratch, ...parts);
  }

  text(...parts: readonly string[]): string {
    return readFileSync(this.path(...parts), "utf8");
  }

  /** The records of a log. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields by name
  lines<T = Record<string, any>>(...parts: readonly string[]): T[] {
    const lines = this.text(...parts).split("\n");
    return lines.slice(0, -1).map((line) => JSON.parse(line) as T);
  }

  /** Holds when a run has this file. */
  written(file: string): Moment {
    return (run) => existsSync(this.path(run, file));
  }

  /** Holds when a run's log has this step. */
  logged(log: string, step: number): Moment {
    return (run) => this.written(log)(run) && this.text(run, log).includes(`{"step":${step},`);
  }

  /** Every file of a run, hidden ones too. */
  files(run: string): string[] {
    return readdirSync(this.path(run), { recursive: true, encoding: "utf8" }).sort();
  }

  remove(): void {
    rmSync(this.scratch, { recursive: true, force: true });
  }
}

/** Makes the data set and the model. */
async function fill(folder: string): Promise<void> {
  const data = await smallDataSet();
  exportDataSet(data, join(folder, "small"));
  const transcripts: Transcript[] = [];
  for (const player of [oraclePlayer(), randomPlayer()])
    await evaluate(data, player, {
      ...{ split: "train", episodes: 10, step_budget: 3, seed: 1 },
      onEpisode: (record) => transcripts.push(transcriptOf(record)),
    });
  const [fresh, model, lines] = ["fresh", "model", "transcripts.jsonl"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await saveFreshModel(fresh, transcripts, { ...SIZES, vocab_size: 512, max_position_embeddings: 1024 });
  writeFileSync(lines, transcripts.map((transcript) => `${JSON.stringify(transcript)}\n`).join(""));
  const options = ["--steps", "40", "--batch-tokens", "1000", "--learning-rate", "0.02", "--threads", "1"];
  const tuned = await sqlenvInside(["sft", "--model", fresh, "--out", model, "--transcripts", lines, ...options]);
  if (tuned.code !== 0) throw new Error(tuned.stderr);
}
