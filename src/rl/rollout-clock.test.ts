// What a rollout waits for: everything an environment takes here, and of other threads only what nothing was sampled beside.
import { afterEach, expect, test, vi } from "vitest";
import type { TokenSampler } from "../gym/players/index.ts";
import type { TextEnvironment } from "./environment.ts";
import { RolloutClock } from "./rollout-clock.ts";

afterEach(() => vi.restoreAllMocks());

const ACTION = "ANSWER: 1";

/** A time that passes only when told to. */
function withTime(): { pass(seconds: number): void } {
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  return {
    pass(seconds) {
      now += 1000 * seconds;
    },
  };
}

function deferred<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

const environment = (step: () => never): TextEnvironment => ({ reset: step, step });

test("an environment in this thread is waited for while it works, whatever is sampled", async () => {
  const time = withTime();
  const clock = new RolloutClock();
  const sample = deferred<never>();
  const sampled = clock.sampler({ sample: () => sample.promise } as TokenSampler).sample({} as never);
  const env = clock.environment(environment(() => time.pass(2) as never));
  env.step(ACTION);
  sample.resolve({} as never);
  await sampled;
  env.step(ACTION);
  expect(clock).toMatchObject({ waited: 4, worked: 4 });
});

test("one on another thread only while nothing is sampled", async () => {
  const time = withTime();
  const clock = new RolloutClock();
  const [sample, first, second] = [deferred<never>(), deferred<never>(), deferred<never>()];
  const engine = clock.sampler({ sample: () => sample.promise } as TokenSampler);
  const steps = [first, second].map(({ promise }) =>
    clock.environment(environment(() => promise as never)).step(ACTION),
  );
  time.pass(1); // both step, nothing is sampled
  const sampled = engine.sample({} as never);
  time.pass(10); // sampling
  first.resolve({} as never);
  await steps[0];
  time.pass(10);
  sample.resolve({} as never);
  await sampled;
  time.pass(3); // only the second is awaited
  second.resolve({} as never);
  await steps[1];
  time.pass(20); // nobody waits for an environment
  expect(clock).toMatchObject({ waited: 4, worked: 0 });
});
