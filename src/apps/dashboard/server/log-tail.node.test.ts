import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type LogLine, LogTail } from "./log-tail.node.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-tail-"));
afterAll(() => rmSync(scratch, { recursive: true }));

/** What is new, with the tail's verdict on whether it is the same file. */
async function news(tail: LogTail): Promise<{ same: boolean; lines: LogLine[] }> {
  const lines: LogLine[] = [];
  const same = await tail.read((more) => lines.push(...more));
  return { same, lines };
}
const texts = ({ lines }: { lines: readonly LogLine[] }) => lines.map(({ text }) => text);

test("reads a growing log, complete lines only, each with its byte range", async () => {
  const file = join(scratch, "grows");
  const tail = new LogTail(file);
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

test("lines longer than a chunk, and characters split between chunks, stay intact", async () => {
  const file = join(scratch, "long");
  const lines = ["ä".repeat(1_500_001), "x", `${"東".repeat(700_000)}!`];
  writeFileSync(file, `${lines.join("\n")}\n`);
  expect(texts(await news(new LogTail(file)))).toEqual(lines);
});

test("detects a truncated log, even if it has grown past that point since", async () => {
  const file = join(scratch, "cut");
  writeFileSync(file, "one\ntwo\nthree\n");
  const tail = new LogTail(file);
  await news(tail);
  truncateSync(file, 4);
  expect((await news(tail)).same).toBe(false);

  const other = new LogTail(file);
  writeFileSync(file, "one\ntwo\n");
  await news(other);
  truncateSync(file, 4);
  appendFileSync(file, "TWO\nand more\n");
  expect((await news(other)).same).toBe(false);
  rmSync(file);
  expect((await news(other)).same).toBe(false);
});
