// Draws docs/images/peers.svg and fills the tables of docs/results.md and docs/gpu.md, and the README's sentence, from the stored
// benchmarks:
//   npm run -s build && node scripts/peer-bars.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { cpuRows, gpuRows, INSTRUCTION_SETS, isBusy, readBenchmarks } from "./benchmarks.mjs";
import { peerBars, rateText, ratioText } from "./pictures/peer-bars.mjs";

const path = (file) => fileURLToPath(new URL(`../${file}`, import.meta.url));
export const PICTURE = "docs/images/peers.svg";
export const PAGES = ["README.md", "docs/results.md", "docs/gpu.md"];

const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows]
    .map((cells) => `|${cells.map((cell) => (cell ? ` ${cell} ` : " ")).join("|")}|`)
    .join("\n");
const gpuName = ({ variant }) => /NVIDIA ([^,]+)/.exec(variant)?.[1] ?? variant;
const processor = ({ measured: { machine } }) =>
  `${machine.cores} cores, ${machine.cpu.replace(/\((R|TM)\)/g, "").replace(/ (CPU|Processor)\b/g, "")}`;
const source = (name, runs) => {
  const { command, date } = runs[0].measured;
  const times = runs.length > 1 ? `, medians of ${runs.length} runs` : "";
  const busy = runs.some(isBusy) ? ", while other programs used the machine" : "";
  return `\`${command}\` (${date}${times}${busy}; [stored](results/bench/${name}.json))`;
};

/** The picture of some stored benchmarks; undefined if there are none. */
export function pictureOf(benchmarks) {
  const { grpo, engine, cuda } = benchmarks;
  const cpu = cpuRows(benchmarks);
  const gpu = gpuRows(benchmarks);
  if (cpu.length + gpu.length === 0) return undefined;
  const versions = [
    ...(grpo ? [`TRL ${grpo[0].peer.versions.trl}`] : []),
    ...(engine ? [`PyTorch ${engine[0].peer.versions.torch}`] : []),
  ];
  return peerBars([
    ...(cpu.length > 0
      ? [
          {
            title: "On a CPU",
            note: `${processor((engine ?? grpo)[0])}; ${versions.join(", ")}; 4.7M parameters`,
            rows: cpu,
          },
        ]
      : []),
    ...(gpu.length > 0
      ? [
          {
            title: "On a GPU",
            note: `one ${gpuName(cuda[0])}; transformers ${cuda[0].peer.versions.transformers}; ${cuda[0].model}’s shape, bf16`,
            rows: gpu,
          },
        ]
      : []),
  ]);
}

/** Blocks of the pages, by the name in their marks. A block whose benchmark is not stored keeps its text. */
function blocksOf(benchmarks) {
  const { grpo, engine, cuda } = benchmarks;
  const blocks = {};
  if (grpo) {
    const [{ ours, peer, ratios, ratio_ranges, questions, generations, steps }] = grpo;
    const parts = ["step", "sampling", "training"];
    const s = (value) => value.toFixed(value < 10 ? 2 : 1);
    blocks["grpo-peer"] = [
      `A GRPO step of ${questions} × ${generations} episodes against TRL ${peer.versions.trl} with torch ${peer.versions.torch}, ${grpo[0].threads} threads, all episodes different; seconds, medians of ${steps} steps that alternate: ${source("grpo", grpo)}`,
      "",
      table(
        ["", ...parts, "CPU time"],
        [
          ["ours", ...parts.map((part) => s(ours.median_s[part])), s(ours.cpu_s)],
          [`TRL ${peer.versions.trl}`, ...parts.map((part) => s(peer.median_s[part])), s(peer.cpu_s)],
          [
            "ratio (lowest – highest of a step)",
            ...[...parts, "cpu"].map((part) => {
              const [low, high] = ratio_ranges[part];
              return `${part === "step" ? "**" : ""}${ratioText(ratios[part])}${part === "step" ? "**" : ""} (${ratioText(low)} – ${ratioText(high)})`;
            }),
          ],
        ],
      ),
    ].join("\n");
  }
  if (engine) {
    const { torch } = engine[0].peer.versions;
    const own = INSTRUCTION_SETS[engine[0].instruction_set] ?? "WebAssembly";
    const others = [
      ["WebAssembly", "engine-wasm", "SQLENV_NATIVE=0"],
      ["AVX2", "engine-avx2", "SQLENV_NATIVE=avx2"],
    ].flatMap(([label, name, variable]) => {
      const runs = benchmarks[name];
      if (!runs || label === own) return [];
      const rows = cpuRows({ engine: runs.map((run, i) => ({ ...run, peer: engine[i % engine.length].peer })) });
      return [{ label, variable, rows }];
    });
    blocks["engine-peer"] = [
      `The CPU engine against PyTorch ${torch} eager with its KV cache, a model of the starter's size, ${processor(engine[0])}, tokens per second: ${source("engine", engine)}${others.map(({ label, variable }) => `; ${label}: the same with \`${variable}\``).join("")}`,
      "",
      table(
        ["workload", ...others.map(({ label }) => label), own, "PyTorch", `${own} over PyTorch`],
        cpuRows({ engine }).map(({ label, ours, peers: [peer] }, i) => [
          label,
          ...others.map(({ rows }) => rateText(rows[i].ours)),
          rateText(ours),
          rateText(peer.value),
          ratioText(peer.ratio),
        ]),
      ),
    ].join("\n");
  }
  if (cuda) {
    const [run] = cuda;
    const rows = gpuRows({ cuda });
    const { versions } = run.peer;
    blocks["cuda-peer"] = [
      `${source("cuda", cuda)}; transformers ${versions.transformers}, torch ${versions.torch}, with bf16 weights and optimizer state, prompts of 512 tokens and 128 new ones, sampling at temperature 1 without filters.`,
      "",
      table(
        ["tokens per second", "ours", "transformers", "ratio"],
        rows
          .slice(1)
          .flatMap(({ label, ours, peers }) =>
            peers.map(({ name, value, ratio }) => [
              `${label}, ${name}`,
              rateText(ours),
              rateText(value),
              ratioText(ratio),
            ]),
          ),
      ),
    ].join("\n");
    const parts = ["step", "sampling", "environment", "training"];
    const s = (side, part) => (side[part] ? side[part].toFixed(side[part] < 10 ? 3 : 2) : "");
    const [ours, theirs] = [run.grpo.seconds, run.peer.grpo.seconds];
    blocks["cuda-grpo"] = table(
      ["", ...parts],
      [
        ["ours", ...parts.map((part) => s(ours, part))],
        ["`generate` and eager backward", ...parts.map((part) => s(theirs, part))],
        [
          "ratio",
          ...parts.map((part) => {
            const text = theirs[part] ? ratioText(theirs[part] / ours[part]) : "";
            return part === "step" ? `**${text}**` : text;
          }),
        ],
      ],
    );
    const speedups = table(
      ["", "speedup"],
      rows
        .filter(({ detail }) => !detail)
        .flatMap(({ label, peers }) => peers.map(({ name, ratio }) => [`${label}, against ${name}`, ratioText(ratio)])),
    );
    blocks["cuda-short"] = `${speedups}\n\n![The same as bars, below those of the CPU](images/peers.svg)`;
  }
  return blocks;
}

/** A page with its blocks, and the README's sentence, from the stored benchmarks. */
export function withTables(page, benchmarks) {
  const times = (rows) => Math.round(rows[0].peers[0].ratio);
  const sentences = [
    ...(benchmarks.grpo ? [[/\d+(?= times as fast as TRL's on two cores)/, times(cpuRows(benchmarks))]] : []),
    ...(benchmarks.cuda ? [[/\d+(?= times as fast as a transformers loop)/, times(gpuRows(benchmarks))]] : []),
  ];
  const text = sentences.reduce((now, [number, value]) => now.replace(number, String(value)), page);
  return Object.entries(blocksOf(benchmarks)).reduce(
    (now, [name, block]) =>
      now.replace(
        new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- /${name} -->)`),
        (_, from, to) => `${from}\n${block}\n\n${to}`,
      ),
    text,
  );
}

/** Writes the picture and the pages. */
export function draw() {
  const benchmarks = readBenchmarks();
  const picture = pictureOf(benchmarks);
  if (picture) writeFileSync(path(PICTURE), picture);
  for (const page of PAGES) writeFileSync(path(page), withTables(readFileSync(path(page), "utf8"), benchmarks));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) draw();
