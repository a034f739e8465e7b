// Tests prefix sharing: which rows read what together, and, on an emulated GPU (needs a C++ compiler, no GPU), that the
// kernel computes the same as for each row alone.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { some } from "../../../../test/helpers/cases.ts";
import { nextSource } from "./attention.ts";
import {
  fillSharing,
  HEADER,
  JOB,
  NEXT_WARPS,
  type SharingShape,
  sharingCut,
  sharingLength,
  TASK,
  TASK_JOBS,
  TASK_ROWS,
} from "./prefix-sharing.ts";

const run = promisify(execFile);
const emulator = fileURLToPath(new URL("../../../../test/devices/emulator/", import.meta.url));
const hasCompiler = await run("g++", ["--version"]).then(
  () => process.platform === "linux",
  () => false,
);

/** A span: its parent, how many of the parent's tokens it follows, and its own number of tokens. */
type Node = readonly [parent: number | null, used: number, tokens: number];

/** The tables of a batch whose rows end at these spans, including the newest token, and the size of its KV cache. */
function batchOf(nodes: readonly Node[], ends: readonly number[], unit: number) {
  const blocks: number[] = [];
  let stored = 0;
  for (const [, , tokens] of nodes) {
    blocks.push(stored);
    stored += ((tokens + 7) & ~7) * unit;
  }
  const [spans, ranges]: number[][] = [[], []];
  for (const [row, end] of ends.entries()) {
    const path: [number, number][] = [];
    for (let [at, used]: [number | null, number] = [end, nodes[end]![2]]; at !== null; ) {
      path.unshift([at, used]);
      [at, used] = [nodes[at]![0], nodes[at]![1]];
    }
    const context = path.reduce((sum, [, used]) => sum + used, 0);
    spans!.push(row, 1, context - 1, ranges!.length / 3);
    for (const [at, used] of path) ranges!.push(blocks[at]!, (nodes[at]![2] + 7) & ~7, used);
  }
  spans!.push(ends.length, 0, 0, ranges!.length / 3);
  return { spans: Int32Array.from(spans!), ranges: Int32Array.from(ranges!), stored };
}

/** Decodes jobs: the rows that see each, and the keys it reads (a range's block and the index in it). */
function jobsOf(work: Int32Array, rows: number, ranges: Int32Array, shape: SharingShape) {
  const { tiles, splits } = sharingCut(rows, shape);
  const jobsAt = HEADER + TASK * tiles * splits;
  return Array.from({ length: tiles * splits }, (_, i) => work.subarray(HEADER + TASK * i, HEADER + TASK * (i + 1)))
    .filter((task) => task[0]! > 0)
    .flatMap((task, number) => {
      const members = [...task.subarray(TASK_ROWS, TASK_ROWS + task[0]!)];
      const [from, to] = [task[TASK_JOBS]!, task[TASK_JOBS + NEXT_WARPS]!];
      return Array.from({ length: to - from }, (_, i) => {
        const job = work.subarray(jobsAt + JOB * (from + i), jobsAt + JOB * (from + i + 1));
        let [block, , index, there, next, length, own, mask] = job as unknown as number[];
        if (own! >= 0) length! += ranges[3 * own! + 2]!;
        const keys: string[] = [];
        for (let key = 0; key < length!; key++, index!++) {
          if (key >= there!) {
            [block, index] = [ranges[3 * next!]!, 0];
            there! += ranges[3 * next! + 2]!;
            next!++;
          }
          keys.push(`${block} ${index}`);
        }
        return { number, rows: members.filter((_, m) => (mask! >> m) & 1), keys, isOpen: own! >= 0 };
      });
    });
}

/** Two groups of four with a common prefix, some with more turns, one row twice, one row alone. */
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

function tableOf(spans: Int32Array, ranges: Int32Array, rows: number, shape: SharingShape): Int32Array {
  const work = new Int32Array(sharingLength(rows, shape));
  fillSharing(work, rows, spans, ranges, shape);
  return work;
}

/** Lists the keys of a row's context. */
function contextOf(row: number, spans: Int32Array, ranges: Int32Array): string[] {
  const keys: string[] = [];
  for (let range = spans[4 * row + 3]!; range < spans[4 * row + 7]!; range++)
    for (let i = 0; i < ranges[3 * range + 2]!; i++) keys.push(`${ranges[3 * range]} ${i}`);
  return keys;
}

test.each([
  [8, 16],
  [8, 2],
  [2, 1],
  [1, 100],
  [5, 40],
])("every row reads all of its context once; tiles of %i rows, %i blocks", (together, blocks) => {
  const { spans, ranges } = batchOf(TREE, ENDS, 2);
  const rows = ENDS.length;
  const work = tableOf(spans, ranges, rows, { together, blocks });
  const jobs = jobsOf(work, rows, ranges, { together, blocks });
  expect([...work.subarray(work[2]!, work[2]! + work[1]!)]).toEqual([9]); // a copy of row 0
  expect(jobs.some((job) => job.rows.includes(9))).toBe(false);
  for (let row = 0; row < rows - 1; row++) {
    const mine = jobs.filter((job) => job.rows.includes(row));
    expect(mine.flatMap(({ keys }) => keys).sort()).toEqual(contextOf(row, spans, ranges).sort());
    const open = mine.filter(({ isOpen }) => isOpen);
    expect(open).toHaveLength(1); // only the range that grows
    expect(open[0]!.keys.at(-1)).toBe(contextOf(row, spans, ranges).at(-1));
  }
});

test.each([1, 17, 35])("%i new tokens of a row are read by its open jobs", (grown) => {
  const { spans, ranges } = batchOf(TREE, ENDS, 2);
  const [rows, shape] = [ENDS.length, { together: 8, blocks: 4 }];
  const work = tableOf(spans, ranges, rows, shape);
  for (let row = 0; row < rows; row++) ranges[3 * (spans[4 * row + 7]! - 1) + 2]! += grown;
  const jobs = jobsOf(work, rows, ranges, shape);
  for (let row = 0; row < rows - 1; row++) {
    const keys = jobs.filter((job) => job.rows.includes(row)).flatMap((job) => job.keys);
    expect(keys.sort()).toEqual(contextOf(row, spans, ranges).sort());
  }
});

test("rows of a tile are neighbours, and common prefixes are read together", () => {
  const { spans, ranges } = batchOf(TREE, ENDS, 2);
  const shape = { together: 8, blocks: 2 };
  const jobs = jobsOf(tableOf(spans, ranges, ENDS.length, shape), ENDS.length, ranges, shape);
  const together = new Set(jobs.filter(({ rows }) => rows.length > 1).map(({ rows }) => rows.join(" ")));
  expect([...together].sort()).toEqual(["0 1 2 3", "5 6 7"]); // a tile holds five rows
  const read = jobs.reduce((sum, { keys }) => sum + keys.length, 0);
  const alone = ENDS.reduce((sum, _, row) => sum + contextOf(row, spans, ranges).length, 0);
  expect(read).toBeLessThan(0.55 * alone);
});

test("the table's size suffices for any batch: 200 rows, each diverging from the one before", () => {
  const nodes: Node[] = [[null, 0, 40]];
  const ends: number[] = [];
  for (let i = 0; i < 200; i++) {
    ends.push(nodes.length + 1);
    nodes.push([i === 0 ? 0 : nodes.length - 2, 40, 40], [i === 0 ? 0 : nodes.length - 2, 39, 5]);
  }
  const { spans, ranges } = batchOf(nodes, ends, 2);
  for (const blocks of [1, 16, 132]) {
    const shape = { together: 8, blocks };
    const jobs = jobsOf(tableOf(spans, ranges, ends.length, shape), ends.length, ranges, shape);
    for (const row of [0, 7, 199]) {
      const keys = jobs.filter((job) => job.rows.includes(row)).flatMap((job) => job.keys);
      expect(keys.sort()).toEqual(contextOf(row, spans, ranges).sort());
    }
  }
});

describe.skipIf(!hasCompiler)("emulated (skipped where there is no g++),", () => {
  test.each(
    some(1, [
      [3, 1, 64],
      [4, 2, 128],
      [2, 2, 64],
      [7, 1, 64], // heads per kv head of Qwen2.5-0.5B
      [6, 1, 128], // heads per kv head of Qwen2.5-Coder-1.5B
    ] as const),
  )(
    "%i heads on %i of %i: rows that share are as right as rows alone",
    { timeout: 120_000 },
    async (heads, kvHeads, headDim) => {
      const shape = { heads, kvHeads, headDim, precision: "bf16" } as const;
      const folder = await mkdtemp(join(tmpdir(), "emulated-"));
      try {
        const { name, code } = nextSource(shape);
        await writeFile(join(folder, "next.inc"), code.replaceAll('extern "C"', ""));
        const defines = { NAME: name, HEADS_ALL: heads, KV_HEADS: kvHeads };
        const program = join(folder, "next");
        await run("g++", [
          ...["-std=c++17", "-O1", "-w", `-DNEXT="${join(folder, "next.inc")}"`],
          ...Object.entries(defines).map(([key, value]) => `-D${key}=${value}`),
          ...["-I", emulator, "-o", program, join(emulator, "next.cpp")],
        ]);
        const together = Math.floor(16 / (heads / kvHeads));
        const long: Node[] = [
          [null, 0, 1700],
          [0, 1700, 20],
        ];
        for (const [nodes, ends, blocks, hasBias] of [
          [TREE, ENDS, 1, 0],
          [TREE, ENDS, 4, 1],
          [TREE, ENDS, 70, 0],
          [long, [1], 40, 1], // several blocks for one tile
        ] as const) {
          const { spans, ranges, stored } = batchOf(nodes, ends, 2 * kvHeads * headDim);
          const cutShape = { together, blocks };
          const work = tableOf(spans, ranges, ends.length, cutShape);
          const tables = [spans, ranges, work].map((table) => `${table.length} ${table.join(" ")}`);
          const { tiles, splits } = sharingCut(ends.length, cutShape);
          const going = run(program, { timeout: 60_000 });
          going.child.stdin!.end(`${tables.join("\n")}\n${stored} ${tiles} ${splits} ${hasBias}\n`);
          const { stdout } = await going;
          const { out, keys } = JSON.parse(stdout.replaceAll(/-?nan/g, "null")) as Record<string, number | null>;
          expect(out ?? Number.NaN, `${blocks} blocks`).toBeLessThan(6e-3);
          expect(keys ?? Number.NaN).toBeLessThan(1e-3);
        }
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  );
});
