import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Tail, type TailLine } from "./log-tail.node.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-tail-"));
afterAll(() => rmSync(scratch, { recursive: true }));

/** What is new, with the tail's verdict on whether it is the same file. */
async function news(tail: Tail): Promise<{ same: boolean; lines: TailLine[] }> {
  const lines: TailLine[] = [];
  const same = await tail.read((more) => lines.push(...more));
  return { same, lines };
}
const texts = ({ lines }: { lines: readonly TailLine[] }) => lines.map(({ text }) => text);

test("a log is read as it grows, whole lines only, each with its place", async () => {
  const file = join(scratch, "grows");
  const tail = new Tail(file);
  expect(await news(tail)).toEqual({ same: true, lines: [] }); // not there yet
  writeFileSync(file, "one\ntwö\nthr");
  expect((await news(tail)).lines).toEqual([
    { text: "one", offset: 0, length: 3 },
    { text: "twö", offset: 4, length: 4 },
  ]);
  expect(tail.share).toBeCloseTo(9 / 12);
  appendFileSync(file, "ee\n");
  expect((await news(tail)).lines).toEqual([{ text: "three", offset: 9, length: 5 }]);
  expect(await news(tail)).toEqual({ same: true, lines: [] });
  expect(tail.share).toBe(1);
});

test("lines longer than a chunk, and characters that two chunks share, stay whole", async () => {
  const file = join(scratch, "long");
  const lines = ["ä".repeat(1_500_001), "x", `${"東".repeat(700_000)}!`];
  writeFileSync(file, `${lines.join("\n")}\n`);
  expect(texts(await news(new Tail(file)))).toEqual(lines);
});

test("a log that was cut back is noticed, also when it has grown past that point since", async () => {
  const file = join(scratch, "cut");
  writeFileSync(file, "one\ntwo\nthree\n");
  const tail = new Tail(file);
  await news(tail);
  truncateSync(file, 4);
  expect((await news(tail)).same).toBe(false);

  const other = new Tail(file);
  writeFileSync(file, "one\ntwo\n");
  await news(other);
  truncateSync(file, 4);
  appendFileSync(file, "TWO\nand more\n");
  expect((await news(other)).same).toBe(false);
  rmSync(file);
  expect((await news(other)).same).toBe(false);
});
