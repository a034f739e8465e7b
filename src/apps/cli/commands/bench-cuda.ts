// `sqlenv bench cuda`: speed on a GPU at real model sizes, optionally next to transformers on the same GPU.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { createCuda } from "../../../lm/devices/cuda/create.node.ts";
import { LocalEngine } from "../../../lm/engine/index.ts";
import { POLICY_LOSSES } from "../../../rl/loss.ts";
import {
  type Ceilings,
  CUDA_MODELS,
  CUDA_SPEC,
  type DecodeRate,
  measureCeilings,
  measureDecode,
  measureTraining,
  medianTime,
  randomModel,
  type TrainingRate,
} from "../../bench/cuda.ts";
import { CUDA_GRPO, type CudaGRPO, measureGRPO } from "../../bench/cuda-grpo.ts";
import { measureDecodeRoofline, measureRoofline, type RooflineRow } from "../../bench/cuda-roofline.ts";
import type { EpisodeTokens, StepSeconds } from "../../bench/grpo.ts";
import { measurementNow } from "../../bench/measurement.node.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { precisionOption } from "../options/device.ts";
import { drawTable, formatBytes, formatNumber, output, wholeNumber } from "../terminal/output.ts";
import { PEER } from "./bench-engine.ts";

interface Options {
  readonly json?: boolean;
  readonly model: string;
  readonly peer?: string;
  readonly peerSeconds: number;
  readonly precision?: "bf16" | "fp32";
  readonly quick?: boolean;
}

/** Output of bench/peer_cuda.py; a part that failed has an error instead. */
interface Peer {
  readonly versions: Readonly<Record<string, string>>;
  readonly sampling?: readonly PeerRate[];
  readonly training?: PeerTraining;
  readonly training_compiled?: PeerTraining;
  readonly grpo?: {
    readonly seconds?: Omit<StepSeconds, "rest">;
    readonly sampled_tokens?: number;
    readonly tokens?: number;
  };
  readonly [compiled: `sampling_compiled_${number}`]: PeerRate | undefined;
}

interface PeerRate {
  readonly batch_size: number;
  readonly decode_tokens_per_s: number;
}

interface PeerTraining {
  readonly tokens_per_s?: number;
  readonly peak_bytes?: number;
  readonly error?: string;
}

interface Ours {
  readonly model: string;
  readonly variant: string;
  readonly ceilings: Ceilings;
  readonly training: TrainingRate;
  readonly sampling: readonly DecodeRate[];
  /** 64 sequences from 8 prompts, as in training, and from one. */
  readonly sampling_groups: DecodeRate;
  readonly sampling_shared: DecodeRate;
  /** One whole GRPO step in the environment. */
  readonly grpo: CudaGRPO;
  readonly roofline: readonly RooflineRow[];
}

export function cudaCommand(): Command {
  return new Command("cuda")
    .description("training and sampling speed on an NVIDIA GPU, and its kernels on the roofline")
    .option("--model <name>", `architecture: ${Object.keys(CUDA_MODELS).join(", ")}`, "qwen3-0.6b")
    .addOption(precisionOption())
    .option("--peer <python>", PEER)
    .option(
      "--peer-seconds <number>",
      "time limit of the peer; later measurements are skipped",
      wholeNumber("--peer-seconds"),
      900,
    )
    .option("--quick", "skip the table of kernels")
    .option("--json", JSON_OUTPUT)
    .action(async ({ json, model, peer, peerSeconds, precision, quick = false }: Options) => {
      const out = output({ json });
      const measured = measurementNow();
      if (!(model in CUDA_MODELS)) {
        const remedy = `use ${Object.keys(CUDA_MODELS).join(" or ")}`;
        throw new UsageError({ what: "no such model", value: model, remedy });
      }
      if (peer && CUDA_MODELS[model]!.architecture !== "Qwen3ForCausalLM") {
        const remedy = "omit --peer, or choose a Qwen3";
        throw new UsageError({ what: "--peer measures only Qwen3", value: model, remedy });
      }
      const { ours, played } = await measure(model, precision, quick, (what) => out.progress(what));
      out.progress("the peer");
      const theirs = peer ? runPeer(peer, model, peerSeconds, played) : undefined;
      const ratios = theirs && ratiosOf(ours, theirs);
      out.line(describe(ours, theirs));
      out.result({ ...ours, peer: theirs, ratios, measured });
    });
}

async function measure(
  name: string,
  precision: "bf16" | "fp32" | undefined,
  quick: boolean,
  onProgress: (what: string) => void,
): Promise<{ readonly ours: Ours; readonly played: readonly EpisodeTokens[] }> {
  const device = createCuda(precision === undefined ? {} : { precision });
  onProgress("the GPU's limits");
  const ceilings = measureCeilings(device);
  device.trim();
  const model = randomModel(device, CUDA_MODELS[name]!, true);
  const engine = new LocalEngine(model, { maxRows: 16_384, losses: POLICY_LOSSES });
  try {
    onProgress("training");
    const training = await measureTraining(engine, device, ceilings);
    onProgress("kernels");
    const roofline = quick
      ? []
      : [
          ...measureRoofline(model, device, ceilings, { time: (work) => medianTime(device, work) }),
          ...CUDA_SPEC.batch_sizes.flatMap((size) => measureDecodeRoofline(model, device, ceilings, size)),
        ];
    device.trim();
    const sampling: DecodeRate[] = [];
    for (const size of CUDA_SPEC.batch_sizes) {
      onProgress(`sampling, ${size} at a time`);
      sampling.push(await measureDecode(engine, size));
    }
    const sampling_groups = await measureDecode(engine, 64, { ...CUDA_SPEC, prompts: 8 });
    const sampling_shared = await measureDecode(engine, 64, { ...CUDA_SPEC, prompts: 1 });
    onProgress("a GRPO step");
    const { result: grpo, played } = await measureGRPO(engine, await resolveDataSet("practice"), GRPO_STEPS);
    const rates = { sampling, sampling_groups, sampling_shared };
    return { ours: { model: name, variant: device.variant, ceilings, training, ...rates, grpo, roofline }, played };
  } finally {
    await engine.close();
  }
}

const GRPO_STEPS = 4;

function runPeer(python: string, model: string, seconds: number, played: readonly EpisodeTokens[]): Peer {
  const script = fileURLToPath(new URL("../../../../bench/peer_cuda.py", import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-bench-"));
  try {
    const episodes = join(folder, "episodes.json");
    writeFileSync(episodes, JSON.stringify(played));
    const ask = { config: CUDA_MODELS[model], spec: CUDA_SPEC, seconds, episodes, grpo_batch: CUDA_GRPO.peer_batch };
    const text = execFileSync(python, [script, JSON.stringify(ask)], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      maxBuffer: 1 << 26,
    });
    return JSON.parse(text.trim().split("\n").at(-1)!) as Peer;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Ratios of our numbers to the peer's; null if the peer has none. */
function ratiosOf(ours: Ours, theirs: Peer) {
  const over = (a: number | undefined, b: number | undefined) => (a && b ? a / b : null);
  const rate = (size: number) => ours.sampling.find(({ batch_size }) => batch_size === size)?.decode_tokens_per_s;
  const plain = (size: number) => theirs.sampling?.find?.(({ batch_size }) => batch_size === size)?.decode_tokens_per_s;
  return {
    sampling_1: over(rate(1), plain(1)),
    sampling_8: over(rate(8), plain(8)),
    sampling_64: over(rate(64), plain(64)),
    sampling_1_compiled: over(rate(1), theirs.sampling_compiled_1?.decode_tokens_per_s),
    sampling_64_compiled: over(rate(64), theirs.sampling_compiled_64?.decode_tokens_per_s),
    training: over(ours.training.tokens_per_s, theirs.training?.tokens_per_s),
    training_compiled: over(ours.training.tokens_per_s, theirs.training_compiled?.tokens_per_s),
    sampling_64_groups: over(ours.sampling_groups.decode_tokens_per_s, plain(64)),
    sampling_64_shared: over(ours.sampling_shared.decode_tokens_per_s, plain(64)),
    grpo_step: over(theirs.grpo?.seconds?.step, ours.grpo.seconds.step),
  };
}

function describe(ours: Ours, theirs: Peer | undefined): string {
  const n = (value: number | undefined) => (value === undefined ? "" : formatNumber(Math.round(value)));
  const times = (a: number, b: number | undefined) => (b ? `${(a / b).toFixed(1)}×` : "");
  const { training, ceilings } = ours;
  const rows = [
    [
      "training",
      n(training.tokens_per_s),
      n(theirs?.training?.tokens_per_s),
      times(training.tokens_per_s, theirs?.training?.tokens_per_s),
    ],
    [
      "… torch.compile",
      "",
      n(theirs?.training_compiled?.tokens_per_s),
      times(training.tokens_per_s, theirs?.training_compiled?.tokens_per_s),
    ],
    ...ours.sampling.flatMap(({ batch_size, decode_tokens_per_s: rate }) => {
      const plain = theirs?.sampling?.find?.((peer) => peer.batch_size === batch_size)?.decode_tokens_per_s;
      const compiled = theirs?.[`sampling_compiled_${batch_size}`]?.decode_tokens_per_s;
      return [
        [`sampling ${batch_size}`, n(rate), n(plain), times(rate, plain)],
        ["… static cache, compiled", "", n(compiled), times(rate, compiled)],
      ];
    }),
    ["sampling 64, 8 prompts", n(ours.sampling_groups.decode_tokens_per_s), "", ""],
    ["sampling 64, one prompt", n(ours.sampling_shared.decode_tokens_per_s), "", ""],
  ];
  const { grpo } = ours;
  const parts = ["step", "sampling", "environment", "training"] as const;
  const seconds = (of: Omit<StepSeconds, "rest"> | undefined) => parts.map((part) => of?.[part].toFixed(3) ?? "");
  const steps = [
    ["ours", ...seconds(grpo.seconds)],
    ...(theirs?.grpo?.seconds ? [["generate, eager", ...seconds(theirs.grpo.seconds)]] : []),
  ];
  const kernels = ours.roofline.map(({ kernel, milliseconds, share, bound }) => [
    kernel,
    milliseconds.toFixed(4),
    `${(100 * share).toFixed(0)} %`,
    bound,
  ]);
  return [
    `${ours.model} on ${ours.variant}`,
    `GPU: ${ceilings.tflops.toFixed(0)} TFLOP/s, ${ceilings.terabytes_per_s.toFixed(2)} TB/s; training at ${training.tflops.toFixed(0)} TFLOP/s, ${(100 * training.share).toFixed(0)} % of it, peak memory ${formatBytes(training.peak_bytes)}`,
    drawTable(["tokens per second", "ours", theirs ? `transformers ${theirs.versions.transformers}` : "", ""], rows),
    drawTable([`GRPO, ${grpo.episodes} episodes, seconds`, ...parts], steps),
    ...(kernels.length > 0
      ? [drawTable(["kernel (8192 tokens by default)", "ms", "of the limit", "bound by"], kernels)]
      : []),
    "",
  ].join("\n");
}
