// Measures where the time goes in GRPO steps of a real model that plays freely. Steps alternate between environments in
// the main thread and on threads, so that both see the same model.

import type { DataSet } from "../../gym/data/index.ts";
import type { EnvironmentOptions } from "../../gym/env/index.ts";
import type { EnvironmentSource, OpenedEnvironment } from "../../gym/evaluation/index.ts";
import { type EpisodeLine, type GRPOConfig, GRPOTrainer, type TrainableModel } from "../../rl/index.ts";
import { median } from "./median.ts";

/** Where environments run. */
export interface LiveSide {
  /** Number of threads; 0 means the main thread. */
  readonly threads: number;
  readonly environments: EnvironmentSource;
}

/** Durations within one step, in seconds. */
export interface LiveStep {
  readonly step: number;
  readonly sampling: number;
  /**
   * Time in which nothing was sampled because episodes waited for environments; in the main thread, all environment
   * time.
   */
  readonly environment: number;
  /** CPU time of environments, summed over threads. */
  readonly environment_work: number;
  /** Forward, backward and optimizer. */
  readonly training: number;
  /** Rewards, advantages, records, metrics. */
  readonly rest: number;
  readonly episodes: number;
  readonly turns: number;
  readonly tokens: number;
  /** Number of queries stopped by the instruction limit; `timeouts` counts those stopped by the time limit. */
  readonly stopped: number;
  readonly timeouts: number;
  /** Number of episodes without a score. */
  readonly unscorable: number;
}

const PARTS = ["step", "sampling", "environment", "environment_work", "training", "rest"] as const;
type Part = (typeof PARTS)[number];

/** Results of one side. */
export interface LiveResult {
  readonly environment_threads: number;
  readonly median_s: Readonly<Record<Part, number>>;
  /** Share of all seconds spent waiting for environments. */
  readonly environment_share: number;
  /** The longest step divided by the median step; `longest_environment_s` is its time spent waiting for environments. */
  readonly longest_over_median: number;
  readonly longest_environment_s: number;
  readonly steps: readonly LiveStep[];
}

/** Warmup steps per side, in which kernels are compiled and databases opened. */
export const WARM_STEPS = 2;

/** Trains with `steps` measured steps per side, alternating between sides. */
export async function benchLiveGRPO(
  { engine, tokenizer, turns }: TrainableModel,
  data: DataSet,
  config: GRPOConfig,
  sides: readonly LiveSide[],
  onStep: (side: LiveSide, step: LiveStep) => void = () => {},
): Promise<LiveResult[]> {
  const measured = sides.map((): LiveStep[] => []);
  const turnsTaken = new SidesInTurn(sides);
  // This engine cannot be checkpointed, because a benchmark saves nothing.
  const model = {
    tokenizer,
    turns,
    engine: {
      sample: engine.sample.bind(engine),
      forwardBackward: engine.forwardBackward.bind(engine),
      optimStep: engine.optimStep.bind(engine),
      logprobs: engine.logprobs.bind(engine),
      close: engine.close.bind(engine),
    },
  };
  let start = performance.now();
  const trainer = new GRPOTrainer({
    model,
    data,
    config,
    environments: turnsTaken,
    callbacks: [
      {
        on_train_begin() {
          start = performance.now();
        },
        on_step_end(_, { timing, episodes }) {
          const step = (performance.now() - start) / 1000;
          const { sampling, environment, environment_work = environment, training } = timing;
          const rest = step - sampling - environment - training;
          const seconds = { step, sampling, environment, environment_work, training, rest };
          const taken: LiveStep = { ...seconds, ...countsOf(episodes) };
          measured[turnsTaken.side]!.push(taken);
          onStep(sides[turnsTaken.side]!, taken);
          turnsTaken.next();
          start = performance.now();
        },
      },
    ],
  });
  await trainer.train();
  return sides.map(({ threads }, i) => resultOf(threads, measured[i]!.slice(WARM_STEPS)));
}

/** Total optimizer steps for `steps` measured steps per side. */
export function liveSteps(steps: number, sides: number): number {
  return sides * (steps + WARM_STEPS);
}

/** Alternates between the sides. */
class SidesInTurn implements EnvironmentSource {
  readonly #sides: readonly LiveSide[];
  side = 0;

  constructor(sides: readonly LiveSide[]) {
    this.#sides = sides;
  }

  next(): void {
    this.side = (this.side + 1) % this.#sides.length;
  }

  open(options: EnvironmentOptions): OpenedEnvironment {
    return this.#sides[this.side]!.environments.open(options);
  }

  get workSeconds(): number {
    return this.#sides.reduce((sum, { environments }) => sum + (environments.workSeconds ?? 0), 0);
  }
}

function countsOf(episodes: readonly EpisodeLine[]) {
  const steps = episodes.flatMap((episode) => episode.steps);
  const failed = (error_class: string) => steps.filter(({ observation }) => observation.error_class === error_class);
  return {
    episodes: episodes.length,
    turns: steps.length,
    tokens: episodes.reduce((sum, { completion_tokens }) => sum + completion_tokens, 0),
    stopped: failed("too_long").length,
    timeouts: failed("timeout").length,
    unscorable: episodes.filter(({ correctness }) => correctness === null).length,
  };
}

export function resultOf(environment_threads: number, steps: readonly LiveStep[]): LiveResult {
  const sum = (part: Part) => steps.reduce((total, step) => total + step[part], 0);
  const longest = steps.reduce((best, step) => (step.step > best.step ? step : best));
  const median_s = Object.fromEntries(PARTS.map((part) => [part, median(steps.map((step) => step[part]))]));
  return {
    environment_threads,
    median_s: median_s as Record<Part, number>,
    environment_share: sum("environment") / sum("step"),
    longest_over_median: longest.step / median_s.step!,
    longest_environment_s: longest.environment,
    steps,
  };
}
