// Where an optimizer step's seconds went, for timings.jsonl.
import type { RolloutClock } from "./rollout-clock.ts";
import type { Episode, TimingLine } from "./run/records.ts";

type Seconds = "sampling" | "environment" | "environment_work" | "rewards" | "training";

export class StepClock {
  #seconds: Record<Seconds, number> = { sampling: 0, environment: 0, environment_work: 0, rewards: 0, training: 0 };
  #tokens = 0;
  #stopped = 0;

  /** Adds the seconds that some work takes. */
  async time<T>(stage: "rewards" | "training", work: () => Promise<T>): Promise<T> {
    const started = performance.now();
    const result = await work();
    this.#seconds[stage] += (performance.now() - started) / 1000;
    return result;
  }

  /**
   * Adds a rollout that took `seconds`, of which environments of other threads worked `elsewhere` in all.
   * @param stopped groups that were started and not needed
   */
  rollout(
    { waited, worked }: RolloutClock,
    { episodes, stopped }: { readonly episodes: readonly Episode[]; readonly stopped: number },
    { seconds, elsewhere }: { readonly seconds: number; readonly elsewhere: number },
  ): void {
    this.#seconds.environment += waited;
    this.#seconds.environment_work += worked + elsewhere;
    this.#seconds.sampling += seconds - waited;
    this.#stopped += stopped;
    for (const { segments } of episodes) for (const { tokens } of segments) this.#tokens += tokens.length;
  }

  /** The step's line, and zero for the next. @param elapsed seconds of the steps before */
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
