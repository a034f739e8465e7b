// What a rollout waits for: all the time of environments in this thread, and of others the time in which nothing is sampled.
import { afterEach, expect, test, vi } from "vitest";
import type { TextEnvironment } from "./environment.ts";
import { RolloutClock } from "./timing.ts";

afterEach(() => vi.restoreAllMocks());

const ACTION = "ANSWER: 1";

/** A clock that advances only by `pass`. */
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
  const sampled = clock.sampled(sample.promise);
  const env = clock.environment(environment(() => time.pass(2) as never));
  env.step(ACTION);
  sample.resolve({} as never);
  await sampled;
  env.step(ACTION);
  expect(clock).toMatchObject({ waited: 4, worked: 4 });
});

test("an environment on another thread is waited for only while nothing is sampled", async () => {
  const time = withTime();
  const clock = new RolloutClock();
  const [sample, first, second] = [deferred<never>(), deferred<never>(), deferred<never>()];
  const steps = [first, second].map(({ promise }) =>
    clock.environment(environment(() => promise as never)).step(ACTION),
  );
  time.pass(1); // both step, nothing is sampled
  const sampled = clock.sampled(sample.promise);
  time.pass(10); // sampling
  first.resolve({} as never);
  await steps[0];
  time.pass(10);
  sample.resolve({} as never);
  await sampled;
  time.pass(3); // only the second is awaited
  second.resolve({} as never);
  await steps[1];
  time.pass(20); // no environment is awaited
  expect(clock).toMatchObject({ waited: 4, worked: 0 });
});

test("samples that an abort left in flight can be waited for", async () => {
  const clock = new RolloutClock();
  const sample = deferred<number>();
  void clock.sampled(sample.promise);
  let isOver = false;
  const waiting = clock.settled().then(() => {
    isOver = true;
  });
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  sample.resolve(1);
  await waiting;
});
