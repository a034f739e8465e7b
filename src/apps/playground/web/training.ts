// The model's panel: loading it, training it while one watches, and what it did before and after.
import { signed } from "../../../gym/evaluation/transcript.ts";
import { drawChart, type Point } from "./chart.ts";
import type { Client } from "./client.ts";
import { $, fill, h } from "./dom.ts";
import { episodeNode } from "./episode.ts";
import type { Game } from "./game.ts";
import type { ModelFacts, News, Replay, Standing } from "./protocol.ts";

const SHOWN_STEPS = 60; // rows of the table of steps

export interface ModelPanel {
  /** Loads the model unless it is there. */
  ready(): Promise<void>;
  readonly training: boolean;
  hear(news: News): void;
}

/** The learning rate proposed for a model of one's own; the page's is for the starter, which is small. */
const OWN_RATE = "1e-4";

/** Wires the panel; `run` does things and shows what goes wrong. */
export function createModelPanel(
  client: Client,
  game: Game,
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
  let course = emptyRun();

  const load = (from: string | readonly File[] = new URL("model/", document.baseURI).href): Promise<void> => {
    loading = loadFrom(from).catch((error: unknown) => {
      loading = undefined; // it may be tried again
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
    course = emptyRun();
    course.steps = Math.max(1, Math.floor(number("train-steps")) || 1);
    [trainButton.disabled, stopButton.disabled] = [true, false];
    fill($("warnings", HTMLElement));
    $("comparison", HTMLElement).hidden = true;
    $("curve", HTMLElement).hidden = false;
    draw();
    try {
      const { before, after, steps } = await client.call("train", {
        steps: course.steps,
        questions: Math.max(1, Math.floor(number("train-questions")) || 4),
        episodes: Math.max(2, Math.floor(number("train-episodes")) || 8),
        learning_rate: number("train-rate") || Number(rate.defaultValue),
        step_budget: Math.min(8, game.budget),
        seed: game.seed,
        watched: game.started!.question.question_id,
      });
      compare(before, after, steps);
      trainNote.textContent = `${steps === course.steps ? "Done" : "Stopped"} after ${count(steps, "step")}: ${change(before, after)}.`;
      keepButton.hidden = false;
    } finally {
      training = false;
      [trainButton.disabled, stopButton.disabled] = [false, true];
      changed();
    }
  };

  const draw = () => {
    const { rewards, rights, rows, steps } = course;
    drawChart(
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

  const onStep = ({ metrics, timing, episodes }: Extract<News, { news: "step" }>) => {
    const right = metrics["rewards/reward_correctness/mean"] ?? 0;
    course.rewards.push({ x: metrics.step, y: metrics.reward ?? 0 });
    course.rights.push({ x: metrics.step, y: right });
    const list: Replay[] = episodes.map((record) => ({
      title: `step ${record.step}, ${record.correctness === 1 ? "right" : "wrong"}, advantage ${signed(record.advantage)}: ${record.question}`,
      record: { ...record, player: `model, step ${record.step}` },
    }));
    const open = h(
      "button",
      { type: "button", class: "name", onclick: () => game.show({ list, index: 0, at: 0 }) },
      String(metrics.step),
    );
    open.title = "See its episodes";
    const cells = [
      open,
      (metrics.reward ?? 0).toFixed(2),
      `${Math.round(100 * right)} %`,
      (metrics.loss ?? 0).toFixed(3),
    ];
    const speed = [Math.round(timing.tokens_per_s), timing.step_time.toFixed(1)];
    course.rows.unshift(h("tr", {}, ...[...cells, ...speed].map((cell) => h("td", { class: "number" }, cell))));
    const left = (course.steps - metrics.step) * timing.step_time;
    trainNote.textContent = `Step ${metrics.step} of ${course.steps}, ${left < 1 ? "nearly done" : `about ${Math.ceil(left)} s left`}.`;
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
      setTimeout(() => URL.revokeObjectURL(url), 60_000); // the download reads it for a while
    }),
  );

  return {
    ready,
    get training() {
      return training;
    },
    hear(news) {
      if (news.news === "loading" && news.total > 0) [bar.max, bar.value] = [news.total, news.received];
      else if (news.news === "phase") {
        const words = { before: "Playing as it is", training: "Training", after: "Playing again" }[news.phase];
        if (!news.standing) trainNote.textContent = `${words}…`;
        else if (news.phase === "before") compare(news.standing, null, course.steps);
      } else if (news.news === "warning") {
        const { message, remedy } = news.warning;
        $("warnings", HTMLElement).append(h("p", { class: "warning" }, `${message}; ${remedy}`));
      } else if (news.news === "step") onStep(news);
    },
  };
}

interface Run {
  steps: number;
  readonly rewards: Point[];
  readonly rights: Point[];
  /** Newest first. */
  readonly rows: HTMLElement[];
}

function emptyRun(): Run {
  return { steps: 1, rewards: [], rights: [], rows: [] };
}

/** The watched question side by side; `after` is null while the training goes on. */
function compare(before: Standing, after: Standing | null, steps: number): void {
  $("comparison", HTMLElement).hidden = false;
  $("comparison-title", HTMLElement).textContent = `Before and after ${count(steps, "step")} of training`;
  $("comparison-note", HTMLElement).textContent = after
    ? `${before.episode.question} (${change(before, after)})`
    : before.episode.question;
  const later = after ? episodeNode(after.episode, "After") : h("p", { class: "note" }, "After: when it has trained.");
  fill($("sides", HTMLElement), episodeNode(before.episode, "Before"), later);
}

function change(before: Standing, after: Standing): string {
  return `right on ${before.of} other questions: ${before.right} before, ${after.right} after`;
}

function count(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? "" : "s"}`;
}
