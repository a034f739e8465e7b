// Damaged archives: each is unpacked or refused, and nothing is written outside the folder.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { cases } from "../../../../test/helpers/cases.ts";
import { type Read, readDamaged } from "../../../../test/helpers/damaged-files.ts";
import { makeTar, makeZip } from "../../../../test/helpers/data-files.ts";
import { UnpackBudget } from "./archive.ts";
import { unpack } from "./unpack.node.ts";

const MAX_BYTES = 100_000;
// Made with xz: a tar archive of two files.
const XZ =
  "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4A//AF9dADCLywMN5+txTm45dnXP0k64TB8fFHHZx7ixKZ+mGx5jY2EU9d2Gamj86EjZSx7lUX5G6QIKRHnRy1BplRXhCZgYtB4OYyzkk1mNWrva1upURWusMOgDWLwccVVBgO0AAACHDqtmY16OxwABe4AgAAAAczZks7HEZ/sCAAAAAARZWg==";

const FILES = [{ name: "a/x.txt", data: "hello\n".repeat(50) }, { name: "b", data: "z" }, { name: "c/d/empty" }];
const PAX = [
  { name: "PaxHeader", type: "x", data: "20 path=a/long/name\n" },
  { name: "short", data: "s" },
];

/** Unpacks into a folder inside `folder`, and fails if anything appears beside it. */
async function readArchive(bytes: Uint8Array, folder: string): Promise<void> {
  mkdirSync(folder);
  try {
    writeFileSync(join(folder, "archive"), bytes);
    const budget = new UnpackBudget(MAX_BYTES);
    try {
      await unpack(join(folder, "archive"), join(folder, "out"), { budget });
    } finally {
      expect(budget.bytes).toBeLessThanOrEqual(MAX_BYTES);
      expect(readdirSync(folder).filter((name) => name !== "archive" && name !== "out")).toEqual([]);
      expect(existsSync(join(folder, "..", "evil"))).toBe(false);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Recomputes the header checksums of a tar archive. */
function withChecksums(bytes: Uint8Array): Uint8Array {
  const fixed = Buffer.from(bytes);
  for (let at = 0; at + 512 <= fixed.length; at += 512) {
    const header = fixed.subarray(at, at + 512);
    if (header.toString("latin1", 257, 262) !== "ustar") continue;
    header.fill(" ", 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  }
  return fixed;
}

test.each<readonly [string, Uint8Array, Read]>([
  ["zip", makeZip(FILES), readArchive],
  ["zip64", makeZip(FILES.map((file) => ({ ...file, zip64: true }))), readArchive],
  ["tar", makeTar([...FILES, ...PAX]), readArchive],
  // With valid checksums, damage gets past the header check.
  [
    "tar with right checksums",
    makeTar([...FILES, ...PAX]),
    (bytes, folder) => readArchive(withChecksums(bytes), folder),
  ],
  ["tar.gz", gzipSync(makeTar(FILES)), readArchive],
  ["tar.xz", Buffer.from(XZ, "base64"), readArchive],
])("%s: every damaged archive is read or refused", (name, bytes, read) =>
  readDamaged(name, bytes, read, cases(60, 1_000)),
);
