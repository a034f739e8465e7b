// Valid files with bytes changed, cut, repeated or inserted: each must be read or refused.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { SqlEnvError } from "../../src/errors.ts";
import { type Random, random } from "../../src/random.ts";

/** Reads bytes; it may use this folder, but must leave it empty. */
export type Read = (bytes: Uint8Array<ArrayBuffer>, folder: string) => Promise<unknown>;

// Boundary values.
const EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x2e, 0x2f, 0x5c];

/** A copy with one to six faults. */
function mutate(bytes: Uint8Array, source: Random): Uint8Array<ArrayBuffer> {
  let result = Uint8Array.from(bytes);
  for (let faults = source.int(1, 6); faults > 0 && result.length > 0; faults--) {
    const at = source.int(0, result.length - 1);
    const length = source.int(1, Math.min(64, result.length - at));
    const kind = source.int(0, 5);
    if (kind === 0) result[at] = source.int(0, 255);
    else if (kind === 1) result[at] = EDGES[source.int(0, EDGES.length - 1)]!;
    else if (kind === 2) result.fill(source.int(0, 1) * 255, at, at + source.int(1, Math.min(8, result.length - at)));
    else if (kind === 3) result = result.slice(0, at);
    else if (kind === 4) result = Uint8Array.from([...result.subarray(0, at), ...result.subarray(at + length)]);
    else {
      const from = source.int(0, result.length - length);
      const piece = result.subarray(from, from + length);
      result = Uint8Array.from([...result.subarray(0, at), ...piece, ...result.subarray(at)]);
    }
  }
  return result;
}

/** Reads many damaged copies of a file; each must be read or refused with a SqlEnvError. */
export async function readDamaged(name: string, bytes: Uint8Array, read: Read, count: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-hostile-"));
  const outcomes = { read: 0, refused: 0 };
  try {
    await read(Uint8Array.from(bytes), join(folder, "whole"));
    for (let i = 0; i < count; i++) {
      const damaged = mutate(bytes, random("hostile files", name, i));
      try {
        await read(damaged, join(folder, String(i)));
        outcomes.read++;
      } catch (error) {
        if (!(error instanceof SqlEnvError)) throw new Error(`case ${i} of ${name}`, { cause: error });
        outcomes.refused++;
      }
      expect(readdirSync(folder)).toEqual([]);
    }
    expect(outcomes.read + outcomes.refused).toBe(count);
    expect(outcomes.refused).toBeGreaterThan(count / 2);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
