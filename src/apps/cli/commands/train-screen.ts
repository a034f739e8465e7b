// What `sqlenv train` prints: one line per step, the live callback's transcripts, warnings, and at the end what improved.

import {
  type EpisodeLine,
  LiveVisualizationCallback,
  type Phase,
  type Reach,
  type SelfTaughtReport,
  type SftStep,
  type StageReport,
  type TimingLine,
  type TrainerCallback,
  type TrainingResult,
  type TrainingView,
  type Warning,
} from "../../../rl/index.ts";
import {
  accuracyNote,
  accuracyTable,
  behaviourRows,
  evaluationRows,
  headline,
  isScored,
  PAIRED_NOTE,
  pairedTable,
  reachText,
  recipeLines,
  selfTaughtText,
  withInterval,
} from "../../reports/index.ts";
import { drawTable, formatNumber, type Output, printable, styled } from "../terminal/output.ts";

/** Least number of transcripts, and of comparisons of training and evaluation questions, however short a training is. */
const LEAST = { transcripts: 4, comparisons: 2 };

/** What progress lines begin with, where the phase's own name says less. */
const LABELS: Readonly<Partial<Record<Phase, string>>> = {
  base: "untrained",
  sft: "SFT",
  self_taught: "self-taught",
  before: "before GRPO",
  reach: "training questions",
  after: "after GRPO",
};

/** Prints the course of a training. */
export class TrainingScreen implements TrainerCallback {
  readonly #out: Output;
  #seconds: number[] = [];

  constructor(out: Output) {
    this.#out = out;
  }

  phase(phase: Phase): void {
    const words: Readonly<Record<Phase, string>> = {
      base: "evaluating the untrained model",
      sft: "supervised fine-tuning on right episodes",
      self_taught: "a self-taught round: sampling episodes on training questions, then fine-tuning on the right ones",
      random: "playing at random: the random baseline",
      before: "evaluating the model that GRPO begins with",
      reach: "trying training questions several times, to know what reward can reach",
      training: "GRPO",
      after: "evaluating the trained model",
    };
    this.#out.line(styled("dim", `${words[phase]} …`));
  }

  progress(phase: Phase, done: number, total: number): void {
    this.#out.progress(`${LABELS[phase] ?? phase}: ${formatNumber(done)} of ${formatNumber(total)} episodes`);
  }

  /** A step of SFT, of a known number or not: on a terminal each, in a log the first and every tenth. */
  sftStep(phase: Phase, { step, loss }: SftStep, total: number | null): void {
    const of = total === null ? "" : `/${formatNumber(total)}`;
    const line = `${LABELS[phase]}: step ${formatNumber(step)}${of}, loss ${loss.toFixed(3)}`;
    if (process.stderr.isTTY && step !== total) this.#out.progress(line);
    else if (step === 1 || step % 10 === 0 || step === total) this.#out.line(line);
  }

  /** What a stage before GRPO learned from. */
  stageEnd(name: string, report: StageReport | SelfTaughtReport): void {
    if ("solved" in report)
      this.#out.line(`${name.replace(/^self-taught-/, "self-taught round ")}: ${selfTaughtText(report)}`);
  }

  on_step_end(
    { state: { step }, total_steps }: TrainingView,
    { timing, episodes }: { readonly timing: TimingLine; readonly episodes: readonly EpisodeLine[] },
  ): void {
    this.#seconds = [...this.#seconds, timing.step_time].slice(-10);
    const left = ((total_steps - step) * this.#seconds.reduce((a, b) => a + b, 0)) / this.#seconds.length;
    const rewards = episodes.map(({ total_reward }) => total_reward ?? 0);
    const right = episodes.filter(({ correctness }) => correctness === 1).length;
    const line = [
      `step ${String(step).padStart(String(total_steps).length)}/${total_steps}`,
      `reward ${mean(rewards).toFixed(3)}`,
      `right ${String(Math.round((100 * right) / episodes.length)).padStart(3)} %`,
      `${formatNumber(Math.round(timing.tokens_per_s))} tokens/s`,
      `${timing.step_time.toFixed(1)} s`,
      `${minutes(left)} left`,
    ].join("  ");
    // A terminal has one line that changes and keeps every tenth; a log has them all.
    if (process.stderr.isTTY && step % 10 !== 0 && step !== total_steps) this.#out.progress(line);
    else this.#out.line(line);
  }

  on_warning(_: TrainingView, { step, message, remedy }: Warning): void {
    this.#out.line(styled("yellow", `step ${step}: ${message}; ${remedy}`));
  }

  /** What the model can do before it is trained. */
  reach(reach: Reach, warning: Warning | null): void {
    this.#out.line(reachText(reach));
    if (warning) this.#out.line(styled("yellow", `${warning.message}; ${warning.remedy}`));
  }

  /** The live callback of a training of `total` steps, on this screen. */
  live(total: number): LiveVisualizationCallback {
    const every = (steps: number, least: number) => Math.max(1, Math.min(steps, Math.round(total / least)));
    return new LiveVisualizationCallback({
      transcript_every: every(50, LEAST.transcripts),
      success_every: every(100, LEAST.comparisons),
      show: ({ text }) => {
        const lines = text.split("\n").map((line) => `  ${printable(line)}`);
        this.#out.line(lines.join("\n"));
      },
    });
  }

  /** The closing summary. */
  result(result: TrainingResult, files: readonly string[]): void {
    const { run, steps, episodes, tokens, seconds } = result;
    const evaluated = evaluationRows(result).filter((row) => isScored(row));
    const rows = evaluated.map((row) => [
      `${row.split} databases, ${row.decoding}`,
      ...[row.random, row.before, row.after].map(withInterval),
    ]);
    this.#out.line();
    this.#out.line(styled("bold", headline(result)));
    this.#out.line();
    if (evaluated[0]) {
      this.#out.line(drawTable(["right answers", "random", "before", "after"], rows));
      this.#out.line();
      const title = `behaviour on ${evaluated[0].split} databases`;
      this.#out.line(drawTable([title, "random", "before", "after"], behaviourRows(result)));
      this.#out.line();
    }
    const accuracy = accuracyTable(result);
    if (accuracy) {
      this.#out.line(drawTable(accuracy.head, accuracy.rows));
      this.#out.line(styled("dim", accuracyNote(result)));
      this.#out.line();
    }
    const paired = pairedTable(result, true);
    if (paired) {
      this.#out.line(drawTable(paired.head, paired.rows));
      this.#out.line(styled("dim", PAIRED_NOTE));
      this.#out.line();
    }
    for (const line of recipeLines(result)) this.#out.line(line);
    this.#out.line(
      `${formatNumber(steps)} steps, ${formatNumber(episodes)} episodes, ${formatNumber(tokens)} tokens, ${minutes(seconds)}`,
    );
    this.#out.line(`everything is in ${printable(run)}: ${files.join(", ")}`);
  }
}

/** 83 as "1:23". */
export function minutes(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, rest] = [Math.floor(whole / 3600), whole % 3600];
  const text = `${String(Math.floor(rest / 60)).padStart(hours > 0 ? 2 : 1, "0")}:${String(rest % 60).padStart(2, "0")}`;
  return hours > 0 ? `${hours}:${text}` : `${text} min`;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
