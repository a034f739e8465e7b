// What `sqlenv train` prints: one line per step, the live callback's transcripts, warnings, and at the end what improved.

import { DATA_SET_NAMES } from "../../../gym/data/index.ts";
import {
  type EpisodeLine,
  type GRPOConfig,
  LiveVisualizationCallback,
  type PassAtK,
  type Phase,
  type RewardPoint,
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
  behaviourTitle,
  evaluationRows,
  headline,
  isScored,
  pairedNote,
  pairedTable,
  passAtKText,
  recipeLines,
  selfTaughtText,
  withInterval,
} from "../../reports/index.ts";
import { counted, drawTable, formatNumber, type Output, printable, styled } from "../terminal/output.ts";

/** Minimum numbers of transcripts, and of comparisons of training and evaluation questions, in a short training. */
const LEAST = { transcripts: 4, comparisons: 2 };

/** Labels of progress lines, for phases whose own name says too little. */
const LABELS: Readonly<Partial<Record<Phase, string>>> = {
  base: "untrained",
  sft: "SFT",
  self_taught: "self-taught",
  before: "before GRPO",
  pass_at_k: "training questions",
  after: "after GRPO",
};

/** Prints the course of a training. */
export class TrainingScreen implements TrainerCallback {
  readonly #out: Output;
  #seconds: number[] = [];
  #shown = "";
  #since = performance.now();
  #frame = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(out: Output) {
    this.#out = out;
    if (!process.stderr.isTTY) return;
    // Redraws regularly, so that something moves while a model loads or the first step is played.
    this.#timer = setInterval(() => this.#draw(), 120);
    this.#timer.unref();
  }

  /** Stops drawing progress. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#out.endProgress();
  }

  /** Shows what is being done, with the seconds since the last change. */
  #progress(text: string): void {
    if (text !== this.#shown) this.#since = performance.now();
    this.#shown = text;
    this.#draw();
  }

  #draw(): void {
    if (this.#shown === "" || !process.stderr.isTTY) return;
    const seconds = Math.floor((performance.now() - this.#since) / 1000);
    const waited = seconds >= 2 ? styled("dim", `  ${seconds} s`) : "";
    this.#out.progress(`${styled("cyan", FRAMES[this.#frame++ % FRAMES.length]!)} ${this.#shown}${waited}`);
  }

  phase(phase: Phase): void {
    const words: Readonly<Record<Phase, string>> = {
      base: "evaluating the untrained model",
      sft: "supervised fine-tuning on right episodes",
      self_taught: "a self-taught round: sampling episodes on training questions, then fine-tuning on the right ones",
      random: "playing at random: the random baseline",
      before: "evaluating the model that GRPO begins with",
      pass_at_k: "trying training questions several times, to know what reward can reach",
      training: "GRPO",
      after: "evaluating the trained model",
    };
    this.#out.line(`${styled("cyan", "▸")} ${words[phase]}`);
    this.#progress(phase === "training" ? "playing the first episodes" : (LABELS[phase] ?? phase));
  }

  progress(phase: Phase, done: number, total: number): void {
    const text = `${LABELS[phase] ?? phase}: ${formatNumber(done)} of ${formatNumber(total)} episodes`;
    this.#progress(`${drawBar(done / total)} ${text}`);
  }

  /** Prints an SFT step; `total` is null if unknown. A terminal shows every step, a log the first and every tenth. */
  sftStep(phase: Phase, { step, loss }: SftStep, total: number | null): void {
    const of = total === null ? "" : `/${formatNumber(total)}`;
    const line = `${LABELS[phase]}: step ${formatNumber(step)}${of}, loss ${loss.toFixed(3)}`;
    if (process.stderr.isTTY && step !== total)
      this.#progress(total === null ? line : `${drawBar(step / total)} ${line}`);
    else if (step === 1 || step % 10 === 0 || step === total) this.#out.line(line);
  }

  /** Prints what a self-taught round learned from. */
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
    const share = right / Math.max(1, episodes.length);
    const parts = [
      `step ${String(step).padStart(String(total_steps).length)}/${total_steps}`,
      `reward ${mean(rewards).toFixed(3)}`,
      styled(shade(share), `right ${String(Math.round(100 * share)).padStart(3)} %`),
    ];
    const rate = `${formatNumber(Math.round(timing.tokens_per_s))} tokens/s`;
    const time = [`${timing.step_time.toFixed(1)} s`, `${minutes(left)} left`];
    // A terminal overwrites one line with every step and keeps every tenth; a log gets all of them.
    if (process.stderr.isTTY && step !== total_steps)
      this.#progress([`${drawBar(step / total_steps)} ${parts[0]}`, ...parts.slice(1), ...time].join("  "));
    else this.#shown = "";
    if (!process.stderr.isTTY || step % 10 === 0 || step === total_steps)
      this.#out.line([...parts, rate, ...time].join("  "));
  }

  on_warning(_: TrainingView, { step, message, remedy }: Warning): void {
    this.#out.line(styled("yellow", `step ${step}: ${message}; ${remedy}`));
  }

  /** Prints the model's pass@k before training. */
  passAtK(measured: PassAtK, warning: Warning | null): void {
    this.#out.line(passAtKText(measured));
    if (warning) this.#out.line(styled("yellow", `${warning.message}; ${warning.remedy}`));
  }

  /** Makes a live callback for a training of `total` steps that prints to this screen. */
  live(total: number, rewards: readonly RewardPoint[] = []): LiveVisualizationCallback {
    const every = (steps: number, least: number) => Math.max(1, Math.min(steps, Math.round(total / least)));
    return new LiveVisualizationCallback({
      rewards,
      transcript_every: every(50, LEAST.transcripts),
      success_every: every(100, LEAST.comparisons),
      show: ({ text }) => {
        const lines = text.split("\n").map((line) => `  ${coloured(printable(line))}`);
        this.#out.line(lines.join("\n"));
      },
    });
  }

  /** The closing summary; `databases` are the names of the data's. */
  result(result: TrainingResult, files: readonly string[], config: GRPOConfig, databases: readonly string[]): void {
    this.stop();
    const { run, steps, episodes, tokens, seconds } = result;
    const budget = config.eval_step_budget ?? config.step_budget;
    const same = `--data ${config.questions_path}${config.db_dir === "bundled" ? "" : ` --db-dir ${config.db_dir}`}`;
    const isSql = !result.environment;
    const best = result.after.unseen.greedy.success_rate ?? result.after.seen.greedy.success_rate ?? 0;
    const worst = result.before.unseen.greedy.success_rate ?? result.before.seen.greedy.success_rate ?? 0;
    const evaluated = evaluationRows(result).filter((row) => isScored(row));
    const rows = evaluated.map((row) => [
      isSql ? `${row.split}, ${row.decoding}` : row.name,
      ...(isSql ? [row.random, row.before, row.after] : [row.before, row.after]).map((part) =>
        withInterval(part).replaceAll(" %", "").replace(" – ", "–"),
      ),
    ]);
    this.#out.line();
    this.#out.line(styled("bold", styled(best > worst ? "green" : "yellow", headline(result))));
    this.#out.line();
    if (evaluated[0]) {
      const columns = isSql ? ["random", "before", "after"] : ["before", "after"];
      this.#out.line(drawTable([isSql ? "right (%), databases" : "solved (%), tasks", ...columns], rows));
      this.#out.line();
      const behaviour = behaviourRows(result);
      if (behaviour.length > 0) this.#out.line(`${drawTable([behaviourTitle(result), ...columns], behaviour)}\n`);
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
      this.#out.line(styled("dim", pairedNote(result)));
      this.#out.line();
    }
    for (const line of recipeLines(result)) this.#out.line(line);
    this.#out.line(
      `${counted(steps, "step")}, ${counted(episodes, "episode")} of at most ${counted(budget, "action")}, ${counted(tokens, "token")}, ${minutes(seconds)}`,
    );
    this.#out.line(`everything is in ${printable(run)}: ${files.join(", ")}`);
    const next = [
      ...(isSql && isOwnData(config)
        ? [["ask it a question of your own", askCommand(run, same, databases)] as const]
        : []),
      ["see it in the browser", `sqlenv report ${run} --serve`],
      ...(isSql ? [["watch the model play", `sqlenv play --player model --model ${run}/model ${same}`] as const] : []),
      ["measure it again", `sqlenv eval --run ${run}`],
    ] as const;
    this.#out.line();
    this.#out.line(styled("bold", "next:"));
    for (const [what, command] of next) {
      this.#out.line(`  ${what}:`);
      this.#out.line(styled("cyan", `    ${printable(command)}`));
    }
  }
}

/** Whether the data are the user's, not generated or the selection of Spider. */
function isOwnData({ questions_path }: GRPOConfig): boolean {
  return !DATA_SET_NAMES.some((name) => name === questions_path.split(":")[0]);
}

/** The command that asks a run's model about the data. */
function askCommand(run: string, data: string, databases: readonly string[]): string {
  return `sqlenv ask ${data}${databases.length > 1 ? ` --database ${databases[0]}` : ""} --model ${run}`;
}

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const BAR = 16; // characters of a progress bar

/** A share as a bar. */
function drawBar(share: number): string {
  const full = Math.max(0, Math.min(BAR, Math.round(BAR * share)));
  return styled("green", "█".repeat(full)) + styled("dim", "░".repeat(BAR - full));
}

/** The colour of a share of right episodes. */
function shade(share: number): "red" | "yellow" | "green" {
  return share < 1 / 3 ? "red" : share < 2 / 3 ? "yellow" : "green";
}

/** A line of a transcript or of the live view, with its verdict in colour. */
function coloured(line: string): string {
  if (/^\s*(?:right|correct)\b/i.test(line)) return styled("green", line);
  if (/^\s*(?:wrong|error|incorrect)\b/i.test(line)) return styled("red", line);
  return /^step \d+/.test(line) ? styled("bold", line) : line;
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
