// The model panel: load the model, train it with live progress, compare before and after.
import { signed } from "../../../gym/evaluation/transcript.ts";
import type { Point } from "../../reports/smooth.ts";
import { $, fill, h } from "../../web-shared/dom.ts";
import type { EpisodeState } from "./episode-state.ts";
import { episodeNode } from "./episode-view.ts";
import { drawRewardChart } from "./reward-chart.ts";
import type { Client } from "./worker-client.ts";
import type { Evaluation, ModelFacts, Replay, WorkerEvent } from "./worker-protocol.ts";

const SHOWN_STEPS = 60; // rows in the table of steps

export interface ModelPanel {
  /** Loads the model unless it is loaded. */
  ready(): Promise<void>;
  readonly training: boolean;
  onEvent(event: WorkerEvent): void;
}

/** The default learning rate for a user's model; the page's default is for the small starter model. */
const OWN_RATE = "1e-4";

/** Wires the panel; `run` executes an action and shows its error. */
export function createModelPanel(
  client: Client,
  episode: EpisodeState,
  run: (work: () => Promise<void>) => void,
  changed: () => void,
): ModelPanel {
  const note = $("model-note", HTMLElement);
  const bar = $("loading", HTMLProgressElement);
  const trainNote = $("train-note", HTMLElement);
  const [trainButton, stopButton] = [$("train", HTMLButtonElement), $("stop", HTMLButtonElement)];
  const keepButton = $("keep", HTMLButtonElement);
  const rate = $("train-rate", HTMLInputElement);
  let loading: Promise<void> | undefined;
  let training = false;
  let curve = emptyCurve();

  const load = (from: string | readonly File[] = new URL("model/", document.baseURI).href): Promise<void> => {
    loading = loadFrom(from).catch((error: unknown) => {
      loading = undefined; // allows another try
      throw error;
    });
    return loading;
  };
  const loadFrom = async (from: string | readonly File[]) => {
    bar.hidden = false;
    bar.removeAttribute("value");
    note.textContent = "Loading the model…";
    let facts: ModelFacts;
    try {
      facts = await client.call("load", from);
    } catch (error) {
      note.textContent = "The model could not be loaded.";
      throw error;
    } finally {
      bar.hidden = true;
    }
    const { name, parameters, threads, variant } = facts;
    const size = parameters >= 1e6 ? `${(parameters / 1e6).toFixed(1)}M` : `${Math.round(parameters / 1e3)}k`;
    note.textContent = `${name}: ${size} parameters, ${threads === 1 ? "one thread" : `${threads} threads`}, ${variant}.`;
    $("load", HTMLButtonElement).textContent = "Load it again";
    const isUntouched = [rate.defaultValue, OWN_RATE].includes(rate.value);
    if (isUntouched) rate.value = typeof from === "string" ? rate.defaultValue : OWN_RATE;
    keepButton.hidden = true;
    changed();
  };
  const ready = () => loading ?? load();

  const number = (id: string) => Number($(id, HTMLInputElement).value);
  const train = async () => {
    await ready();
    training = true;
    changed();
    curve = emptyCurve();
    curve.steps = Math.max(1, Math.floor(number("train-steps")) || 1);
    [trainButton.disabled, stopButton.disabled] = [true, false];
    fill($("warnings", HTMLElement));
    $("comparison", HTMLElement).hidden = true;
    $("curve", HTMLElement).hidden = false;
    draw();
    try {
      const { before, after, steps } = await client.call("train", {
        steps: curve.steps,
        questions: Math.max(1, Math.floor(number("train-questions")) || 4),
        episodes: Math.max(2, Math.floor(number("train-episodes")) || 8),
        learning_rate: number("train-rate") || Number(rate.defaultValue),
        step_budget: Math.min(8, episode.budget),
        seed: episode.seed,
        watched: episode.started!.question.question_id,
      });
      compare(before, after, steps);
      trainNote.textContent = `${steps === curve.steps ? "Done" : "Stopped"} after ${count(steps, "step")}: ${change(before, after)}.`;
      keepButton.hidden = false;
    } finally {
      training = false;
      [trainButton.disabled, stopButton.disabled] = [false, true];
      changed();
    }
  };

  const draw = () => {
    const { rewards, rights, rows, steps } = curve;
    drawRewardChart(
      $("chart", SVGSVGElement),
      [
        { name: "reward", className: "reward-line", points: rewards },
        { name: "right answers", className: "right-line", points: rights },
      ],
      steps,
    );
    const head = ["step", "reward", "right", "loss", "tokens/s", "s"].map((name) => h("th", {}, name));
    const table = h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows.slice(0, SHOWN_STEPS)));
    fill($("steps", HTMLElement), table);
  };

  const onStep = ({ metrics, timing, episodes }: Extract<WorkerEvent, { event: "step" }>) => {
    const right = metrics["rewards/reward_correctness/mean"] ?? 0;
    curve.rewards.push({ x: metrics.step, y: metrics.reward ?? 0 });
    curve.rights.push({ x: metrics.step, y: right });
    const list: Replay[] = episodes.map((record) => ({
      title: `step ${record.step}, ${record.correctness === 1 ? "right" : "wrong"}, advantage ${signed(record.advantage)}: ${record.question}`,
      record: { ...record, player: `model, step ${record.step}` },
    }));
    const open = h(
      "button",
      { type: "button", class: "name", on: { click: () => episode.show({ list, index: 0, at: 0 }) } },
      String(metrics.step),
    );
    open.title = "Show its episodes";
    const cells = [
      open,
      (metrics.reward ?? 0).toFixed(2),
      `${Math.round(100 * right)} %`,
      (metrics.loss ?? 0).toFixed(3),
    ];
    const speed = [Math.round(timing.tokens_per_s), timing.step_time.toFixed(1)];
    curve.rows.unshift(h("tr", {}, ...[...cells, ...speed].map((cell) => h("td", { class: "number" }, cell))));
    const left = (curve.steps - metrics.step) * timing.step_time;
    trainNote.textContent = `Step ${metrics.step} of ${curve.steps}, ${left < 1 ? "nearly done" : `about ${Math.ceil(left)} s left`}.`;
    draw();
  };

  $("load", HTMLButtonElement).addEventListener("click", () => run(() => load()));
  $("own-model", HTMLInputElement).addEventListener("change", (event) => {
    const files = [...((event.target as HTMLInputElement).files ?? [])];
    if (files.length > 0) run(() => load(files));
  });
  $("training", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    if (!training) run(train);
  });
  stopButton.addEventListener("click", () => run(async () => void (await client.call("stop", null))));
  keepButton.addEventListener("click", () =>
    run(async () => {
      const url = URL.createObjectURL(await client.call("weights", null));
      h("a", { href: url, download: "model.safetensors" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000); // the download may still be reading it
    }),
  );

  return {
    ready,
    get training() {
      return training;
    },
    onEvent(event) {
      if (event.event === "loading" && event.total > 0) [bar.max, bar.value] = [event.total, event.received];
      else if (event.event === "phase") {
        const label = {
          before: "Evaluating before training",
          training: "Training",
          after: "Evaluating after training",
        }[event.phase];
        if (!event.evaluation) trainNote.textContent = `${label}…`;
        else if (event.phase === "before") compare(event.evaluation, null, curve.steps);
      } else if (event.event === "warning") {
        const { message, remedy } = event.warning;
        $("warnings", HTMLElement).append(h("p", { class: "warning" }, `${message}; ${remedy}`));
      } else if (event.event === "step") onStep(event);
    },
  };
}

interface TrainingCurve {
  steps: number;
  readonly rewards: Point[];
  readonly rights: Point[];
  /** Newest first. */
  readonly rows: HTMLElement[];
}

function emptyCurve(): TrainingCurve {
  return { steps: 1, rewards: [], rights: [], rows: [] };
}

/** The watched question side by side; `after` is null during training. */
function compare(before: Evaluation, after: Evaluation | null, steps: number): void {
  $("comparison", HTMLElement).hidden = false;
  $("comparison-title", HTMLElement).textContent = `Before and after ${count(steps, "step")} of training`;
  $("comparison-note", HTMLElement).textContent = after
    ? `${before.episode.question} (${change(before, after)})`
    : before.episode.question;
  const later = after ? episodeNode(after.episode, "After") : h("p", { class: "note" }, "After: once training ends.");
  fill($("sides", HTMLElement), episodeNode(before.episode, "Before"), later);
}

function change(before: Evaluation, after: Evaluation): string {
  return `right on ${before.of} other questions: ${before.right} before, ${after.right} after`;
}

function count(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? "" : "s"}`;
}
