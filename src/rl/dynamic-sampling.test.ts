// Filling a batch: the result depends on the queue, not on the order in which groups end.
import { describe, expect, test } from "vitest";
import { random } from "../random.ts";
import { differInCorrectness, fillBatch, type GroupOptions } from "./dynamic-sampling.ts";

interface Running extends GroupOptions {
  readonly group: number;
  end(): void;
}

/** Plays groups whose spread is known; `end` ends them. */
class Table {
  readonly running = new Map<number, Running>();
  readonly started: number[] = [];
  most = 0;
  readonly #spread: string;

  /** @param spread one character per group, + with spread */
  constructor(spread: string) {
    this.#spread = spread;
  }

  play(group: number, options: GroupOptions): Promise<readonly string[]> {
    this.started.push(group);
    return new Promise((resolve, reject) => {
      const done = () => this.running.delete(group);
      options.signal.addEventListener("abort", () => done() && reject(options.signal.reason));
      const end = () => {
        done();
        options.onEpisode();
        options.onEpisode();
        resolve([this.#spread[group]!, this.#spread[group]!]);
      };
      this.running.set(group, { group, ...options, end });
      this.most = Math.max(this.most, this.running.size);
    });
  }

  /** Ends groups in an order drawn from the seed until none is left. */
  async endAll(seed: number): Promise<void> {
    const dice = random("endings", seed);
    for (; this.running.size > 0; await settled()) dice.pick([...this.running.values()]).end();
  }

  fill(wanted: number, limit: number, more: { expected?: number; signal?: AbortSignal } = {}) {
    return fillBatch<string>({
      ...{ wanted, limit, size: 2, expected: 0.5, ...more },
      play: (group, options) => this.play(group, options),
      hasSpread: ([first]) => first === "+",
    });
  }
}

/** Lets everything that can happen without waiting happen. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("the batch", () => {
  test.each([
    ["the first groups with spread, up to the last that is needed", "-+-++-+-", 3, 8, 5],
    ["all are good: as many as were wanted", "+++++", 3, 5, 3],
    ["the limit: what there is", "-+------", 3, 6, 6],
    ["none at all", "------", 2, 4, 4],
  ])("%s", async (_, spread, wanted, limit, asked) => {
    for (const expected of [0, 0.3, 1])
      for (let seed = 0; seed < 8; seed++) {
        const table = new Table(spread);
        const filling = table.fill(wanted, limit, { expected });
        await table.endAll(seed);
        const { groups, stopped } = await filling;
        expect(stopped).toBe(table.started.length - asked);
        expect(groups.map(({ episodes }) => episodes[0]).join("")).toBe(spread.slice(0, asked));
        expect(groups.map(({ hasSpread }) => (hasSpread ? "+" : "-")).join("")).toBe(spread.slice(0, asked));
        expect(table.most).toBeLessThanOrEqual(wanted); // never more episodes at once than a batch has
        expect(Math.max(...table.started)).toBeLessThan(limit);
      }
  });

  test("a group starts as soon as there is room for it, before others have ended", async () => {
    const table = new Table("++++");
    const filling = table.fill(2, 4, { expected: 0.5 });
    expect(table.started).toEqual([0, 1]);
    const { onEpisode } = table.running.get(0)!;
    onEpisode();
    expect(table.started).toEqual([0, 1]);
    table.running.get(1)!.end(); // found one; two of four places and one more are free, and 1 + 0.5 is less than 2
    expect(table.started).toEqual([0, 1, 2]);
    await table.endAll(0);
    expect((await filling).groups).toHaveLength(2);
  });

  test("if all groups are expected to have spread, none is started early", async () => {
    const table = new Table("++++");
    const filling = table.fill(2, 4, { expected: 1 });
    await table.endAll(1);
    expect((await filling).groups).toHaveLength(2);
    expect(table.started).toEqual([0, 1]);
  });

  test("groups that were started after its end are stopped", async () => {
    const table = new Table("++++");
    const filling = table.fill(2, 4, { expected: 0.1 });
    table.running.get(1)!.end();
    expect([...table.running.keys()]).toEqual([0, 2]);
    table.running.get(0)!.end();
    expect((await filling).groups).toHaveLength(2);
    expect(table.running.size).toBe(0);
  });
});

test("a group that fails, and an abort, stop the others and are thrown when all have ended", async () => {
  const failing = fillBatch({
    ...{ wanted: 2, limit: 4, size: 1, expected: 1, hasSpread: () => true },
    play: (group, { signal }) =>
      group === 1
        ? Promise.reject(new Error("the engine ended"))
        : new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  });
  await expect(failing).rejects.toThrow("the engine ended");

  const abort = new AbortController();
  const table = new Table("++++");
  const filling = table.fill(2, 4, { signal: abort.signal });
  abort.abort("asked to stop");
  await expect(filling).rejects.toBe("asked to stop");
  expect(table.running.size).toBe(0);
});

test("spread means right and wrong among the scored episodes", () => {
  const group = (...outcomes: (0 | 1 | null)[]) => outcomes.map((correctness) => ({ correctness }));
  expect(differInCorrectness(group(0, 1, null))).toBe(true);
  expect(differInCorrectness(group(1, 1, null))).toBe(false);
  expect(differInCorrectness(group(0, 0, 0))).toBe(false);
  expect(differInCorrectness(group(null, null))).toBe(false);
});
