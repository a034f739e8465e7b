// The stored benchmarks against other software (docs/results/bench): their schemas, and the rows that documents show.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";

export const FOLDER = fileURLToPath(new URL("../docs/results/bench/", import.meta.url));

const rate = z.number().positive();
const versions = z.record(z.string(), z.string());
const measured = z.object({
  date: z.iso.date(),
  command: z.string().startsWith("sqlenv bench "),
  machine: z.object({ cpu: z.string().min(1), cores: z.int().positive(), memory_gb: z.int().positive() }),
  node: z.string(),
  load: z.number().min(0),
});
const sampling = z.array(z.object({ batch_size: z.int(), tokens_per_s: rate, decode_tokens_per_s: rate }));
const engine = z.object({
  measured,
  model: z.string(),
  parameters: z.int(),
  threads: z.int(),
  variant: z.string(),
  native: z.boolean(),
  /** Of its machine code; null for WebAssembly. */
  instruction_set: z.enum(["avx2", "avx512"]).nullable(),
  training: z.object({ plain_tokens_per_s: rate, shared_tokens_per_s: rate }),
  sampling,
  sampling_groups: z.object({ tokens_per_s: rate }),
  peer: z.object({ versions, training: z.array(z.object({ tokens_per_s: rate })).min(1), sampling }),
});
const seconds = z.object({ step: rate, sampling: rate, environment: z.number().min(0), training: rate });
const side = z.object({ median_s: seconds, cpu_s: rate, other_cores: z.number() });
const decode = z.object({ decode_tokens_per_s: rate });
const decodes = z.array(decode.extend({ batch_size: z.int() }));
const training = z.object({ tokens_per_s: rate, peak_bytes: z.number() });

/** What is kept of a benchmark's `--json`, by name; other keys are dropped. */
export const SCHEMAS = {
  /** `sqlenv bench engine --quick --json --peer PYTHON` */
  engine,
  /** The same on the same machine with SQLENV_NATIVE=0 or avx2, with or without a peer. */
  "engine-wasm": engine.extend({ native: z.literal(false), peer: engine.shape.peer.optional() }),
  "engine-avx2": engine.extend({ instruction_set: z.literal("avx2"), peer: engine.shape.peer.optional() }),
  /** `sqlenv bench grpo --shape 16x8 --json --peer PYTHON` */
  grpo: z.object({
    measured,
    shape: z.literal("16x8"),
    questions: z.int(),
    generations: z.int(),
    parameters: z.int(),
    threads: z.int(),
    variant: z.string(),
    steps: z.int(),
    ours: side.extend({ computed_share: rate }),
    peer: side.extend({ versions }),
    ratios: z.record(z.string(), rate),
    ratio_ranges: z.record(z.string(), z.tuple([rate, rate])),
  }),
  /** `sqlenv bench cuda --json --peer python3` */
  cuda: z.object({
    measured,
    model: z.string(),
    variant: z.string(),
    ceilings: z.object({ tflops: rate, terabytes_per_s: rate }),
    training,
    sampling: decodes,
    sampling_groups: decode,
    sampling_shared: decode,
    grpo: z.object({ episodes: z.int(), turns: z.int(), sampled_tokens: z.int(), tokens: z.int(), seconds }),
    peer: z.object({
      versions,
      sampling: decodes,
      training,
      training_compiled: training.optional().catch(undefined), // a part that failed has an error instead
      sampling_compiled_1: decode.optional().catch(undefined),
      sampling_compiled_64: decode.optional().catch(undefined),
      grpo: z.object({ seconds }),
    }),
  }),
};

/** A stored benchmark's schema: one or more runs of the same command. */
export const stored = (name) =>
  z.object({ format: z.literal("sqlenv-benchmark-1"), name: z.literal(name), runs: z.array(SCHEMAS[name]).min(1) });

/** The stored benchmarks by name; one that is not stored is undefined. */
export function readBenchmarks(folder = FOLDER) {
  return Object.fromEntries(
    Object.keys(SCHEMAS).map((name) => {
      const file = `${folder}/${name}.json`;
      return [name, existsSync(file) ? stored(name).parse(JSON.parse(readFileSync(file, "utf8"))).runs : undefined];
    }),
  );
}

/** Cores used by others during a benchmark and, where that was not measured, load average before it, from which its times are too long. */
const BUSY = { load: 0.6, cores: 0.1 };

/** Whether other programs used the machine meanwhile. The load before may be that of another benchmark that has just ended. */
export const isBusy = ({ measured, ours, peer }) =>
  ours?.other_cores === undefined
    ? measured.load > BUSY.load
    : Math.max(ours.other_cores, peer?.other_cores ?? 0) > BUSY.cores;

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** One workload: medians over the runs, and the median of each run's ratio to each peer. */
function row(label, unit, runs, ours, peers) {
  return {
    label,
    unit,
    ours: median(runs.map(ours)),
    peers: peers
      .filter(([, , value]) => runs.every((run) => value(run) !== undefined))
      .map(([name, colour, value]) => ({
        name,
        colour,
        value: median(runs.map(value)),
        ratio: median(runs.map((run) => ours(run) / value(run))),
      })),
  };
}

/** The row with a ratio that the benchmark measured itself: steps alternate, so the median of their ratios is the fairer one. */
const withRatio = (row, ratio) => ({ ...row, peers: row.peers.map((peer) => ({ ...peer, ratio })) });

const ofSize = (rates, size) => rates.find(({ batch_size }) => batch_size === size);

/** Shown in the tables, not in the picture. */
const DETAIL = { detail: true };

/** Names of what the CPU's kernels are compiled to. */
export const INSTRUCTION_SETS = { avx2: "AVX2", avx512: "AVX-512" };

/** Workloads on the CPU. */
export function cpuRows({ grpo, engine }) {
  const torch = (value) => [["PyTorch", "grey", value]];
  return [
    ...(grpo
      ? [
          withRatio(
            row(
              `a GRPO step of ${grpo[0].questions} × ${grpo[0].generations} episodes`,
              "episodes per second",
              grpo,
              ({ questions, generations, ours }) => (questions * generations) / ours.median_s.step,
              [["TRL", "orange", ({ questions, generations, peer }) => (questions * generations) / peer.median_s.step]],
            ),
            median(grpo.map(({ ratios }) => ratios.step)),
          ),
        ]
      : []),
    ...(engine
      ? [
          ["training, plain sequences", (run) => run.training.plain_tokens_per_s, (p) => p.training[0].tokens_per_s],
          [
            "training, 8 completions on one prompt",
            (run) => run.training.shared_tokens_per_s,
            (p) => p.training[0].tokens_per_s,
          ],
          [
            "sampling 1 sequence, decoding alone",
            (run) => ofSize(run.sampling, 1).decode_tokens_per_s,
            (p) => ofSize(p.sampling, 1).decode_tokens_per_s,
          ],
          [
            "sampling 8 different prompts, decoding alone",
            (run) => ofSize(run.sampling, 8).decode_tokens_per_s,
            (p) => ofSize(p.sampling, 8).decode_tokens_per_s,
            DETAIL,
          ],
          [
            "sampling 32 different prompts, decoding alone",
            (run) => ofSize(run.sampling, 32).decode_tokens_per_s,
            (p) => ofSize(p.sampling, 32).decode_tokens_per_s,
            DETAIL,
          ],
          [
            "sampling 32 different prompts, prompts included",
            (run) => ofSize(run.sampling, 32).tokens_per_s,
            (p) => ofSize(p.sampling, 32).tokens_per_s,
          ],
          [
            "sampling 4 prompts × 8, prompts included",
            (run) => run.sampling_groups.tokens_per_s,
            (p) => ofSize(p.sampling, 32).tokens_per_s,
          ],
        ].map(([label, ours, theirs, more]) => ({
          ...row(
            label,
            "tokens per second",
            engine,
            ours,
            torch(({ peer }) => theirs(peer)),
          ),
          ...more,
        }))
      : []),
  ];
}

/** Workloads on a GPU. */
export function gpuRows({ cuda }) {
  if (!cuda) return [];
  const tokens = (label, ours, ...peers) => row(label, "tokens per second", cuda, ours, peers);
  const size = (count) => (run) => ofSize(run.sampling, count)?.decode_tokens_per_s;
  const generate = (count) => ["generate", "grey", ({ peer }) => size(count)(peer)];
  const compiled = (count) => [
    "generate, static cache and compile",
    "orange",
    ({ peer }) => peer[`sampling_compiled_${count}`]?.decode_tokens_per_s,
  ];
  const episodes = cuda[0].grpo.episodes;
  return [
    row(
      `a GRPO step of ${episodes} episodes`,
      "episodes per second",
      cuda,
      ({ grpo }) => grpo.episodes / grpo.seconds.step,
      [["generate, eager backward", "grey", ({ grpo, peer }) => grpo.episodes / peer.grpo.seconds.step]],
    ),
    tokens(
      "training 8 × 1024",
      ({ training }) => training.tokens_per_s,
      ["eager", "grey", ({ peer }) => peer.training.tokens_per_s],
      ["torch.compile", "orange", ({ peer }) => peer.training_compiled?.tokens_per_s],
    ),
    tokens("sampling 1 sequence", size(1), generate(1), compiled(1)),
    { ...tokens("sampling 8 sequences", size(8), generate(8)), ...DETAIL },
    tokens("sampling 64 different prompts", size(64), generate(64), compiled(64)),
    tokens("sampling 8 prompts × 8", ({ sampling_groups }) => sampling_groups.decode_tokens_per_s, generate(64)),
    {
      ...tokens("sampling 64, one shared prompt", (run) => run.sampling_shared.decode_tokens_per_s, generate(64)),
      ...DETAIL,
    },
  ];
}
