// `sqlenv bench engine`: speed on the CPU, optionally next to PyTorch on the same model.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import { createCpu } from "../../../lm/devices/cpu/start.node.ts";
import { configToJson } from "../../../lm/model/config.ts";
import { benchEngine, ENGINE_MODELS, ENGINE_SPEC, type EngineBench, layerMatmuls } from "../../bench/engine.ts";
import { benchKernels, type KernelProfile } from "../../bench/kernels.ts";
import { type Measurement, measurementNow } from "../../bench/measurement.node.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { countFromOne, drawTable, formatBytes, formatNumber, output } from "../terminal/output.ts";

interface Options {
  readonly json?: boolean;
  readonly model: readonly string[];
  readonly threads: number;
  readonly peer?: string;
  readonly quick?: boolean;
  readonly kernels?: boolean;
}

/** --peer, here and in `bench cuda`. */
export const PEER = "Python with torch and transformers, to measure next to ours";

/** Output of bench/peer_engine.py. */
interface Peer {
  readonly versions: Readonly<Record<string, string>>;
  /** Instruction set that torch chose. */
  readonly cpu_capability: string;
  readonly matmuls: readonly { readonly gflops: number }[];
  readonly sampling: readonly { batch_size: number; tokens_per_s: number; decode_tokens_per_s: number | null }[];
  readonly training: readonly { tokens_per_s: number }[];
}

export function engineCommand(): Command {
  return new Command("engine")
    .description("matmul, training and sampling speed on the CPU")
    .option("--model <names...>", `model sizes: ${Object.keys(ENGINE_MODELS).join(", ")}`, ["starter"])
    .option("--threads <number>", "CPU threads, also of the peer", countFromOne("--threads"), 2)
    .option("--peer <python>", PEER)
    .option("--quick", "skip the scaling tables and 128 sequences")
    .option("--kernels", "instead: each kernel's share of the time, and how busy the threads are")
    .option("--json", JSON_OUTPUT)
    .action(async ({ json, model, threads, peer, quick = false, kernels }: Options) => {
      const out = output({ json });
      const measured = measurementNow();
      for (const name of model) checkSize(name);
      if (kernels) {
        const profiles = [];
        for (const name of model) {
          const workloads = await benchKernels(
            name,
            (observe) => createCpu({ threads, observe }),
            (what) => out.progress(`${name}: ${what}`),
          );
          out.line(describeKernels(name, threads, workloads));
          profiles.push({ model: name, threads, workloads });
        }
        out.result({ models: profiles, measured });
        return;
      }
      const results = [];
      for (const name of model) {
        const ours = await benchEngine(name, () => createCpu({ threads }), {
          quick,
          onProgress: (what) => out.progress(`${name}: ${what}`),
        });
        if (peer) out.progress(`${name}: the peer`);
        const theirs = peer ? runPeer(peer, name, threads) : undefined;
        const ratios = theirs && ratiosOf(ours, theirs);
        out.line(describe(ours, theirs, ratios, measured));
        results.push({ ...ours, peer: theirs, ratios });
      }
      out.result(results.length === 1 ? { ...results[0], measured } : { models: results, measured });
    });
}

function checkSize(name: string): void {
  if (name in ENGINE_MODELS) return;
  const remedy = `use ${Object.keys(ENGINE_MODELS).join(" or ")}`;
  throw new UsageError({ what: "no such model size", value: name, remedy });
}

function runPeer(python: string, name: string, threads: number): Peer {
  const script = fileURLToPath(new URL("../../../../bench/peer_engine.py", import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-peer-"));
  try {
    writeFileSync(join(folder, "config.json"), JSON.stringify(configToJson(ENGINE_MODELS[name]!)));
    const { context, new_tokens, sequences, matmul_rows } = ENGINE_SPEC;
    const spec = {
      threads,
      context,
      new_tokens,
      batch_sizes: [1, 8, 32],
      training: [{ sequences, length: context }],
      matmuls: layerMatmuls(ENGINE_MODELS[name]!).map(([, rows, columns]) => [rows, columns]),
      matmul_rows,
      repeats: 3,
    };
    const text = execFileSync(python, [script, folder, JSON.stringify(spec)], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      maxBuffer: 1 << 26,
    });
    return JSON.parse(text) as Peer;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Ratios of our numbers to the peer's. */
function ratiosOf(ours: EngineBench, theirs: Peer) {
  const sampling = (
    size: number,
    pick: (rate: { tokens_per_s: number; decode_tokens_per_s: number | null }) => number | null,
  ) => {
    const [a, b] = [ours.sampling, theirs.sampling].map((rates) => rates.find(({ batch_size }) => batch_size === size));
    const [x, y] = [a && pick(a), b && pick(b)];
    return x && y ? x / y : null;
  };
  const dense = theirs.training[0]!.tokens_per_s;
  const peer32 = theirs.sampling.find(({ batch_size }) => batch_size === 32);
  return {
    sampling_1: sampling(1, (rate) => rate.decode_tokens_per_s),
    sampling_8: sampling(8, (rate) => rate.decode_tokens_per_s),
    sampling_32: sampling(32, (rate) => rate.decode_tokens_per_s),
    sampling_32_with_prompts: sampling(32, (rate) => rate.tokens_per_s),
    /** Four prompts with eight samples each; the peer computes every prompt. */
    sampling_32_groups_with_prompts: peer32 ? ours.sampling_groups.tokens_per_s / peer32.tokens_per_s : null,
    training_dense: ours.training.plain_tokens_per_s / dense,
    training_shared: ours.training.shared_tokens_per_s / dense,
    /** Each side's fastest matmul of a layer. */
    matmul: ours.gemm.gflops / Math.max(...theirs.matmuls.map(({ gflops }) => gflops)),
  };
}

function kernelsOf({ instruction_set }: EngineBench): string {
  return instruction_set ? `machine code for ${instruction_set.toUpperCase()}` : "WebAssembly";
}

function describe(
  ours: EngineBench,
  theirs: Peer | undefined,
  ratios: ReturnType<typeof ratiosOf> | undefined,
  { machine }: Measurement,
): string {
  const n = (value: number | null | undefined) =>
    value === null || value === undefined ? "" : formatNumber(Math.round(value));
  const times = (value: number | null | undefined) => (value ? `${value.toFixed(2)}×` : "");
  const peerRate = (size: number) => theirs?.sampling.find(({ batch_size }) => batch_size === size);
  const matmuls = ours.gemm.shapes.map(({ name, rows, columns, gflops }, i) => {
    const peer = theirs?.matmuls[i]?.gflops;
    return [`${name} [${columns}, ${rows}]`, n(gflops), n(peer), times(peer && gflops / peer)];
  });
  const rows: (string | number)[][] = [
    [
      "training, dense",
      n(ours.training.plain_tokens_per_s),
      n(theirs?.training[0]?.tokens_per_s),
      times(ratios?.training_dense),
    ],
    [
      "training, shared prompts",
      n(ours.training.shared_tokens_per_s),
      n(theirs?.training[0]?.tokens_per_s),
      times(ratios?.training_shared),
    ],
    ...ours.sampling.flatMap(({ batch_size, decode_tokens_per_s, tokens_per_s }) => {
      const peer = peerRate(batch_size);
      const ratio = (a: number, b: number | null | undefined) => times(b ? a / b : null);
      return [
        [
          `sampling ${batch_size}, decode`,
          n(decode_tokens_per_s),
          n(peer?.decode_tokens_per_s),
          ratio(decode_tokens_per_s, peer?.decode_tokens_per_s),
        ],
        [
          `sampling ${batch_size}, with prompts`,
          n(tokens_per_s),
          n(peer?.tokens_per_s),
          ratio(tokens_per_s, peer?.tokens_per_s),
        ],
      ];
    }),
  ];
  const groups = ours.sampling_groups;
  rows.push([
    "sampling 4 × 8, with prompts",
    n(groups.tokens_per_s),
    n(peerRate(32)?.tokens_per_s),
    times(ratios?.sampling_32_groups_with_prompts),
  ]);
  const { gemm, scaling } = ours;
  const growth = Object.entries({
    "training tokens/s by sequences": scaling.training_by_sequences,
    "training tokens/s by length": scaling.training_by_length,
    "ms per decode step by turns played": scaling.decode_ms_by_turns,
  }).filter(([, values]) => Object.keys(values).length > 0);
  return [
    `${ours.model}: ${formatNumber(ours.parameters)} parameters, ${ours.threads} threads, ${ours.variant}`,
    `${machine.cpu}; ours in ${kernelsOf(ours)}${theirs ? `, torch ${theirs.versions.torch} in ${theirs.cpu_capability}` : ""}`,
    `fastest matmul of a layer: ${gemm.gflops.toFixed(0)} GFLOP/s, ${(100 * gemm.share).toFixed(0)} % of the ${gemm.peak_gflops.toFixed(0)} measured in cache; peak memory ${formatBytes(ours.peak_bytes)}`,
    drawTable(
      [`matmul of ${ENGINE_SPEC.matmul_rows} rows, GFLOP/s`, "ours", theirs ? "torch" : "", theirs ? "ratio" : ""],
      matmuls,
    ),
    drawTable(
      ["tokens per second", "ours", theirs ? `torch ${theirs.versions.torch}` : "", theirs ? "ratio" : ""],
      rows,
    ),
    ...growth.map(
      ([title, values]) =>
        `${title}: ${Object.entries(values)
          .map(([key, value]) => `${key}: ${value < 100 ? value.toFixed(2) : formatNumber(Math.round(value))}`)
          .join("  ")}`,
    ),
    "",
  ].join("\n");
}

const SMALLEST_SHARE = 0.005;

function describeKernels(name: string, threads: number, profiles: readonly KernelProfile[]): string {
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const tables = profiles.map(({ workload, tokens_per_s, kernels, outside, busy }) => {
    const shown = kernels.filter(({ share }) => share >= SMALLEST_SHARE);
    const others = kernels.filter(({ share }) => share < SMALLEST_SHARE).reduce((sum, { share }) => sum + share, 0);
    return [
      `${workload}: ${formatNumber(Math.round(tokens_per_s))} tokens/s, threads busy ${percent(busy)}`,
      drawTable(
        ["kernel", "calls", "ms", "share", "threads busy"],
        [
          ...shown.map(({ kernel, calls, ms, share, busy }) => [
            kernel,
            calls,
            ms.toFixed(2),
            percent(share),
            percent(busy),
          ]),
          ["other kernels", "", "", percent(others), ""],
          ["outside of kernels", "", "", percent(outside), percent(1 / threads)],
        ],
      ),
    ].join("\n");
  });
  return [`${name}, ${threads} threads`, ...tables].join("\n\n");
}
