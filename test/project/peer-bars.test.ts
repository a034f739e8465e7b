// docs/images/peers.svg and the tables beside it are drawn from the stored benchmarks, and only sound files are stored.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (file: string) => readFileSync(resolve(root, file), "utf8");
const script = <T>(name: string) => import(resolve(root, "scripts", name)) as Promise<T>;
const scratch = mkdtempSync(join(tmpdir(), "sqlenv-peers-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Benchmarks = Readonly<Record<string, readonly unknown[] | undefined>>;
const { readBenchmarks, stored } = await script<{
  readBenchmarks: () => Benchmarks;
  stored: (name: string) => { safeParse: (value: unknown) => { success: boolean; data?: { runs: unknown[] } } };
}>("benchmarks.mjs");
const { PAGES, PICTURE, pictureOf, withTables } = await script<{
  PAGES: readonly string[];
  PICTURE: string;
  pictureOf: (benchmarks: Benchmarks) => string | undefined;
  withTables: (page: string, benchmarks: Benchmarks) => string;
}>("peer-bars.mjs");

const seconds = (step: number) => ({ step, sampling: 0.7 * step, environment: 0, training: 0.3 * step });
const rates = (one: number, many: number) => [
  { batch_size: 1, decode_tokens_per_s: one },
  { batch_size: 8, decode_tokens_per_s: 4 * one },
  { batch_size: 64, decode_tokens_per_s: many },
];
/** A result of `sqlenv bench cuda --json --peer python3`, with keys that are not kept. */
const CUDA = {
  model: "qwen3-0.6b",
  variant: "cuda-bf16 NVIDIA H200, cuBLAS 130100, NVRTC 13.0",
  ceilings: { tflops: 766, terabytes_per_s: 4.2 },
  training: { tokens_per_s: 102_800, peak_bytes: 3e10, share: 0.5 },
  sampling: rates(1334, 28_800),
  sampling_groups: { decode_tokens_per_s: 45_300 },
  sampling_shared: { decode_tokens_per_s: 45_800 },
  grpo: { episodes: 64, turns: 192, sampled_tokens: 12_940, tokens: 36_634, seconds: seconds(0.8) },
  roofline: [],
  peer: {
    versions: { torch: "2.11.0", transformers: "5.17.0" },
    sampling: rates(34, 2450),
    training: { tokens_per_s: 48_500, peak_bytes: 3e10 },
    training_compiled: { error: "out of time" },
    grpo: { seconds: seconds(17.6) },
  },
  measured: {
    date: "2026-11-16",
    command: "sqlenv bench cuda --json --peer python3",
    machine: { cpu: "a CPU", cores: 16, memory_gb: 128 },
    node: "v22.0.0",
    load: 0.1,
  },
};

const whole = { format: "sqlenv-benchmark-1", name: "cuda", runs: [CUDA] };

test("the picture and the pages show the stored benchmarks", () => {
  const benchmarks = readBenchmarks();
  const picture = pictureOf(benchmarks);
  if (picture) expect(read(PICTURE)).toBe(picture);
  for (const page of PAGES) expect(withTables(read(page), benchmarks)).toBe(read(page));
});

test("a GPU's benchmark fills the picture, the tables and the README's sentence", () => {
  const benchmarks = { ...readBenchmarks(), cuda: stored("cuda").safeParse(whole).data!.runs };
  expect(pictureOf(benchmarks)).toMatch(/one H200; transformers 5\.17\.0.*generate 2,450.*11\.8×/s);
  expect(withTables(read("README.md"), benchmarks)).toContain("22 times as fast as a transformers loop on an H200");
  const page = withTables(read("docs/gpu.md"), benchmarks);
  expect(page).toContain("| training 8 × 1024, eager | 102,800 | 48,500 | 2.1 |");
  expect(page).toContain("| ratio | **22** | 22 | | 22 |");
  expect(page).not.toContain("torch.compile |"); // the peer had no number
});

test("only the JSON of a whole benchmark with a peer is stored", () => {
  const file = join(scratch, "cuda.json");
  const { peer: _, ...alone } = CUDA;
  writeFileSync(file, JSON.stringify(alone));
  const args = ["scripts/keep-benchmark.mjs", "cuda", file, "--check"];
  expect(() => execFileSync(process.execPath, args, { cwd: root, stdio: "pipe" })).toThrow(
    /is not the --json of this benchmark with a peer: peer: /,
  );
  for (const broken of [{ measured: undefined }, { training: { tokens_per_s: 0, peak_bytes: 1 } }, { variant: 3 }])
    expect(stored("cuda").safeParse({ ...whole, runs: [{ ...CUDA, ...broken }] }).success).toBe(false);
});
