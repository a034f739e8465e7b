// `sqlenv bench grpo`: seconds of whole GRPO steps, optionally next to TRL on the same model, questions and episodes.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import type { SQLAction } from "../../../gym/env/index.ts";
import { getSystemPrompt } from "../../../gym/players/index.ts";
import { DEVICE_CHOICES } from "../../../lm/devices/start.node.ts";
import { saveModelFolder } from "../../../lm/model/formats/folder.node.ts";
import type { GRPOConfig } from "../../../rl/index.ts";
import { loadTrainableModel } from "../../../rl/load.node.ts";
import {
  benchGRPO,
  GRPO_SHAPES,
  type GRPOShape,
  grpoConfig,
  grpoModel,
  PeerEnvironments,
  type ScriptedStep,
  type StepRecord,
  scriptedSteps,
} from "../../bench/grpo.ts";
import {
  checkSame,
  type MeasuredStep,
  type Ratios,
  ratiosOf,
  type Side,
  STEP_PARTS,
  type StepPart,
  sideOf,
} from "../../bench/grpo-comparison.ts";
import { measurementNow } from "../../bench/measurement.node.ts";
import { median } from "../../bench/median.ts";
import { addAlias } from "../options/alias.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { countFromOne, drawTable, formatNumber, type Output, output, wholeNumber } from "../terminal/output.ts";
import { benchLive, type LiveOptions } from "./bench-grpo-live.ts";

interface Options {
  readonly json?: boolean;
  readonly shape?: readonly string[];
  readonly steps?: number;
  readonly threads?: number;
  readonly peer?: string;
  readonly tiny?: boolean;
}

interface ScriptedOptions extends Options {
  readonly shape: readonly string[];
  readonly steps: number;
  readonly threads: number;
}

const SCRIPTED = { shape: Object.keys(GRPO_SHAPES), steps: 7, threads: 2 };

/** Flags that only one of the two benchmarks uses. */
const SCRIPTED_ONLY = ["shape", "peer", "tiny"] as const;
const LIVE_ONLY = [
  "model",
  "device",
  "preset",
  "config",
  "questions",
  "numGenerations",
  "environmentThreads",
] as const satisfies readonly (keyof LiveOptions)[];

interface GRPOBench {
  readonly shape: string;
  readonly questions: number;
  readonly generations: number;
  readonly parameters: number;
  readonly threads: number;
  readonly variant: string;
  readonly steps: number;
  /** Tokens of the median step. */
  readonly tokens: { readonly sampled: number; readonly contexts: number };
  /** `computed_share`: the share of the contexts' tokens that learning computed; the others are shared prefixes. */
  readonly ours: Side & { readonly computed_share: number };
  readonly peer: (Side & { readonly versions: PeerFacts["versions"] }) | null;
  readonly ratios: Ratios | null;
  readonly ratio_ranges: Readonly<Record<keyof Ratios, readonly [number, number]>> | null;
}

export function grpoCommand(): Command {
  const command = new Command("grpo")
    .description("seconds per GRPO step and where they go")
    .option("--data <name>", "measure a real model on this data set instead of scripted episodes")
    .option("--model <name>", "with --data: model (default: the preset's)")
    .addOption(new Option("--device <name>", "with --data: device to run on").choices(DEVICE_CHOICES))
    .option("--preset <name>", "with --data: training preset (default: spider-smollm2)")
    .option("--config <file>", "with --data: YAML file with training settings")
    .option(
      "--questions <number>",
      "with --data: questions per step (default: the preset's)",
      wholeNumber("--questions"),
    )
    .option(
      "--num-generations <number>",
      "with --data: episodes per question (default: the preset's)",
      wholeNumber("--num-generations"),
    )
    .option(
      "--environment-threads <number>",
      "with --data: threads to compare with the main thread (default: as in training)",
      wholeNumber("--environment-threads"),
    )
    .option(
      "--shape <names...>",
      `without --data: questions x generations: ${Object.keys(GRPO_SHAPES).join(", ")} (default: all)`,
    )
    .option("--steps <number>", "measured steps, after warmup (default: 7; with --data 10)", countFromOne("--steps"))
    .option(
      "--threads <number>",
      "CPU threads, also of the peer (default: 2; with --data all)",
      countFromOne("--threads"),
    )
    .option("--peer <python>", "without --data: Python with TRL, whose steps alternate with ours")
    .option("--tiny", "without --data: a very small model, to try the command")
    .option("--json", JSON_OUTPUT);
  return addAlias(command, "--generations", "--num-generations").action(
    async (options: Options & Partial<LiveOptions>) => {
      const out = output(options);
      const { data } = options;
      const unused = (data === undefined ? LIVE_ONLY : SCRIPTED_ONLY).find((key) => key in options);
      if (unused) {
        const flag = `--${unused.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
        const what = `${flag} has no effect ${data === undefined ? "without" : "with"} --data`;
        throw new UsageError({ what, remedy: "omit it" });
      }
      for (const key of ["steps", "questions"] as const)
        if (options[key] === 0) throw new UsageError({ what: `--${key} must be at least 1`, value: 0 });
      if (data === undefined) await benchScripted({ ...SCRIPTED, ...options }, out);
      else out.result(await benchLive({ ...options, data }, out));
    },
  );
}

async function benchScripted(options: ScriptedOptions, out: Output): Promise<void> {
  for (const name of options.shape) {
    if (name in GRPO_SHAPES) continue;
    const remedy = `use ${Object.keys(GRPO_SHAPES).join(" or ")}`;
    throw new UsageError({ what: "no such shape", value: name, remedy });
  }
  const measured = measurementNow();
  const data = await resolveDataSet("practice");
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-bench-"));
  const results: GRPOBench[] = [];
  try {
    out.progress("making a model");
    await saveModelFolder(folder, await grpoModel(options.tiny ? TINY : {}));
    for (const name of options.shape) {
      const result = await measure(name, folder, data, options, out);
      out.line(describe(result));
      results.push(result);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  out.result({ ...results[0], shapes: results, measured });
}

const TINY = {
  vocab_size: 300,
  hidden_size: 16,
  intermediate_size: 32,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 8,
};

/** Alternates our steps and the peer's, on the same questions. */
async function measure(
  name: string,
  folder: string,
  data: DataSet,
  { steps, threads, peer: python }: ScriptedOptions,
  out: Output,
): Promise<GRPOBench> {
  const shape = GRPO_SHAPES[name]!;
  const config = grpoConfig(shape, steps + 1);
  const model = await loadTrainableModel(folder, { threads });
  const script = scriptedSteps(data, model, config, shape);
  const ours: MeasuredStep[] = [];
  const theirs: MeasuredStep[] = [];
  let peer: Peer | undefined;
  try {
    peer = python ? await Peer.start(python, data, { folder, threads, config, shape, script }) : undefined;
    let before = cpuSeconds();
    await benchGRPO(model, data, config, script, async (record) => {
      const { all, own } = since(before);
      ours.push({ ...record, cpu_s: own, other_cores: Math.max(0, all - own) / record.seconds.step });
      if (peer) {
        before = cpuSeconds();
        const their = await peer.step();
        checkSame(record.played, their.played);
        const spent = since(before);
        const others = Math.max(0, spent.all - spent.own - their.cpu_s);
        theirs.push({ ...their, other_cores: others / their.seconds.step });
      }
      before = cpuSeconds();
      const seconds = [record, ...theirs.slice(-1)].map((side) => `${side.seconds.step.toFixed(2)} s`).join(", peer ");
      out.progress(`${name}, step ${ours.length} of ${steps + 1}: ${seconds}`);
    });
  } finally {
    peer?.close();
    await model.engine.close();
  }
  const [measured, peers] = [ours.slice(1), theirs.slice(1)]; // the first of each is warmup
  const { variant, parameters } = model.engine.facts;
  const computed = measured.map(({ computed_tokens = 0, played }) => computed_tokens / played.tokens);
  const { questions, generations } = shape;
  return {
    shape: name,
    questions,
    generations,
    parameters,
    threads,
    variant,
    steps,
    tokens: {
      sampled: median(measured.map(({ played }) => played.sampled_tokens)),
      contexts: median(measured.map(({ played }) => played.tokens)),
    },
    ours: { ...sideOf(measured), computed_share: median(computed) },
    peer: peer ? { ...sideOf(peers), versions: peer.facts.versions } : null,
    ...(peer ? ratiosOf(measured, peers) : { ratios: null, ratio_ranges: null }),
  };
}

/** CPU seconds of the whole machine since it started, and of this process. */
function cpuSeconds(): { readonly all: number; readonly own: number } {
  const all = cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0) / 1e3;
  const { user, system } = process.cpuUsage();
  return { all, own: (user + system) / 1e6 };
}

function since(before: ReturnType<typeof cpuSeconds>): ReturnType<typeof cpuSeconds> {
  const now = cpuSeconds();
  return { all: now.all - before.all, own: now.own - before.own };
}

interface PeerRecord extends StepRecord {
  /** CPU seconds of all threads of the peer's process. */
  readonly cpu_s: number;
}

interface PeerFacts {
  readonly versions: Readonly<Record<string, string>>;
  readonly parameters: number;
}

type FromPeer =
  | { readonly ready: PeerFacts }
  | { readonly reset: readonly string[] }
  | { readonly step: readonly (readonly [number, SQLAction])[] }
  | { readonly stepped: PeerRecord };

interface PeerOptions {
  readonly folder: string;
  readonly threads: number;
  readonly config: GRPOConfig;
  readonly shape: GRPOShape;
  readonly script: readonly ScriptedStep[];
}

/** bench/peer_grpo.py in a child process; its environments run here. */
class Peer {
  readonly facts: PeerFacts;
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: AsyncIterator<string>;
  readonly #environments: PeerEnvironments;
  readonly #errors: string[];

  private constructor(
    process: ChildProcessByStdio<Writable, Readable, Readable>,
    lines: AsyncIterator<string>,
    errors: string[],
    data: DataSet,
    facts: PeerFacts,
  ) {
    this.#process = process;
    this.#lines = lines;
    this.#errors = errors;
    this.#environments = new PeerEnvironments(data);
    this.facts = facts;
  }

  static async start(
    python: string,
    data: DataSet,
    { folder, threads, config, shape, script }: PeerOptions,
  ): Promise<Peer> {
    const program = fileURLToPath(new URL("../../../../bench/peer_grpo.py", import.meta.url));
    const child = spawn(python, [program], { stdio: ["pipe", "pipe", "pipe"] });
    const errors: string[] = [];
    child.on("error", (error) => errors.push(error.message));
    child.stdin.on("error", () => {}); // a failure is reported when the peer's output ends
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors.push(text);
      errors.splice(0, errors.length - 50);
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { num_generations, learning_rate, loss_type } = config;
    send(child.stdin, {
      model: folder,
      threads,
      batch: shape.peer_batch,
      num_generations,
      learning_rate,
      loss_type,
      system_prompt: getSystemPrompt(),
      script,
    });
    const message = await receive(lines, errors);
    if ("ready" in message) return new Peer(child, lines, errors, data, message.ready);
    throw broken("unexpected message");
  }

  /** Lets the peer take one optimizer step. */
  async step(): Promise<PeerRecord> {
    const reply = (message: unknown) => send(this.#process.stdin, message);
    reply({ go: true });
    for (;;) {
      const message = await receive(this.#lines, this.#errors);
      if ("reset" in message) reply(this.#environments.reset(message.reset));
      else if ("step" in message) reply(this.#environments.step(message.step));
      else if ("stepped" in message) return message.stepped;
      else throw broken("unexpected message");
    }
  }

  close(): void {
    this.#process.kill();
  }
}

function send(to: Writable, message: unknown): void {
  to.write(`${JSON.stringify(message)}\n`);
}

async function receive(lines: AsyncIterator<string>, errors: readonly string[]): Promise<FromPeer> {
  const { value, done } = await lines.next();
  if (done) throw broken(errors.join("").trim().split("\n").slice(-3).join(" | ") || "it ended");
  return JSON.parse(value) as FromPeer;
}

function broken(why: string): SqlEnvError {
  return new SqlEnvError("peer_failed", {
    what: `the peer failed: ${why}`,
    remedy: "--peer takes a Python with torch, transformers and trl 1.16",
  });
}

/** Cores that other programs may keep busy before a warning. */
const QUIET = 0.1;

function describe(result: GRPOBench): string {
  const { ours, peer, ratios, ratio_ranges, tokens } = result;
  const seconds = (side: Side | null, part: StepPart) => {
    if (!side) return "";
    const [low, high] = side.range_s[part];
    const digits = side.median_s.step < 1 ? 3 : 2;
    return `${side.median_s[part].toFixed(digits)} (${low.toFixed(digits)} – ${high.toFixed(digits)})`;
  };
  const times = (part: string) => {
    if (!ratios || !ratio_ranges || !(part in ratios)) return "";
    const [low, high] = ratio_ranges[part as keyof Ratios];
    return `${ratios[part as keyof Ratios].toFixed(2)}× (${low.toFixed(2)} – ${high.toFixed(2)})`;
  };
  const cpu = ["CPU time", ours.cpu_s.toFixed(2), peer?.cpu_s.toFixed(2) ?? "", times("cpu")];
  const n = (value: number) => formatNumber(Math.round(value));
  const busiest = Math.max(ours.other_cores, peer?.other_cores ?? 0);
  return [
    `${result.shape}, ${result.questions} questions × ${result.generations}: ${n(tokens.sampled)} tokens sampled, ${n(tokens.contexts)} in contexts; ${n(result.parameters)} parameters, ${result.threads} threads, ${result.variant}; ${result.steps} steps`,
    drawTable(
      ["seconds per step", "ours", peer ? `TRL ${peer.versions.trl}` : "", peer ? "ratio" : ""],
      [...STEP_PARTS.map((part) => [part, seconds(ours, part), seconds(peer, part), times(part)]), cpu],
    ),
    ...(busiest > QUIET ? [`warning: other programs kept ${busiest.toFixed(1)} cores busy`] : []),
    `learning computed ${(100 * ours.computed_share).toFixed(0)} % of the contexts' tokens; the others were shared prefixes`,
    "",
  ].join("\n");
}
