// Valid archives and model files with bytes changed, cut, repeated or put in: each is read or refused, and nothing else happens.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { SqlEnvError } from "../../src/errors.ts";
import { UnpackBudget } from "../../src/gym/data/archives/archive.ts";
import { unpack } from "../../src/gym/data/archives/unpack.node.ts";
import { type GgufValue, ggufHeader } from "../../src/lm/model/formats/gguf.ts";
import { parseGgufHeader } from "../../src/lm/model/formats/gguf-header.ts";
import { encodeHeader, safetensorsOf } from "../../src/lm/model/formats/safetensors.ts";
import { type Random, random } from "../../src/random.ts";
import { cases } from "../helpers/cases.ts";
import { makeTar, makeZip } from "../helpers/data-files.ts";

const MAX_BYTES = 100_000;
// Made with xz: a tar archive of two files.
const XZ =
  "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4A//AF9dADCLywMN5+txTm45dnXP0k64TB8fFHHZx7ixKZ+mGx5jY2EU9d2Gamj86EjZSx7lUX5G6QIKRHnRy1BplRXhCZgYtB4OYyzkk1mNWrva1upURWusMOgDWLwccVVBgO0AAACHDqtmY16OxwABe4AgAAAAczZks7HEZ/sCAAAAAARZWg==";

const FILES = [{ name: "a/x.txt", data: "hello\n".repeat(50) }, { name: "b", data: "z" }, { name: "c/d/empty" }];
const PAX = [
  { name: "PaxHeader", type: "x", data: "20 path=a/long/name\n" },
  { name: "short", data: "s" },
];

/** Unpacks into a folder inside `folder`; nothing may appear beside it. */
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

/** A tar archive whose headers have the checksums that belong to them. */
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

function safetensors(): Uint8Array {
  const shapes = new Map([
    ["model.norm.weight", [3]],
    ["lm_head.weight", [2, 3]],
  ]);
  const { bytes } = encodeHeader(shapes, "F32", { format: "pt" });
  return Buffer.concat([bytes, new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9).buffer)]);
}

function gguf(): Uint8Array {
  const facts = new Map<string, GgufValue>([
    ["general.architecture", { text: "llama" }],
    ["tokenizer.ggml.tokens", { texts: ["a", "b", "<|end|>"] }],
    ["llama.block_count", { u32: 2 }],
    ["tokenizer.ggml.token_type", { ints: [1, 1, 3] }],
  ]);
  const header = ggufHeader(facts, [
    { name: "token_embd.weight", shape: [2, 32], type: "q8_0" },
    { name: "output_norm.weight", shape: [4], type: "f32" },
  ]);
  return Buffer.concat([header, new Uint8Array(96 + 16)]);
}

type Read = (bytes: Uint8Array<ArrayBuffer>, folder: string) => Promise<unknown>;

const KINDS: readonly (readonly [string, Uint8Array, Read])[] = [
  ["zip", makeZip(FILES), readArchive],
  ["zip64", makeZip(FILES.map((file) => ({ ...file, zip64: true }))), readArchive],
  ["tar", makeTar([...FILES, ...PAX]), readArchive],
  // Damage behind a right checksum reaches further.
  [
    "tar with right checksums",
    makeTar([...FILES, ...PAX]),
    (bytes, folder) => readArchive(withChecksums(bytes), folder),
  ],
  ["tar.gz", gzipSync(makeTar(FILES)), readArchive],
  ["tar.xz", Buffer.from(XZ, "base64"), readArchive],
  [
    "safetensors",
    safetensors(),
    async (bytes) => {
      const source = safetensorsOf(bytes, "x.safetensors");
      for (const name of source.names) await source.read(name);
    },
  ],
  ["GGUF", gguf(), async (bytes) => parseGgufHeader(bytes, "x.gguf", bytes.length)],
];

// Numbers that are on the edge of something.
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

test.each(KINDS)("%s: every damaged file is read or refused in our own words", async (name, bytes, read) => {
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-hostile-"));
  const outcomes = { read: 0, refused: 0 };
  try {
    await read(Uint8Array.from(bytes), join(folder, "whole"));
    const count = cases(60, 1_000);
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
});
