// `sqlenv train`: trains a model to answer questions, and writes a run folder that shows what it learned.
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Command } from "commander";
import type { DataSet } from "../../../gym/data/index.ts";
import type { LoadedModel } from "../../../lm/engine/index.node.ts";
import {
  type GRPOConfig,
  overlapWarning,
  type RewardPoint,
  type SplitPart,
  type TrainerCallback,
  type TrainingSplit,
  type Warning,
} from "../../../rl/index.ts";
import type { ServerEnvironment } from "../../../rl/openenv/server-environment.ts";
import type { RunFolder } from "../../../rl/run/folder.node.ts";
import { type PreparedTraining, prepareTraining } from "../../../rl/run/prepare.node.ts";
import { runTraining } from "../../../rl/run/train.node.ts";
import type { DashboardServer } from "../../dashboard/server/serve.node.ts";
import { trainingReport, writeReport } from "../../reports/index.node.ts";
import { interruptedCode, interruptSignal } from "../terminal/interrupt.ts";
import { type LostOutput, surviveLostOutput } from "../terminal/lost-output.ts";
import { counted, formatNumber, type Output, output, portNumber, printable, styled } from "../terminal/output.ts";
import { aborted, startDashboard } from "./serve-dashboard.ts";
import { addConfigOptions, type ConfigFlags, configOf, resumeSettings } from "./train-config.ts";
import { dryRun } from "./train-dry.ts";
import { TrainingScreen } from "./train-screen.ts";

interface TrainFlags extends ConfigFlags {
  readonly resume?: string;
  readonly force?: boolean;
  readonly acceptChanges?: boolean;
  readonly dryRun?: boolean;
  readonly dashboard?: boolean;
  readonly dashboardPort?: number;
  readonly dashboardHost?: string;
  readonly json?: boolean;
}

/** The `train` command. */
export function trainCommand(): Command {
  const command = new Command("train")
    .description("train a model by playing; without options, the starter in a few minutes")
    .option("--resume <run>", "continue a run that was stopped, to the same result")
    .option("--force", "with --resume: take the run over from a process that seems to train in it; that one then ends")
    .option(
      "--accept-changes",
      "with --resume: continue although questions, databases, model or reward file have changed",
    )
    .option("--dry-run", "show the settings, what memory and time it would take, and stop")
    .option("--dashboard", "show the training in the browser while it runs")
    .option(
      "--dashboard-port <number>",
      "its port; 0 for any (default: the first free from 7860)",
      portNumber("--dashboard-port"),
    )
    .option("--dashboard-host <address>", "the address it listens on; anything but this machine lets others read")
    .option("--json", "print one JSON object");
  return addConfigOptions(command).action(train);
}

async function train(flags: TrainFlags): Promise<void> {
  const out = output(flags);
  const lost = surviveLostOutput();
  const { resume } = flags;
  const warn = (line: string) => out.line(styled("yellow", line));
  const note = (line: string) => out.line(styled("dim", line));
  const config = resume === undefined ? configOf(flags, warn, note) : resumeSettings(flags, warn);
  const prepared = await prepareTraining({ config, resume, onNote: warn });
  try {
    for (const line of preparedLines(prepared)) out.line(line);
    if (flags.dryRun) await dryRun(prepared, out);
    else await trainPrepared(prepared, flags, lost, out);
  } finally {
    await prepared.close();
  }
}

async function trainPrepared(
  prepared: PreparedTraining,
  flags: TrainFlags,
  lost: readonly LostOutput[],
  out: Output,
): Promise<void> {
  const { config, run, steps } = prepared;
  const signal = interruptSignal();
  const screen = new TrainingScreen(out);
  const made: { folder?: RunFolder; dashboard?: DashboardServer | null; pages?: readonly string[] } = {};
  try {
    const result = await runTraining({
      prepared,
      force: flags.force,
      acceptChanges: flags.acceptChanges,
      signal,
      spent: performance.now() / 1000, // since the process began
      callbacks: [
        screen,
        screen.live(steps, prepared.resume ? rewardsOf(run) : []),
        lostOutputWarnings(lost, (warning) => made.folder?.append("warnings.jsonl", warning)),
      ],
      report: {
        ...trainingReport,
        write: async () => {
          made.pages = (await writeReport(run)).files.map((file) => basename(file));
        },
      },
      onFolder: async (folder) => {
        made.folder = folder;
        made.dashboard = await dashboardOf(run, flags, out);
      },
      onModel: (model, name) => out.line(modelLine(model, name, config)),
      onNote: (text) => out.line(styled("yellow", printable(text))),
      onPhase: (phase) => screen.phase(phase),
      onProgress: (phase, done, total) => screen.progress(phase, done, total),
      onPassAtK: (measured, warning) => screen.passAtK(measured, warning),
      onStep: (phase, step) => screen.sftStep(phase, step, phase === "sft" ? config.sft_steps : null),
      onStageEnd: (name, report) => screen.stageEnd(name, report),
    });
    if (!result) return interrupted(run, signal, out);
    const files = [...(made.pages ?? []), ...(config.use_peft ? ["adapter/"] : []), "model/"];
    screen.result(result, files, config, prepared.data?.databases.names ?? []);
    out.result(result);
    if (made.dashboard && process.stdout.isTTY) {
      out.line(`the dashboard stays at ${made.dashboard.url} until Ctrl-C`);
      await aborted(signal);
    }
  } finally {
    screen.stop();
    await made.dashboard?.close();
  }
}

/** Rewards of the steps before a resume, so that the curve continues. */
function rewardsOf(run: string): RewardPoint[] {
  const file = join(run, "metrics.jsonl");
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        const { step, reward } = JSON.parse(line) as Partial<RewardPoint>;
        return step === undefined || reward === undefined ? [] : [{ step, reward }];
      } catch {
        return []; // a killed run may end with an incomplete line
      }
    });
}

/** Describes the data of a training and how its databases are split. */
function preparedLines({ data, config, split, heldOut, environment }: PreparedTraining): string[] {
  if (environment) return serverLines(environment);
  if (!data || !split) return [];
  const overlap = overlapWarning(split);
  const levels = config.difficulty_filter.join(" or ");
  return [
    describeData(data, config),
    ...(["practice", "starter"].includes(config.questions_path)
      ? [styled("dim", "its databases and their names are made up, so that nothing can be known by heart")]
      : []),
    ...(heldOut > 0
      ? [
          styled(
            "yellow",
            `no question is marked for evaluation: ${counted(heldOut, "question")} of the training split, drawn by seed ${config.seed}, ${heldOut === 1 ? "is" : "are"} held out; "split": "eval" in the question file chooses others`,
          ),
        ]
      : []),
    ...(split.eval.questions === 0
      ? [styled("yellow", `nothing will be evaluated: no evaluation question is ${levels}; see \`sqlenv data check\``)]
      : []),
    ...splitLines(split),
    ...(isFew(split) ? [styled("yellow", FEW_TEXT)] : []),
    ...(overlap ? [styled("yellow", `${overlap.message}; ${overlap.remedy}`)] : []),
  ];
}

/** Describes an environment on a server. */
function serverLines({ name, url, tasks, action_template, observation_field }: ServerEnvironment): string[] {
  const [training, held] = [tasks("train").length, tasks("eval").length];
  return [
    `${printable(name)} at ${printable(url)}: ${counted(training, "training task")}, ${formatNumber(held)} held out for evaluation`,
    styled(
      "dim",
      `a reply is sent as ${printable(action_template)}; the model reads ${observation_field === null ? "the observation as JSON" : `the observation's field ${printable(observation_field)}`}`,
    ),
    ...(held === 0 ? [styled("yellow", 'nothing will be evaluated: no task is held out ("split": "eval")')] : []),
  ];
}

function modelLine({ engine }: LoadedModel, name: string, { model_name }: GRPOConfig): string {
  const { parameters, trained, variant, threads } = engine.facts;
  if (engine.facts.device === "remote")
    return `${printable(model_name)}: ${formatNumber(parameters)} parameters, adapters learned by ${printable(variant)}`;
  const learned = trained === parameters ? "" : `, ${formatNumber(trained)} learned in adapters`;
  const from = name === model_name ? "" : ` (${basename(name)})`;
  return `${printable(model_name)}${from}: ${formatNumber(parameters)} parameters${learned}, ${variant}, ${threads} threads`;
}

/** Records in warnings.jsonl that output was dropped, since that cannot be printed. */
function lostOutputWarnings(lost: readonly LostOutput[], append: (warning: Warning) => void): TrainerCallback {
  let told = 0;
  return {
    on_step_end({ state: { step } }) {
      for (const { stream, code } of lost.slice(told)) {
        const message = `${stream} cannot be written (${code}): what would be shown there is dropped`;
        const remedy = "nothing else is lost: the training continues, and its folder has it all";
        append({ step, code: "output_lost", message, remedy });
      }
      told = lost.length;
    },
  };
}

/** Starts the run's dashboard if one is requested. */
async function dashboardOf(run: string, flags: TrainFlags, out: Output): Promise<DashboardServer | null> {
  const { dashboard, dashboardPort: port, dashboardHost: host } = flags;
  return dashboard || port !== undefined || host !== undefined
    ? startDashboard({ runs: [run], port, host }, out)
    : null;
}

function interrupted(run: string, signal: AbortSignal, out: Output): void {
  out.endProgress();
  out.line(`stopped and saved; resume with: sqlenv train --resume ${printable(run)}`);
  process.exitCode = interruptedCode(signal);
}

/** Which databases each part of the training has questions on. */
function splitLines({ sft, grpo, eval: evaluated, overlap, seed, unit = "database" }: TrainingSplit): string[] {
  const part = ({ databases, questions }: SplitPart) =>
    `${counted(questions, "question")} on ${counted(databases.length, "database")}`;
  if (sft.databases.length === 0) return [];
  return [
    `split by ${unit}, seed ${seed}: SFT uses ${part(sft)}; GRPO asks ${part(grpo)}${overlap ? ", those of SFT included" : ""}`,
    `evaluation: ${part(evaluated)}`,
  ];
}

/** Questions that SFT needs at least if it has no practice worlds beside them. */
const FEW = 500;
const FEW_TEXT = `SFT has fewer than ${FEW} questions, which a small model learns by heart: sqlenv data make --questions 1200 makes more`;

function isFew({ sft, unit, shares }: TrainingSplit): boolean {
  return unit === "question" && shares.episodes === 1 && sft.questions < FEW;
}

function describeData({ name, questions }: DataSet, { difficulty_filter }: GRPOConfig): string {
  const count = (split: string, filtered: boolean) =>
    questions.filter((q) => q.split === split && (!filtered || difficulty_filter.includes(q.difficulty))).length;
  const part = (split: string) => `${formatNumber(count(split, true))} of ${formatNumber(count(split, false))}`;
  return `${printable(name)}: ${part("train")} training and ${part("eval")} evaluation questions are ${difficulty_filter.join(" or ")}`;
}
