// The question picker: data set and its seed, database, difficulty, and the question, chosen or drawn by a seed.
import { $, fillOptions } from "../../web-shared/dom.ts";
import type { EpisodeState } from "./episode-state.ts";
import { DATA_KINDS, type DataChoice } from "./worker-protocol.ts";

const DATA_LABELS: Readonly<Record<DataChoice["kind"], string>> = {
  bundled: "bundled",
  starter: "starter worlds",
  practice: "practice worlds",
};

const INVENTED = "Names in practice worlds are invented on purpose, so that nothing can be known by heart.";

export interface Picker {
  /** Shows the current question and data set. */
  draw(): void;
  /** Draws a question with the next seed. */
  next(): void;
}

/** Wires the form; `run` executes an action and shows its error. */
export function createPicker(episode: EpisodeState, run: (work: () => Promise<void>) => void): Picker {
  const [data, dataSeed] = [$("data", HTMLSelectElement), $("data-seed", HTMLInputElement)];
  const [database, difficulty] = [$("database", HTMLSelectElement), $("difficulty", HTMLSelectElement)];
  const [question, seed] = [$("question", HTMLSelectElement), $("seed", HTMLInputElement)];
  fillOptions(
    data,
    DATA_KINDS.map((kind) => ({ value: kind, text: DATA_LABELS[kind] })),
  );
  fillOptions(difficulty, [
    { value: "", text: "any" },
    ...["easy", "medium", "hard"].map((value) => ({ value, text: value })),
  ]);
  let drawn = "";

  const matching = () =>
    episode.questions.filter(
      (asked) =>
        (database.value === "" || asked.database_name === database.value) &&
        (difficulty.value === "" || asked.difficulty === difficulty.value),
    );
  const listQuestions = () => {
    const chosen = episode.started?.question.question_id;
    const list = matching();
    const shown = list.some(({ question_id }) => question_id === chosen)
      ? list
      : [...episode.questions.filter(({ question_id }) => question_id === chosen), ...list];
    fillOptions(
      question,
      shown.map(({ question_id, question_text }) => ({ value: question_id, text: question_text })),
      chosen,
    );
  };
  const draw = () => {
    const { kind, seed: madeFrom } = episode.data;
    const key = `${kind}:${madeFrom}:${episode.questions.length}`;
    if (key !== drawn) {
      data.value = kind;
      dataSeed.value = String(madeFrom);
      $("data-note", HTMLElement).textContent = kind === "bundled" ? "" : INVENTED;
      const names = [...new Set(episode.questions.map(({ database_name }) => database_name))];
      const unseen = new Set(episode.questions.filter(({ seen }) => !seen).map(({ database_name }) => database_name));
      fillOptions(database, [
        { value: "", text: `any of ${names.length}` },
        ...names.map((name) => ({ value: name, text: unseen.has(name) ? `${name} (not in training)` : name })),
      ]);
      drawn = key;
    }
    if (document.activeElement !== seed) seed.value = String(episode.seed);
    listQuestions();
  };
  const number = (input: HTMLInputElement) => Math.max(0, Math.min(999_999_999, Math.floor(Number(input.value) || 0)));
  const reopen = () =>
    run(async () => {
      await episode.open({ kind: data.value as DataChoice["kind"], seed: number(dataSeed) });
      await episode.begin({ seed: episode.seed });
    });
  const onFilter = () => {
    const first = matching()[0];
    if (first) run(() => episode.begin({ question_id: first.question_id }));
    else listQuestions();
  };
  const bySeed = (value: number) => {
    episode.seed = value;
    run(() => episode.begin({ seed: value }));
  };

  data.addEventListener("change", reopen);
  dataSeed.addEventListener("change", reopen);
  database.addEventListener("change", onFilter);
  difficulty.addEventListener("change", onFilter);
  question.addEventListener("change", () => run(() => episode.begin({ question_id: question.value })));
  $("draw", HTMLButtonElement).addEventListener("click", () => bySeed(number(seed)));
  const next = () => bySeed(number(seed) + 1);
  $("next", HTMLButtonElement).addEventListener("click", next);
  $("picker", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    bySeed(number(seed));
  });
  return { draw, next };
}
