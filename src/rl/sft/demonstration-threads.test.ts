// Demonstrations by several threads: the same ones in the same order, however many make them.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeTinyFolder } from "../../../test/helpers/tiny-folder.ts";
import { loadSqlite } from "../../gym/sql/index.ts";
import type { Datum } from "../../lm/engine/index.ts";
import { loadModelFolder } from "../../lm/model/formats/folder.node.ts";
import { createTurnEncoder } from "../../lm/model/index.ts";
import { demonstrations, encodeTranscript, mixtureSchema } from "../index.ts";
import type * as ThreadsModule from "./demonstration-threads.node.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const { threadedDemonstrations } = (await import(
  resolve(root, "dist/rl/sft/demonstration-threads.node.js")
)) as typeof ThreadsModule;
const folder = mkdtempSync(join(tmpdir(), "sqlenv-threads-"));
const mixture = mixtureSchema.parse({ seed: 9, players: [{ player: "oracle", share: 1 }], observed_weight: 0.1 });

beforeAll(() => writeTinyFolder(folder));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A datum's numbers, with weights as they are, not as they print. */
const numbersOf = ({ tokens, weights }: Datum) => [[...tokens], Array.from(weights)];

async function made(threads: number): Promise<number[][][]> {
  const all: number[][][] = [];
  const mixtureOf = (batch: number) => (batch < 3 ? mixture : null);
  for await (const datum of threadedDemonstrations(folder, { threads, mixtureOf, worldsPerBatch: 1 }))
    all.push(numbersOf(datum));
  return all;
}

test("one thread, three threads and the calling thread make the same demonstrations", async () => {
  await loadSqlite();
  const { tokenizer, chatTemplate, weights } = await loadModelFolder(folder);
  await weights.close();
  const turns = createTurnEncoder(tokenizer, chatTemplate);
  const own: number[][][] = [];
  for await (const transcript of demonstrations(mixture, 0, 3))
    own.push(numbersOf(encodeTranscript(transcript, turns)));
  expect(own.length).toBeGreaterThan(3);
  expect(await made(1)).toEqual(own);
  expect(await made(3)).toEqual(own);
});

test("stops its threads when the consumer stops", async () => {
  let taken = 0;
  for await (const _ of threadedDemonstrations(folder, { threads: 2, mixtureOf: () => mixture }))
    if (++taken === 3) break;
  expect(taken).toBe(3);
});
