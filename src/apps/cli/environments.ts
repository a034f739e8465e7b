// How many threads environments get, and starting them.

import type { DataSet } from "../../gym/data/index.ts";
import type { EnvironmentOptions } from "../../gym/env/index.ts";
import { EnvironmentThreads } from "../../gym/evaluation/environments/threads.node.ts";
import { type EnvironmentSource, localEnvironments, type OpenedEnvironment } from "../../gym/evaluation/index.ts";
import { usableCpus } from "../../io/cpus.node.ts";
import { type Output, styled } from "./terminal/output.ts";

/** More threads find nothing to do: one serves about a hundred episodes as fast as a GPU samples them. */
const MAX_THREADS = 8;

/** Beside a GPU, the main thread and the engine's thread keep a core each busy. */
const BUSY_THREADS = 2;

/**
 * As many as are asked for. By default none beside the CPU's arithmetic, which has all cores and takes far longer than any
 * environment, and beside a GPU one for each core that is left.
 */
export function environmentThreadCount(asked: number | null, device: string, cpus = usableCpus()): number {
  if (asked !== null) return asked;
  return device === "cpu" ? 0 : Math.min(MAX_THREADS, Math.max(0, cpus - BUSY_THREADS));
}

/** A command's environments: in the main thread until it is known where the model runs, then on threads. */
export class CommandEnvironments implements EnvironmentSource {
  readonly #data: DataSet;
  readonly #asked: number | null;
  readonly #out: Output;
  readonly #ahead: readonly string[];
  readonly #local: EnvironmentSource;
  #threads: EnvironmentThreads | undefined;
  #isStarted = false;

  /** `ahead` are questions that will be asked. */
  constructor(data: DataSet, asked: number | null, out: Output, ahead: readonly string[] = []) {
    this.#data = data;
    this.#ahead = ahead;
    this.#asked = asked;
    this.#out = out;
    this.#local = localEnvironments(data);
  }

  /** Starts the threads, once; environments opened before stay where they are. */
  async start(device: string): Promise<void> {
    const threads = environmentThreadCount(this.#asked, device);
    if (this.#isStarted || threads === 0 || !this.#data.file) return;
    this.#isStarted = true;
    const onLost = (reason: string, episodes: number) =>
      this.#out.line(
        styled("yellow", `an environment thread was lost (${reason}) with ${episodes} episodes; another begins`),
      );
    this.#threads = await EnvironmentThreads.start(this.#data, { threads, ahead: this.#ahead, onLost });
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

/** The environments of a player: on threads where it is a model on a GPU. */
export async function environmentsFor(
  { device = "cpu" }: { readonly device?: string },
  data: DataSet,
  out: Output,
): Promise<CommandEnvironments> {
  const environments = new CommandEnvironments(data, null, out);
  await environments.start(device);
  return environments;
}
