// The model panel: loads the model on request, and trains it by the one button at the top or with custom settings.
import { $, h } from "../../web-shared/dom.ts";
import type { EpisodeState } from "./episode-state.ts";
import { LearningView } from "./learning-view.ts";
import { count, tokensPerSecond } from "./rate.ts";
import type { Client } from "./worker-client.ts";
import {
  type Calls,
  type DataChoice,
  DEVICE_WISHES,
  type ModelChoice,
  type ModelFacts,
  type TeachingChoice,
  type TrainingChoice,
  type WorkerEvent,
} from "./worker-protocol.ts";

type TrainingResult = Calls["train"]["result"];

export interface ModelPanel {
  /** Loads the model unless it is loaded. */
  ready(): Promise<void>;
  readonly training: boolean;
  /** Fine-tunes the model on demonstrations of the questions about the visitor's data. */
  teach(choice: Omit<TeachingChoice, "learning_rate">): Promise<void>;
  onEvent(event: WorkerEvent): void;
}

/** The default learning rate for a user's model; the page's default is for the small starter model. */
const OWN_RATE = "1e-4";

/** The learning rate of demonstrations for a model with fewer parameters than this; OWN_RATE for others. */
const SMALL = 50e6;
const SMALL_RATE = 1e-3;

/** What "Watch it learn" trains on, and the question it shows, whose database has no training questions. */
const DEMO: { readonly data: DataChoice; readonly question: string } & Omit<TrainingChoice, "watched"> = {
  data: { kind: "starter", seed: 42 },
  question: "watchtower_set_42_20_eval_2",
  steps: 6,
  questions: 4,
  episodes: 8,
  learning_rate: 1.5e-3,
  step_budget: 8,
  seed: 0,
};

/** Wires the panel; `run` executes an action and shows its error. */
export function createModelPanel(
  client: Client,
  episode: EpisodeState,
  run: (work: () => Promise<void>) => void,
  changed: () => void,
): ModelPanel {
  const note = $("model-note", HTMLElement);
  const speed = $("model-speed", HTMLElement);
  const bar = $("loading", HTMLProgressElement);
  const [trainButton, stopButton] = [$("train", HTMLButtonElement), $("stop", HTMLButtonElement)];
  const [watchButton, keepButton] = [$("watch", HTMLButtonElement), $("keep", HTMLButtonElement)];
  const rate = $("train-rate", HTMLInputElement);
  const view = new LearningView((list) => {
    episode.show({ list, index: 0, at: 0 });
    $("replay-bar", HTMLElement).scrollIntoView({ block: "center" });
  });
  let loading: Promise<void> | undefined;
  /** Whether the loaded model is the page's own, as it was served. */
  let isUntrained = false;
  let training = false;

  const device = $("device", HTMLSelectElement);
  const named = new URLSearchParams(location.search).get("device");
  device.value = DEVICE_WISHES.find((wish) => wish === named) ?? "auto";

  const load = (from: ModelChoice["from"] = new URL("model/", document.baseURI).href): Promise<void> => {
    loading = loadFrom(from).catch((error: unknown) => {
      loading = undefined; // allows another try
      throw error;
    });
    return loading;
  };
  let parameters = 0;
  const show = (facts: ModelFacts) => {
    const { name, device: place, variant, noGpu } = facts;
    parameters = facts.parameters;
    const size = parameters >= 1e6 ? `${(parameters / 1e6).toFixed(1)}M` : `${Math.round(parameters / 1e3)}k`;
    const why = noGpu === undefined ? "" : ` No GPU is used: ${noGpu}.`;
    note.textContent = `${name || "The page's model"}: ${size} parameters, on ${place}.${why}`;
    note.title = `device: ${variant}`;
    speed.textContent = "";
    view.device = place;
  };
  const loadFrom = async (from: ModelChoice["from"]) => {
    bar.hidden = false;
    bar.removeAttribute("value");
    note.textContent = "Loading the model…";
    let facts: ModelFacts;
    try {
      facts = await client.call("load", { from, device: device.value as ModelChoice["device"] });
    } catch (error) {
      note.textContent = "The model could not be loaded.";
      throw error;
    } finally {
      bar.hidden = true;
    }
    show(facts);
    $("load", HTMLButtonElement).textContent = "Load it again, untrained";
    const isOwn = typeof from !== "string";
    isUntrained = !isOwn;
    const isUntouched = [rate.defaultValue, OWN_RATE].includes(rate.value);
    if (isUntouched) rate.value = isOwn ? OWN_RATE : rate.defaultValue;
    keepButton.hidden = true;
    changed();
  };
  const ready = () => loading ?? load();

  const setTraining = (value: boolean) => {
    training = value;
    for (const one of [trainButton, watchButton, $("load", HTMLButtonElement)]) one.disabled = value;
    [stopButton.disabled, stopButton.hidden, watchButton.hidden] = [!value, !value, value];
    changed();
  };
  /** Shows a training; `call` runs it. */
  const showTraining = async (kind: "trained" | "taught", steps: number, call: () => Promise<TrainingResult>) => {
    isUntrained = false;
    view.begin(steps, kind);
    view.end(await call());
    keepButton.hidden = false;
    watchButton.textContent = "▶ Watch it again";
  };
  const train = (choice: TrainingChoice) => showTraining("trained", choice.steps, () => client.call("train", choice));
  /** Runs a training from its preparations to its end. */
  const whileTraining = async (work: () => Promise<void>) => {
    if (training) return;
    setTraining(true);
    try {
      await work();
    } catch (error) {
      view.say("");
      throw error;
    } finally {
      view.close();
      setTraining(false);
    }
  };
  const watch = () =>
    whileTraining(async () => {
      view.say("Loading the model and its practice databases…");
      await (isUntrained ? ready() : load());
      await episode.open(DEMO.data);
      const { data: _, question, ...choice } = DEMO;
      await episode.begin({ question_id: question });
      await train({ ...choice, watched: question });
    });

  const number = (id: string) => Number($(id, HTMLInputElement).value);
  const trainAsSet = () =>
    whileTraining(async () => {
      await ready();
      $("learning", HTMLElement).scrollIntoView({ block: "nearest" });
      await train({
        steps: Math.max(1, Math.floor(number("train-steps")) || 1),
        questions: Math.max(1, Math.floor(number("train-questions")) || 4),
        episodes: Math.max(2, Math.floor(number("train-episodes")) || 8),
        learning_rate: number("train-rate") || Number(rate.defaultValue),
        step_budget: Math.min(8, episode.budget),
        seed: episode.seed,
        watched: episode.started!.question.question_id,
      });
    });

  watchButton.addEventListener("click", () => run(watch));
  $("load", HTMLButtonElement).addEventListener("click", () => run(() => load()));
  $("own-model", HTMLInputElement).addEventListener("change", (event) => {
    const files = [...((event.target as HTMLInputElement).files ?? [])];
    if (files.length > 0) run(() => load(files));
  });
  $("training", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    run(trainAsSet);
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
    teach: (choice) =>
      whileTraining(async () => {
        await ready();
        $("learning", HTMLElement).scrollIntoView({ block: "nearest" });
        const learning_rate = parameters < SMALL ? SMALL_RATE : Number(OWN_RATE);
        await showTraining("taught", choice.steps, () => client.call("teach", { ...choice, learning_rate }));
      }),
    get training() {
      return training;
    },
    onEvent(event) {
      if (event.event === "loading") {
        if (event.total > 0) [bar.max, bar.value] = [event.total, event.received];
      } else if (event.event === "replied") {
        speed.textContent = `Its last reply: ${count(event.tokens, "token")}, ${tokensPerSecond(event.tokens, event.seconds)}.`;
      } else if (event.event === "moved") {
        show(event.facts);
        keepButton.hidden = true;
        isUntrained = event.facts.name === "";
        if (training && event.repeats) view.restart(`The GPU failed (${event.why}). The CPU starts over.`);
      } else view.onEvent(event);
    },
  };
}
