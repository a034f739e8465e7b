// `sqlenv sft`: supervised fine-tuning on transcripts, from a file or made by players on practice worlds.
import { existsSync, readFileSync } from "node:fs";
import { Command } from "commander";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { messageOf, UsageError } from "../../../errors.ts";
import { DEFAULT_RULES, rulesOf } from "../../../gym/env/index.ts";
import type { PromptChoice } from "../../../gym/players/index.ts";
import { loadSqlite } from "../../../gym/sql/index.ts";
import { connectRemoteModel, type LoadedModel, loadModelAndTokenizer } from "../../../lm/engine/index.node.ts";
import type { Datum } from "../../../lm/engine/index.ts";
import { LORA_MODULES, type LoraModule } from "../../../lm/model/lora.ts";
import { modulesOf } from "../../../rl/config/remote.ts";
import {
  demonstrations,
  encodeTranscript,
  mixed,
  mixtureSchema,
  parseTranscripts,
  type Recipe,
  recipeSchema,
  type SftReport,
  type Transcript,
  trainSft,
} from "../../../rl/index.ts";
import { baseName } from "../../../rl/run/model.node.ts";
import { writeModelMetadata } from "../../../rl/run/model-metadata.node.ts";
import { threadedDemonstrations } from "../../../rl/sft/demonstration-threads.node.ts";
import { makeModel } from "../../../rl/sft/recipe.node.ts";
import { addDeviceOptions, type DeviceFlags, deviceOptions } from "../options/device.ts";
import { type PromptFlags, promptOption, shotsOption } from "../options/prompt.ts";
import { listOf } from "../options/questions.ts";
import { addRemoteOptions, type RemoteFlags, remoteOptions } from "../options/remote.ts";
import { interruptedCode, interruptSignal } from "../terminal/interrupt.ts";
import { surviveLostOutput } from "../terminal/lost-output.ts";
import { countFromOne, drawTable, formatNumber, type Output, output, wholeNumber } from "../terminal/output.ts";

interface Options extends DeviceFlags, RemoteFlags, Pick<PromptFlags, "prompt" | "shots"> {
  readonly model?: string;
  readonly recipe?: string;
  readonly out: string;
  readonly transcripts?: string;
  readonly mixture?: string;
  readonly steps: number;
  readonly batchTokens: number;
  readonly learningRate: number;
  readonly maxContextTokens: number;
  readonly workers?: number;
  readonly transcriptsShare: number;
  readonly usePeft?: boolean;
  readonly loraR: number;
  readonly loraAlpha: number;
  readonly loraTargetModules?: LoraModule[];
  readonly seed: number;
  readonly json?: boolean;
}

export function sftCommand(): Command {
  const command = new Command("sft")
    .alias("warmup") // its former name
    .description("supervised fine-tuning (SFT) on transcripts; only the model's own replies have a loss")
    .option("--model <name>", "a model folder, a GGUF file, ollama:NAME, a name on the Hub, or starter")
    .option("--recipe <file>", "YAML: a model made from scratch, its sizes, stages and steps; in place of --model")
    .requiredOption("--out <folder>", "folder for the fine-tuned model")
    .option(
      "--transcripts <file>",
      "JSONL, one {messages: […]} per line, or the output of `eval --out`, of which right episodes are used; repeated epoch by epoch",
    )
    .option("--mixture <file>", "YAML: players that demonstrate on practice worlds, and their shares")
    .addOption(promptOption("prompt format (default: the mixture's, or compact)"))
    .addOption(shotsOption("example episodes before each question, without a loss"))
    .option(
      "--transcripts-share <x>",
      "share of the episodes that are transcripts, where both are given",
      positive("--transcripts-share"),
      0.5,
    )
    .option("--use-peft", "train LoRA adapters; --out is then a folder in PEFT's layout")
    .option("--lora-r <n>", "LoRA rank", countFromOne("--lora-r"), 16)
    .option("--lora-alpha <x>", "LoRA alpha: adapters are scaled by alpha / r", positive("--lora-alpha"), 32)
    .option("--lora-target-modules <list>", "modules with an adapter (default: all)", (text: string) =>
      listOf("--lora-target-modules", text, LORA_MODULES),
    )
    .option("--seed <n>", "random seed of the order and of the adapters", wholeNumber("--seed"), 0)
    .option("--steps <n>", "optimizer steps", countFromOne("--steps"), 100)
    .option("--batch-tokens <n>", "tokens per step, context included", countFromOne("--batch-tokens"), 4096)
    .option("--learning-rate <x>", "peak learning rate", positive("--learning-rate"), 1e-3)
    .option(
      "--max-context-tokens <n>",
      "maximum tokens of a transcript; longer ones are skipped",
      countFromOne("--max-context-tokens"),
      1024,
    )
    .option(
      "--workers <n>",
      "threads that play the mixture's episodes (default: the main thread)",
      wholeNumber("--workers"),
    )
    .option("--json", "print one JSON object");
  return addDeviceOptions(addRemoteOptions(command)).action(run);
}

async function run(options: Options): Promise<void> {
  const out = output(options);
  surviveLostOutput();
  if ((options.recipe === undefined) === (options.model === undefined))
    throw new UsageError({ what: "give either --model or --recipe", remedy: "for example --model starter" });
  if (options.recipe !== undefined) return follow(readYaml(options.recipe, recipeSchema, "recipe"), options, out);
  await fineTune({ ...options, model: options.model! }, out);
}

/** Makes a model from a recipe. */
async function follow(recipe: Recipe, options: Options, out: Output): Promise<void> {
  const signal = interruptSignal();
  const start = performance.now();
  let tokens = 0;
  const report = await makeModel(options.out, recipe, {
    engine: deviceOptions(options),
    workers: options.workers ?? 0,
    signal,
    onStep: ({ step, loss, tokens: taken }) => {
      tokens += taken;
      const rate = formatNumber(Math.round((1000 * tokens) / (performance.now() - start)));
      show(`step ${step} of ${recipe.sft.steps}: loss ${loss.toFixed(4)}, ${rate} tokens/s`, step, out);
    },
  });
  told(report, (performance.now() - start) / 1000, { recipe: options.recipe, out: options.out }, out);
  if (report.interrupted) process.exitCode = interruptedCode(signal);
}

/** Shows progress on a terminal; elsewhere prints every tenth step. */
function show(line: string, step: number, out: Output): void {
  if (process.stderr.isTTY) out.progress(line);
  else if (step % 10 === 0) out.line(line);
}

function told(
  report: SftReport,
  seconds: number,
  names: Readonly<Record<string, string | undefined>>,
  out: Output,
): void {
  const rows = Object.entries({ ...report, seconds: Math.round(seconds) }).map(([key, value]) => [
    key,
    typeof value === "number" ? round(value) : String(value),
  ]);
  out.line(drawTable(["SFT", ""], rows));
  out.line(`saved: ${names.out}`);
  out.result({ ...report, seconds, ...names });
}

async function fineTune(options: Options & { readonly model: string }, out: Output): Promise<void> {
  if (options.transcripts === undefined && options.mixture === undefined) {
    throw new UsageError({
      what: "give --transcripts or --mixture, or both",
      remedy: "for example --mixture mixture.yaml",
    });
  }
  await loadSqlite();
  const read = options.mixture === undefined ? undefined : readYaml(options.mixture, mixtureSchema, "mixture");
  const { prompt = read?.prompt ?? "compact", shots = read?.shots ?? 0 } = options;
  const mixture = read && { ...read, prompt, shots };
  const transcripts = options.transcripts === undefined ? [] : readTranscripts(options.transcripts, { prompt, shots });
  const { usePeft = false, loraR: r, loraAlpha: alpha, loraTargetModules: targets, seed } = options;
  const model = await (options.engine === undefined
    ? loadModelAndTokenizer(options.model, {
        ...deviceOptions(options),
        ...(usePeft && { lora: { r, alpha, seed, ...(targets && { targets }) } }),
      })
    : connectRemoteModel(options.model, {
        ...remoteOptions(options, options.engine),
        lora: { rank: r, seed, ...modulesOf({ lora_target_modules: targets ?? null }) },
      }));
  const made =
    mixture && options.workers
      ? threadedDemonstrations(model.folder, { threads: options.workers, mixtureOf: () => mixture })
      : mixture && encoded(demonstrations(mixture), model);
  const encode = (transcript: Transcript) => encodeTranscript(transcript, model.turns);
  const { transcriptsShare: share } = options;
  const source = transcripts.length === 0 ? made! : mixed(made, transcripts, encode, { share, seed });
  const {
    steps,
    batchTokens: batch_tokens,
    learningRate: learning_rate,
    maxContextTokens: max_context_tokens,
  } = options;
  const signal = interruptSignal();
  const start = performance.now();
  try {
    const report = await trainSft(model.engine, source, {
      steps,
      batch_tokens,
      learning_rate,
      max_context_tokens,
      signal,
      onStep: ({ step, loss, tokens, grad_norm }) => {
        const rate = formatNumber(Math.round((1000 * step * tokens) / (performance.now() - start)));
        show(
          `step ${step} of ${steps}: loss ${loss.toFixed(4)}, gradient ${grad_norm.toFixed(2)}, ${rate} tokens/s`,
          step,
          out,
        );
      },
    });
    const { engine } = model;
    const checkpoint = "remote" in engine ? await engine.remote.saveCheckpoint("sft") : undefined;
    if (checkpoint !== undefined) out.line(`saved on the server: ${checkpoint}`);
    if (usePeft || checkpoint !== undefined) await model.engine.saveAdapter(options.out, baseName(model.folder));
    else await model.engine.saveModel(options.out);
    writeModelMetadata(options.out, { prompt, shots }, mixture ? rulesOf(mixture) : DEFAULT_RULES);
    const names = { model: options.model, out: options.out, ...(checkpoint !== undefined && { checkpoint }) };
    told(report, (performance.now() - start) / 1000, names, out);
    if (report.interrupted) process.exitCode = interruptedCode(signal);
  } finally {
    await model.engine.close();
  }
}

async function* encoded(
  source: AsyncIterable<Transcript> | Iterable<Transcript>,
  { turns }: LoadedModel,
): AsyncGenerator<Datum> {
  for await (const transcript of source) yield encodeTranscript(transcript, turns);
}

function readTranscripts(file: string, prompt: PromptChoice): Transcript[] {
  return parseTranscripts(readText(file), file, prompt);
}

/** Reads the YAML; an error names file, field and value. */
function readYaml<T>(file: string, schema: z.ZodType<T>, what: string): T {
  let yaml: unknown;
  try {
    yaml = parseYaml(readText(file));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError({ what: `${file} is not YAML`, value: messageOf(error) });
  }
  const parsed = schema.safeParse(yaml);
  if (!parsed.success)
    throw new UsageError({
      what: `${file} is not a ${what}`,
      value: z.prettifyError(parsed.error),
      remedy: "see the guide's example",
    });
  return parsed.data;
}

function readText(file: string): string {
  if (!existsSync(file)) throw new UsageError({ what: "no such file", value: file });
  return readFileSync(file, "utf8");
}

function positive(option: string): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (number > 0 && Number.isFinite(number)) return number;
    throw new UsageError({ what: `${option} takes a number above 0`, value });
  };
}

function round(value: number): number {
  return Number.isInteger(value) ? value : Math.round(value * 1e4) / 1e4;
}
