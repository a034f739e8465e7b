// Choosing a question: data set and its seed, database, difficulty, the question itself, or a draw by a seed.
import { $, options } from "./dom.ts";
import type { Game } from "./game.ts";
import { DATA_KINDS, type DataChoice } from "./protocol.ts";

const WORDS: Readonly<Record<DataChoice["kind"], string>> = {
  bundled: "bundled set",
  starter: "starter set",
  practice: "practice set",
};

export interface Picker {
  /** Shows the game's choice. */
  draw(): void;
}

/** Wires the form; `run` does what was chosen and shows what goes wrong. */
export function createPicker(game: Game, run: (work: () => Promise<void>) => void): Picker {
  const [data, dataSeed] = [$("data", HTMLSelectElement), $("data-seed", HTMLInputElement)];
  const [database, difficulty] = [$("database", HTMLSelectElement), $("difficulty", HTMLSelectElement)];
  const [question, seed] = [$("question", HTMLSelectElement), $("seed", HTMLInputElement)];
  options(
    data,
    DATA_KINDS.map((kind) => ({ value: kind, text: WORDS[kind] })),
  );
  options(difficulty, [
    { value: "", text: "any" },
    ...["easy", "medium", "hard"].map((value) => ({ value, text: value })),
  ]);
  let drawn = "";

  const fits = () =>
    game.questions.filter(
      (asked) =>
        (database.value === "" || asked.database_name === database.value) &&
        (difficulty.value === "" || asked.difficulty === difficulty.value),
    );
  const listQuestions = () => {
    const chosen = game.started?.question.question_id;
    const list = fits();
    const shown = list.some(({ question_id }) => question_id === chosen)
      ? list
      : [...game.questions.filter(({ question_id }) => question_id === chosen), ...list];
    options(
      question,
      shown.map(({ question_id, question_text }) => ({ value: question_id, text: question_text })),
      chosen,
    );
  };
  const draw = () => {
    const { kind, seed: madeFrom } = game.data;
    const key = `${kind}:${madeFrom}:${game.questions.length}`;
    if (key !== drawn) {
      data.value = kind;
      dataSeed.value = String(madeFrom);
      const names = [...new Set(game.questions.map(({ database_name }) => database_name))];
      const unseen = new Set(game.questions.filter(({ seen }) => !seen).map(({ database_name }) => database_name));
      options(database, [
        { value: "", text: `any of ${names.length}` },
        ...names.map((name) => ({ value: name, text: unseen.has(name) ? `${name} (not in training)` : name })),
      ]);
      drawn = key;
    }
    if (document.activeElement !== seed) seed.value = String(game.seed);
    listQuestions();
  };
  const number = (input: HTMLInputElement) => Math.max(0, Math.min(999_999_999, Math.floor(Number(input.value) || 0)));
  const reopen = () =>
    run(async () => {
      await game.open({ kind: data.value as DataChoice["kind"], seed: number(dataSeed) });
      await game.begin({ seed: game.seed });
    });
  const narrow = () => {
    const first = fits()[0];
    if (first) run(() => game.begin({ question_id: first.question_id }));
    else listQuestions();
  };
  const bySeed = (value: number) => {
    game.seed = value;
    run(() => game.begin({ seed: value }));
  };

  data.addEventListener("change", reopen);
  dataSeed.addEventListener("change", reopen);
  database.addEventListener("change", narrow);
  difficulty.addEventListener("change", narrow);
  question.addEventListener("change", () => run(() => game.begin({ question_id: question.value })));
  $("draw", HTMLButtonElement).addEventListener("click", () => bySeed(number(seed)));
  $("next", HTMLButtonElement).addEventListener("click", () => bySeed(number(seed) + 1));
  $("picker", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    bySeed(number(seed));
  });
  return { draw };
}
