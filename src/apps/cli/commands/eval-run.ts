// `sqlenv eval --run`: a finished training's model, evaluated again as the training evaluated it.
import { closeSync, openSync, writeFileSync } from "node:fs";
import type { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import { rulesId, rulesOf } from "../../../gym/env/index.ts";
import { buildReport, type EpisodeRecord, formatTranscript, type Summary } from "../../../gym/evaluation/index.ts";
import { promptId } from "../../../gym/players/index.ts";
import type { Evaluation } from "../../../rl/run/records.ts";
import { withInterval } from "../../reports/evaluation-summary.ts";
import { type DeviceFlags, deviceOptions } from "../options/device.ts";
import { interruptedCode, interruptSignal } from "../terminal/interrupt.ts";
import { surviveLostOutput } from "../terminal/lost-output.ts";
import { counted, drawTable, output, printable, styled } from "../terminal/output.ts";
import { checkWritable } from "../terminal/writable.ts";
import { drawReport } from "./eval-table.ts";

interface EvalRunFlags extends DeviceFlags {
  readonly out?: string;
  readonly show: number;
  readonly json?: boolean;
  readonly server?: string;
}

/** Options that do not change a run's evaluation. */
const ALLOWED = ["run", "out", "show", "json", "device", "precision", "threads", "maxGpuMemory", "server"];

/** Refuses options that the run decides. */
export function checkRunFlags(command: Command): void {
  const given = command.options.find(
    (option) =>
      !ALLOWED.includes(option.attributeName()) && command.getOptionValueSource(option.attributeName()) === "cli",
  );
  if (given?.long)
    throw new UsageError({
      what: "--run takes everything from the run and cannot be combined with",
      value: given.long,
      remedy: "leave it out, or evaluate RUN/model with --player model --model RUN/model",
    });
}

/** Evaluates the run's model and prints the result beside that of the training. */
export async function evaluateRunFolder(run: string, flags: EvalRunFlags): Promise<void> {
  const out = output(flags);
  const signal = interruptSignal();
  if (flags.out !== undefined) {
    checkWritable("--out", flags.out);
    surviveLostOutput();
  }
  const greedy: EpisodeRecord[] = [];
  let file: number | undefined;
  let shown = 0;
  const { evaluateRun } = await import("../../../rl/run/evaluate-run.node.ts"); // other evaluations need no trainer
  const evaluated = await evaluateRun(run, {
    engine: deviceFlags(flags),
    env: flags.server,
    signal,
    onEpisode: (record, decoding) => {
      if (decoding !== "greedy") return;
      greedy.push(record);
      if (flags.out !== undefined) file ??= openSync(flags.out, "w");
      if (file !== undefined) writeFileSync(file, `${JSON.stringify(record)}\n`);
      if (shown++ < flags.show) out.line(`${formatTranscript(record).split("\n").map(printable).join("\n")}\n`);
    },
    onProgress: (done, total) => out.progress(`${run}: ${done} of ${total} episodes`),
    onNote: (text) => out.line(styled("yellow", printable(text))),
  })
    .catch((error: unknown) => {
      if (signal.aborted && error === signal.reason) return null;
      throw error;
    })
    .finally(() => {
      out.endProgress();
      if (file !== undefined) closeSync(file);
    });
  if (!evaluated) {
    out.line(styled("yellow", "interrupted before the end; nothing is reported"));
    process.exitCode = interruptedCode(signal);
    return;
  }
  const { model, config, data, evaluation, recorded } = evaluated;
  const isSql = evaluated.prompt === undefined;
  const step_budget = config.eval_step_budget ?? config.step_budget;
  const prompt = evaluated.prompt ?? promptId({ prompt: config.prompt, shots: config.shots });
  out.line(
    `${styled("bold", printable(model))} (prompt ${prompt}) on ${printable(data)}, eval split, seed ${config.seed}, ${counted(step_budget, "action")} per episode, ${counted(config.max_new_tokens, "token")} per turn${isSql ? `, rules ${rulesId(rulesOf(config))}` : ""}`,
  );
  const agrees =
    recorded && rowsOf(evaluation, isSql).every(({ summary }, i) => same(summary, rowsOf(recorded, isSql)[i]!.summary));
  const rows = rowsOf(evaluation, isSql).flatMap(({ name, summary }, i) => {
    if (summary.episodes === 0) return [];
    const was = recorded && rowsOf(recorded, isSql)[i]!.summary;
    return [[name, withInterval(summary), was ? withInterval(was) : "–", String(summary.episodes).padStart(8)]];
  });
  if (rows.length === 0) out.line(styled("yellow", "nothing was evaluated: the data has no evaluation questions"));
  else {
    out.line(drawTable(["success on", "now", "in the report", "episodes"], rows));
    out.line(verdict(agrees));
    if (isSql) out.line(`\n${styled("bold", "greedy episodes")}`);
    if (isSql) drawReport(buildReport(greedy, { player: model }), out);
  }
  out.result({ run, model, data, prompt, step_budget, evaluation, recorded, agrees });
}

function verdict(agrees: boolean | null): string {
  if (agrees === null) return styled("yellow", "the run has no results.json to compare with");
  if (agrees) return styled("green", "the numbers agree with the training's report");
  return styled(
    "yellow",
    "the numbers differ from the training's report: data that changed, a GPU, merged LoRA weights or another version change single answers",
  );
}

/** The options given on the command line; the run decides the rest. */
function deviceFlags({ device, ...flags }: EvalRunFlags) {
  return deviceOptions({ ...flags, ...(device !== undefined && device !== "auto" && { device }) });
}

function rowsOf(evaluation: Evaluation, isSql: boolean): { readonly name: string; readonly summary: Summary }[] {
  return (["unseen", "seen"] as const).flatMap((split) =>
    (["greedy", "sampled"] as const).map((decoding) => ({
      name: `${isSql ? `${split} databases` : `${split === "seen" ? "tasks of training groups" : "held-out tasks"}`}, ${decoding}`,
      summary: evaluation[split][decoding],
    })),
  );
}

function same(now: Summary, then: Summary): boolean {
  return now.episodes === then.episodes && now.success_rate === then.success_rate;
}
