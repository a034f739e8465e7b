import { expect, test } from "vitest";
import { isSkipped, outcomeOf, type TaskOutcomes, tasksFrom } from "./task-queue.ts";

const tasks = ["a", "b", "c", "d"].map((id) => ({ id, text: id }));

function queued(
  position: number,
  count: number,
  more: { outcomes?: TaskOutcomes; skip_solved?: number; shuffle?: boolean } = {},
) {
  const queue = tasksFrom(position, tasks, {
    shuffle: false,
    seed: 1,
    outcomes: {},
    skip_solved: 0,
    ...more,
  });
  return Array.from({ length: count }, () => queue.next().value);
}
const ids = (queued: readonly { readonly task: { readonly id: string } }[]) =>
  queued.map(({ task }) => task.id).join("");

test("epochs follow one another without a gap, and a position resumes the queue", () => {
  expect(ids(queued(0, 10))).toBe("abcdabcdab");
  expect(ids(queued(3, 3))).toBe("dab");
  expect(queued(3, 3).map(({ epoch, next }) => [epoch, next])).toEqual([
    [0, 4],
    [1, 5],
    [1, 6],
  ]);
  const shuffled = queued(0, 12, { shuffle: true });
  expect(ids(shuffled.slice(5))).toBe(ids(queued(5, 7, { shuffle: true })));
  for (const epoch of [0, 1, 2])
    expect([...ids(shuffled.slice(4 * epoch, 4 * epoch + 4))].sort().join("")).toBe("abcd");
  expect(new Set([0, 4, 8].map((at) => ids(shuffled.slice(at, at + 4)))).size).toBeGreaterThan(1);
});

test("solved tasks are left out for skip_solved epochs, failed ones for half as many", () => {
  const outcomes: TaskOutcomes = { a: [0, 8, 8], b: [0, 0, 8], c: [0, 5, 8] };
  const skipping = { outcomes, skip_solved: 2 };
  expect(ids(queued(0, 4, skipping))).toBe("abcd"); // nothing in the same epoch
  expect(ids(queued(4, 9, skipping))).toBe("cd" + "bcd" + "abcd");
  expect(queued(4, 1, skipping)[0]!.next).toBe(7); // skipped ones count
  expect(isSkipped(outcomes.b, 1, 1)).toBe(false);
  expect(isSkipped(undefined, 1, 9)).toBe(false);
});

test("a queue whose tasks are all solved ends skipping at some point", () => {
  const outcomes = Object.fromEntries(tasks.map(({ id }) => [id, [0, 2, 2] as const]));
  expect(queued(4, 1, { outcomes, skip_solved: 5 })[0]).toMatchObject({ epoch: 6, next: 25 });
});

test("an outcome counts what was scored; nothing scored is no outcome", () => {
  const group = (...outcomes: (0 | 1 | null)[]) => outcomes.map((correctness) => ({ correctness }));
  expect(outcomeOf(group(1, 0, null, 1), 3)).toEqual([3, 2, 3]);
  expect(outcomeOf(group(null, null), 3)).toBeNull();
});
