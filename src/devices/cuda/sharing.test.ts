// Which rows read what together, and that the kernel that does so computes what each would alone: on an emulated card, where
// there is a C++ compiler but no GPU.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { nextSource } from "./attention.ts";
import { fillSharing, HEADER, JOB, JOB_ROWS, MOST_PARTS, mostJobs, sharingLength } from "./sharing.ts";

const run = promisify(execFile);
const emulator = fileURLToPath(new URL("../../../test/devices/emulator/", import.meta.url));
const hasCompiler = await run("g++", ["--version"]).then(
  () => process.platform === "linux",
  () => false,
);

/** Runs by parent, tokens used of it, and own tokens. */
type Node = readonly [parent: number | null, used: number, tokens: number];

/** The tables of a batch whose rows end at these runs, the newest token included, and what its store holds. */
function batchOf(nodes: readonly Node[], ends: readonly number[], unit: number) {
  const blocks: number[] = [];
  let stored = 0;
  for (const [, , tokens] of nodes) {
    blocks.push(stored);
    stored += ((tokens + 7) & ~7) * unit;
  }
  const [segments, ranges]: number[][] = [[], []];
  for (const [row, end] of ends.entries()) {
    const path: [number, number][] = [];
    for (let [at, used]: [number | null, number] = [end, nodes[end]![2]]; at !== null; ) {
      path.unshift([at, used]);
      [at, used] = [nodes[at]![0], nodes[at]![1]];
    }
    const context = path.reduce((sum, [, used]) => sum + used, 0);
    segments!.push(row, 1, context - 1, ranges!.length / 3);
    for (const [at, used] of path) ranges!.push(blocks[at]!, (nodes[at]![2] + 7) & ~7, used);
  }
  segments!.push(ends.length, 0, 0, ranges!.length / 3);
  return { segments: Int32Array.from(segments!), ranges: Int32Array.from(ranges!), stored };
}

function jobsOf(work: Int32Array, rows: number) {
  return Array.from({ length: work[0]! }, (_, i) => {
    const job = work.subarray(HEADER + rows + JOB * i, HEADER + rows + JOB * (i + 1));
    const members = [...job.subarray(JOB - JOB_ROWS, JOB - JOB_ROWS + job[4]!)];
    return {
      ...{ first: job[0]!, count: job[1]!, split: job[2]!, splits: job[3]!, grows: job[5] === 1 },
      ...{ rows: members.map((member) => member & 0xffff), parts: members.map((member) => member >> 16) },
    };
  });
}

/** Two groups of four on one beginning, some with more turns, a row twice, a row alone. */
const TREE: Node[] = [
  [null, 0, 150],
  [0, 150, 90],
  [0, 149, 40],
  ...[0, 1, 2, 3].map((i): Node => [1, 90, 3 + 20 * i]),
  ...[0, 1, 2, 3].map((i): Node => [2, 40, 1 + 7 * i]),
  [5, 30, 12],
  [11, 12, 1],
  [null, 0, 70],
];
const ENDS = [3, 4, 6, 12, 7, 8, 9, 10, 13, 3];

test("what rows have in common is one job for all; every row reads all of its context once", () => {
  const { segments, ranges } = batchOf(TREE, ENDS, 2);
  const rows = ENDS.length;
  const work = new Int32Array(sharingLength(rows));
  fillSharing(work, rows, segments, ranges, { together: 8, wanted: 12 });
  const jobs = jobsOf(work, rows);
  for (let row = 0; row < rows; row++) {
    const mine = jobs.filter((job) => job.rows.includes(row));
    expect(mine.map((job) => job.parts[job.rows.indexOf(row)]).sort((a, b) => a! - b!)).toEqual(
      mine.map((_, part) => part),
    );
    expect(work[HEADER + row]).toBe(mine.length);
    const read = mine
      .filter(({ split }) => split === 0)
      .flatMap(({ first, count }) =>
        Array.from({ length: count }, (_, i) => [ranges[3 * (first + i)], ranges[3 * (first + i) + 2]]),
      );
    const own = [];
    for (let range = segments[4 * row + 3]!; range < segments[4 * row + 7]!; range++)
      own.push([ranges[3 * range], ranges[3 * range + 2]]);
    expect(read).toEqual(own);
    expect(mine.filter(({ grows, split }) => grows && split === 0)).toHaveLength(1);
  }
  const together = jobs.filter(({ rows: members, split }) => members.length > 1 && split === 0);
  expect(together.map((job) => job.rows)).toEqual(
    [
      [0, 1, 2, 3, 9],
      [0, 9],
      [4, 5, 6, 7],
    ].sort((a, b) => a[0]! - b[0]! || b.length - a.length),
  );
});

test("a batch without end in branches still fits: less is shared", () => {
  // Every row leaves the one before it: 200 levels.
  const nodes: Node[] = [[null, 0, 40]];
  const ends: number[] = [];
  for (let i = 0; i < 200; i++) {
    ends.push(nodes.length + 1);
    nodes.push([i === 0 ? 0 : nodes.length - 2, 40, 40], [i === 0 ? 0 : nodes.length - 2, 39, 5]);
  }
  const { segments, ranges } = batchOf(nodes, ends, 2);
  const work = new Int32Array(sharingLength(ends.length));
  fillSharing(work, ends.length, segments, ranges, { together: 8, wanted: 99 });
  expect(work[0]).toBeLessThanOrEqual(mostJobs(ends.length));
  expect(Math.max(...work.subarray(HEADER, HEADER + ends.length))).toBeLessThanOrEqual(MOST_PARTS);
});

describe.skipIf(!hasCompiler)("emulated (skipped where there is no g++),", () => {
  test.each([
    [4, 2, 128, 3],
    [3, 1, 64, 2],
    [2, 2, 64, 9],
  ])(
    "%i heads on %i of %i: rows that share are as right as rows alone",
    { timeout: 120_000 },
    async (heads, kvHeads, headDim, blocks) => {
      const shape = { heads, kvHeads, headDim, precision: "bf16" } as const;
      const { segments, ranges, stored } = batchOf(TREE, ENDS, 2 * kvHeads * headDim);
      const folder = await mkdtemp(join(tmpdir(), "emulated-"));
      try {
        const { name, code } = nextSource(shape)!;
        await writeFile(join(folder, "next.inc"), code.replaceAll('extern "C"', ""));
        const defines = {
          NAME: name,
          MERGE: `${name}_merge`,
          HEADS_ALL: heads,
          KV_HEADS: kvHeads,
          MOST: MOST_PARTS,
          BLOCKS: blocks,
        };
        const program = join(folder, "next");
        await run("g++", [
          ...["-std=c++17", "-O1", "-w", `-DNEXT="${join(folder, "next.inc")}"`],
          ...Object.entries(defines).map(([key, value]) => `-D${key}=${value}`),
          ...["-I", emulator, "-o", program, join(emulator, "next.cpp")],
        ]);
        const together = Math.floor(16 / (heads / kvHeads));
        for (const wanted of [1, 12, 40]) {
          const work = new Int32Array(sharingLength(ENDS.length));
          fillSharing(work, ENDS.length, segments, ranges, { together, wanted });
          const tables = [segments, ranges, work].map((table) => `${table.length} ${table.join(" ")}`);
          const going = run(program, { timeout: 60_000 });
          going.child.stdin!.end(`${tables.join("\n")}\n${stored}\n`);
          const { stdout } = await going;
          const { out, keys } = JSON.parse(stdout.replaceAll(/-?nan/g, "null")) as Record<string, number | null>;
          expect(out ?? Number.NaN, `${wanted} jobs`).toBeLessThan(6e-3);
          expect(keys ?? Number.NaN).toBeLessThan(1e-3);
        }
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  );
});
