// What a rollout waits for. An environment in the calling thread stops everything while it works; one on another thread
// costs time only while no episode is being sampled.
import type { TokenSampler } from "../gym/players/index.ts";
import type { TextEnvironment } from "./environment.ts";

/** Measures one rollout. */
export class RolloutClock {
  /** Seconds in which nothing was sampled, or could be, because of environments. */
  waited = 0;
  /** Seconds that environments worked in this thread. */
  worked = 0;
  #sampling = 0;
  #stepping = 0;
  /** Since when nothing is sampled while environments are awaited. */
  #since: number | undefined;

  /** The engine, with its requests counted. */
  sampler(engine: TokenSampler): TokenSampler {
    return {
      sample: async (request) => {
        this.#count(1, 0);
        try {
          return await engine.sample(request);
        } finally {
          this.#count(-1, 0);
        }
      },
    };
  }

  /** The environment, with its calls counted. */
  environment(env: TextEnvironment): TextEnvironment {
    return {
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
      if (this.#since === undefined) this.waited += seconds; // else it is counted already
      if (!(result instanceof Promise)) this.worked += seconds;
    }
    if (!(result instanceof Promise)) return result;
    this.#count(0, 1);
    return result.finally(() => this.#count(0, -1));
  }

  #count(sampling: number, stepping: number): void {
    this.#sampling += sampling;
    this.#stepping += stepping;
    const isWaiting = this.#sampling === 0 && this.#stepping > 0;
    if (isWaiting) this.#since ??= performance.now();
    else if (this.#since !== undefined) {
      this.waited += (performance.now() - this.#since) / 1000;
      this.#since = undefined;
    }
  }
}
