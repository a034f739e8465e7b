// The number of environment threads for a model's device, and starting them.

import type { DataSet } from "../../gym/data/index.ts";
import type { EnvironmentOptions } from "../../gym/env/index.ts";
import { EnvironmentThreads } from "../../gym/evaluation/environments/threads.node.ts";
import { type EnvironmentSource, localEnvironments, type OpenedEnvironment } from "../../gym/evaluation/index.ts";
import { usableCpus } from "../../io/cpus.node.ts";

/** More threads would be idle: one serves about a hundred episodes as fast as a GPU samples them. */
const MAX_THREADS = 8;

/** Beside a GPU, the main thread and the engine's thread keep a core each busy. */
const BUSY_THREADS = 2;

/**
 * The requested number of threads. The default is 0 on the CPU, where the model's arithmetic uses all cores and takes
 * far longer than any environment, and one per remaining core with a GPU.
 */
export function environmentThreadCount(asked: number | null, device: string, cpus = usableCpus()): number {
  if (asked !== null) return asked;
  return device === "cpu" ? 0 : Math.min(MAX_THREADS, Math.max(0, cpus - BUSY_THREADS));
}

export interface DeviceEnvironmentsOptions {
  /** @default as `environmentThreadCount` says */
  readonly threads?: number | null;
  /** Ids of questions that will be asked: their databases are opened early. */
  readonly ahead?: readonly string[];
  /** Called when a thread is lost. */
  readonly onNote?: (text: string) => void;
}

/** Environments in the main thread until the model's device is known, then on as many threads as suit it. */
export class DeviceEnvironments implements EnvironmentSource {
  readonly #data: DataSet;
  readonly #options: DeviceEnvironmentsOptions;
  readonly #local: EnvironmentSource;
  #threads: EnvironmentThreads | undefined;
  #isStarted = false;

  constructor(data: DataSet, options: DeviceEnvironmentsOptions = {}) {
    this.#data = data;
    this.#options = options;
    this.#local = localEnvironments(data);
  }

  /** Starts the threads, once; environments opened before remain in the main thread. */
  async start(device: string): Promise<void> {
    const { threads: asked = null, ahead = [], onNote } = this.#options;
    const threads = environmentThreadCount(asked, device);
    if (this.#isStarted || threads === 0 || !this.#data.file) return;
    this.#isStarted = true;
    const onLost = (reason: string, episodes: number) =>
      onNote?.(`an environment thread was lost (${reason}) with ${episodes} episodes; another begins`);
    this.#threads = await EnvironmentThreads.start(this.#data, { threads, ahead, onLost });
  }

  open(options: EnvironmentOptions): OpenedEnvironment {
    return (this.#threads ?? this.#local).open(options);
  }

  get workSeconds(): number {
    return this.#threads?.workSeconds ?? 0;
  }

  async close(): Promise<void> {
    await this.#threads?.close();
  }
}
