import { expect, test } from "vitest";
import { batchAt, epochOrder, repeated } from "./task-order.ts";

const order = { chunk: 2, shuffle: false, seed: 1 };

test("is TRL's: chunks, the last incomplete one left out, each question num_generations times in a row", () => {
  // TRL 1.16's RepeatSampler with 5 questions, mini_repeat_count 2, batch_size 2, repeat_count 2, without shuffling.
  const micro = epochOrder(5, 0, order).flatMap((chunk) => repeated([repeated(chunk, 2)], 2).flat());
  expect(micro.join(" ")).toBe("0 0 1 1 0 0 1 1 2 2 3 3 2 2 3 3");
});

test("is another permutation in every epoch, and the same for the same seed", () => {
  const shuffled = { chunk: 3, shuffle: true, seed: 7 };
  const epochs = [0, 1, 2].map((epoch) => epochOrder(12, epoch, shuffled).flat());
  for (const epoch of epochs) expect(epoch.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i));
  expect(new Set(epochs.map(String)).size).toBe(3);
  expect(epochOrder(12, 1, shuffled).flat()).toEqual(epochs[1]);
  expect(epochOrder(12, 1, { ...shuffled, seed: 8 }).flat()).not.toEqual(epochs[1]);
});

test("a batch is found by its number", () => {
  const shuffled = { chunk: 5, shuffle: true, seed: 3 };
  const all = [0, 1, 2].flatMap((epoch) => epochOrder(12, epoch, shuffled));
  expect(all.map((_, number) => batchAt(number, 12, shuffled))).toEqual(all);
});
