// Where the seconds go: what a rollout waits for, and the parts of an optimizer step.
import type { Environment, TextEnvironment } from "./environment.ts";
import type { Episode, TimingLine } from "./run/records.ts";

/**
 * Times one rollout. An environment in the calling thread blocks everything while it works; one on another thread costs
 * time only while no episode is being sampled.
 */
export class RolloutClock {
  /** Seconds in which nothing was or could be sampled because of environments. */
  waited = 0;
  /** Seconds that environments worked in this thread. */
  worked = 0;
  readonly #samples = new Set<Promise<unknown>>();
  #stepping = 0;
  /** When the current wait began, in which environments work and nothing is sampled; undefined outside of a wait. */
  #since: number | undefined;
  readonly #started = performance.now();
  readonly #environment: Pick<Environment, "workSeconds">;
  readonly #workedBefore: number;

  constructor(environment: Pick<Environment, "workSeconds"> = {}) {
    this.#environment = environment;
    this.#workedBefore = environment.workSeconds ?? 0;
  }

  /** Seconds since the clock was made. */
  get seconds(): number {
    return (performance.now() - this.#started) / 1000;
  }

  /** Seconds that environments worked on other threads, summed over the threads. */
  get elsewhere(): number {
    return (this.#environment.workSeconds ?? 0) - this.#workedBefore;
  }

  /** Counts a sample until it settles. */
  sampled<T>(sample: Promise<T>): Promise<T> {
    const counted = sample.finally(() => {
      this.#samples.delete(counted);
      this.#update();
    });
    this.#samples.add(counted);
    this.#update();
    return counted;
  }

  /** Waits for samples that an abort left in flight. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#samples);
  }

  /** The environment, with its calls timed. */
  environment(env: TextEnvironment): TextEnvironment {
    return {
      ...(env.acquire && { acquire: () => this.#timed(() => env.acquire!()) }),
      reset: (task) => this.#timed(() => env.reset(task)),
      step: (reply) => this.#timed(() => env.step(reply)),
      ...(env.record && { record: (ending) => env.record!(ending) }),
      close: () => env.close?.(),
    };
  }

  #timed<T>(work: () => T | Promise<T>): T | Promise<T> {
    const start = performance.now();
    let result: T | Promise<T> | undefined;
    try {
      result = work();
    } finally {
      const seconds = (performance.now() - start) / 1000;
      if (this.#since === undefined) this.waited += seconds; // a wait in progress counts this time already
      if (!(result instanceof Promise)) this.worked += seconds;
    }
    if (!(result instanceof Promise)) return result;
    this.#stepping++;
    this.#update();
    return result.finally(() => {
      this.#stepping--;
      this.#update();
    });
  }

  #update(): void {
    const isWaiting = this.#samples.size === 0 && this.#stepping > 0;
    if (isWaiting) this.#since ??= performance.now();
    else if (this.#since !== undefined) {
      this.waited += (performance.now() - this.#since) / 1000;
      this.#since = undefined;
    }
  }
}

type Stage = "sampling" | "environment" | "environment_work" | "rewards" | "training";

/** Times the parts of optimizer steps, for timings.jsonl. */
export class StepClock {
  #seconds: Record<Stage, number> = { sampling: 0, environment: 0, environment_work: 0, rewards: 0, training: 0 };
  #tokens = 0;
  #stopped = 0;

  /** Adds the seconds that some work takes. */
  async time<T>(stage: "rewards" | "training", work: () => Promise<T>): Promise<T> {
    const started = performance.now();
    const result = await work();
    this.#seconds[stage] += (performance.now() - started) / 1000;
    return result;
  }

  /** Adds a rollout that has just ended. @param stopped groups that were started and not needed */
  rollout(
    { waited, worked, seconds, elsewhere }: RolloutClock,
    { episodes, stopped }: { readonly episodes: readonly Episode[]; readonly stopped: number },
  ): void {
    this.#seconds.environment += waited;
    this.#seconds.environment_work += worked + elsewhere;
    this.#seconds.sampling += seconds - waited;
    this.#stopped += stopped;
    for (const { segments } of episodes) for (const { tokens } of segments) this.#tokens += tokens.length;
  }

  /** Returns the step's line of timings.jsonl and resets the clock. @param elapsed seconds of the steps before */
  take(step: number, elapsed: number, { dynamic_sampling }: { readonly dynamic_sampling: number }): TimingLine {
    const { sampling, environment, environment_work, rewards, training } = this.#seconds;
    const step_time = sampling + environment + rewards + training;
    const line = {
      step,
      step_time,
      sampling,
      environment,
      environment_work,
      rewards,
      training,
      elapsed: elapsed + step_time,
      tokens_per_s: this.#tokens / step_time,
      ...(dynamic_sampling > 0 && { stopped_groups: this.#stopped }),
    };
    this.#seconds = { sampling: 0, environment: 0, environment_work: 0, rewards: 0, training: 0 };
    [this.#tokens, this.#stopped] = [0, 0];
    return line;
  }
}
