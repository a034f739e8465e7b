// The top of the page: one button that trains the model, the rising curve, what the model does, and one question before and now.
import { signed } from "../../../gym/evaluation/transcript.ts";
import { ActionStatsCounter } from "../../reports/action-stats.ts";
import { behaviourShapes } from "../../reports/behaviour-chart.ts";
import type { Point } from "../../reports/smooth.ts";
import { $, fill, h, shapeNode } from "../../web-shared/dom.ts";
import { episodeNode } from "./episode-view.ts";
import { learningResult } from "./learning-result.ts";
import { count, tokensPerSecond } from "./rate.ts";
import { drawRightChart } from "./right-chart.ts";
import type { Calls, Evaluation, Replay, WorkerEvent } from "./worker-protocol.ts";

const SHOWN_STEPS = 60; // rows in the table of steps
const BEHAVIOUR_SIZE = { width: 620, height: 210 } as const;

type StepEvent = Extract<WorkerEvent, { event: "step" }>;

const PHASES = {
  before: "Testing the model before training…",
  training: "Training: it tries each question several times, and repeats what paid…",
  teaching: "Teaching: it is shown the steps to right answers of the training questions…",
  after: "Testing the trained model…",
} as const;

/** Shows one training at a time; `onEpisodes` opens the episodes of a step. */
export class LearningView {
  readonly #note = $("train-note", HTMLElement);
  readonly #bar = $("train-progress", HTMLProgressElement);
  readonly #onEpisodes: (list: readonly Replay[]) => void;
  readonly #speed = $("train-speed", HTMLElement);
  /** Where the model runs, in words. */
  device = "";
  #kind: "trained" | "taught" = "trained";
  #steps = 1;
  #startedAt = 0;
  #tests: Point[] = [];
  #tries: Point[] = [];
  #before: Evaluation | undefined;
  #behaviour = new ActionStatsCounter();
  /** Newest first. */
  #rows: HTMLElement[] = [];

  constructor(onEpisodes: (list: readonly Replay[]) => void) {
    this.#onEpisodes = onEpisodes;
  }

  /** Text beside the button. */
  say(text: string): void {
    this.#note.textContent = text;
  }

  /** Begins to show a training: by rewards ("trained", GRPO) or by demonstrations ("taught", SFT). */
  begin(steps: number, kind = this.#kind): void {
    this.#kind = kind;
    $("curve", HTMLElement).classList.toggle("taught", kind === "taught");
    this.#steps = steps;
    this.#startedAt = performance.now();
    [this.#tests, this.#tries, this.#rows] = [[], [], []];
    this.#before = undefined;
    this.#behaviour = new ActionStatsCounter();
    this.#speed.textContent = "";
    fill($("warnings", HTMLElement));
    fill($("sides", HTMLElement));
    $("comparison-question", HTMLElement).textContent = "";
    $("curve", HTMLElement).hidden = false;
    [this.#bar.hidden, this.#bar.max, this.#bar.value] = [false, steps, 0];
    this.#draw();
  }

  /** Begins the same training anew, with a warning that says why. */
  restart(why: string): void {
    this.begin(this.#steps);
    this.#warn(why);
  }

  end({ before, after, steps }: Calls["train"]["result"]): void {
    const stopped = steps < this.#steps ? ` Stopped after ${count(steps, "step")}.` : "";
    this.say(`${learningResult(before, after)}${stopped}`);
    this.#compare(before, after, `After ${count(steps, "step")} of training`);
  }

  /** Hides the progress bar after a training, successful or not. */
  close(): void {
    this.#bar.hidden = true;
  }

  onEvent(event: WorkerEvent): void {
    if (event.event === "phase") this.say(PHASES[event.phase]);
    else if (event.event === "tested") this.#onTest(event.step, event.evaluation);
    else if (event.event === "step") this.#onStep(event);
    else if (event.event === "taught") {
      const { step, loss, tokens, seconds } = event;
      this.#speed.textContent = `Runs on ${this.device}; in step ${step} it learned from ${tokensPerSecond(tokens, seconds)}, with a loss of ${loss.toFixed(2)}.`;
      this.#progress(step);
    } else if (event.event === "warning") {
      const { message, remedy } = event.warning;
      this.#warn(`${message}; ${remedy}`);
    }
  }

  #warn(text: string): void {
    $("warnings", HTMLElement).append(h("p", { class: "warning" }, text));
  }

  #onTest(step: number, evaluation: Evaluation): void {
    this.#before ??= evaluation;
    this.#tests.push({ x: step, y: evaluation.right / Math.max(1, evaluation.of) });
    this.#compare(this.#before, step === 0 ? null : evaluation, `Now, after ${count(step, "step")}`);
    this.#draw();
  }

  #onStep({ metrics, timing, episodes }: StepEvent): void {
    const right = metrics["rewards/reward_correctness/mean"] ?? 0;
    this.#tries.push({ x: metrics.step, y: right });
    for (const episode of episodes) this.#behaviour.add(episode);
    const list: Replay[] = episodes.map((record) => ({
      title: `step ${record.step}, ${record.correctness === 1 ? "right" : "wrong"}, advantage ${signed(record.advantage)}: ${record.question}`,
      record: { ...record, player: `model, step ${record.step}` },
    }));
    const open = h(
      "button",
      { type: "button", class: "name", title: "Show its episodes", on: { click: () => this.#onEpisodes(list) } },
      String(metrics.step),
    );
    const cells = [
      ...[open, (metrics.reward ?? 0).toFixed(2), `${Math.round(100 * right)} %`, (metrics.loss ?? 0).toFixed(3)],
      ...[Math.round(timing.tokens_per_s), timing.step_time.toFixed(1)],
    ];
    this.#rows.unshift(h("tr", {}, ...cells.map((cell) => h("td", { class: "number" }, cell))));
    const sampled = episodes.reduce((sum, { completion_tokens }) => sum + completion_tokens, 0);
    const learned = timing.tokens_per_s * timing.step_time;
    this.#speed.textContent = `Runs on ${this.device}; in step ${metrics.step} it sampled ${tokensPerSecond(sampled, timing.sampling)} and learned from ${tokensPerSecond(learned, timing.training)}.`;
    this.#progress(metrics.step);
    this.#draw();
  }

  #progress(step: number): void {
    this.#bar.value = step;
    const left = ((this.#steps - step) * (performance.now() - this.#startedAt)) / 1000 / step;
    this.say(`Step ${step} of ${this.#steps}, ${left < 1 ? "nearly done" : `about ${Math.ceil(left)} s left`}.`);
  }

  #draw(): void {
    drawRightChart(
      $("chart", SVGSVGElement),
      [
        { name: "in training", className: "tries-line", points: this.#tries },
        { name: "in tests", className: "tests-line", points: this.#tests },
      ],
      this.#steps,
    );
    const { width, height } = BEHAVIOUR_SIZE;
    const behaviour = $("behaviour", SVGSVGElement);
    behaviour.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const options = { inline: true, width, height, total_steps: this.#steps, note: "in training" };
    fill(behaviour, ...behaviourShapes(this.#behaviour.list(), options).map(shapeNode));
    const head = ["step", "reward", "right", "loss", "tokens/s", "s"].map((name) => h("th", {}, name));
    const body = this.#rows.slice(0, SHOWN_STEPS);
    fill($("steps", HTMLElement), h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)));
  }

  /** The watched question side by side; `now` is null before the first step. */
  #compare(before: Evaluation, now: Evaluation | null, title: string): void {
    $("comparison-question", HTMLElement).textContent = before.episode.question;
    const later = now
      ? episodeNode(now.episode, title)
      : h("p", { class: "note" }, "After each step the model plays the question again; you see it here.");
    fill($("sides", HTMLElement), episodeNode(before.episode, "Before training"), later);
  }
}
