// The playground's page: draws the episode's state and turns a person's input into actions.
import { messageOf } from "../../../errors.ts";
import { signed } from "../../../gym/evaluation/transcript.ts";
import { $, fill, fillOptions, h } from "../../web-shared/dom.ts";
import { wireThemeButton } from "../../web-shared/theme.ts";
import { asCurl, asTypeScript } from "./code-snippets.ts";
import { EpisodeState } from "./episode-state.ts";
import { goldNode, turnNode, verdictNode } from "./episode-view.ts";
import { createModelPanel } from "./model-panel.ts";
import { type LinkedAction, linkText, parseLink } from "./permalink.ts";
import { createPicker } from "./question-picker.ts";
import { drawSchema, namesIn } from "./schema-tree.ts";
import { createEditor } from "./sql-editor.ts";
import { startClient } from "./worker-client.ts";
import { PLAYERS, type PlayerChoice } from "./worker-protocol.ts";

const status = $("status", HTMLElement);
const sampledText = $("saying", HTMLElement);
const client = startClient((event) => {
  if (event.event === "sampled") {
    sampledText.hidden = !episode.busy;
    sampledText.textContent = event.text;
  } else model.onEvent(event);
});
const episode = new EpisodeState(client, () => draw());
const picker = createPicker(episode, run);
const model = createModelPanel(client, episode, run, () => draw());
const editor = createEditor($("argument", HTMLTextAreaElement), $("colours", HTMLElement), $("offers", HTMLElement));

/** Runs an action and shows its error. */
function run(work: () => Promise<void>): void {
  status.classList.remove("bad");
  status.textContent = "";
  work().catch((error: unknown) => {
    status.classList.add("bad");
    status.textContent = messageOf(error);
    draw();
  });
}

// ---------------------------------------------------------------- drawing

function draw(): void {
  const { started, replay } = episode;
  if (!started) return;
  picker.draw();
  $("replay-bar", HTMLElement).hidden = replay === null;
  $("act", HTMLFormElement).hidden = replay !== null;
  sampledText.hidden = true;
  if (replay) drawReplay(replay);
  else drawEpisode();
  drawPlayer();
}

function drawEpisode(): void {
  const { question, budget, schema } = episode.started!;
  const { steps, done, gold } = episode;
  const split = question.seen ? "a database with training questions" : "a database without training questions";
  $("asked", HTMLElement).textContent = question.question_text;
  $("about", HTMLElement).textContent =
    `${question.question_id}: ${question.difficulty}, ${question.database_name}, ${split}`;
  drawMeter(
    steps.length,
    budget,
    steps.reduce((sum, { observation }) => sum + (observation.reward ?? 0), 0),
  );
  drawTurns(steps.map(turnNode));
  fill(
    $("verdict", HTMLElement),
    episode.stuck &&
      h("p", { class: "verdict none" }, "The player cannot continue: the conversation fills its context window."),
    done ? verdictNode(episode.record, gold) : gold && h("div", { class: "verdict none" }, goldNode(gold)),
  );
  $("step", HTMLButtonElement).disabled = done || episode.busy || episode.playing;
  $("give-up", HTMLButtonElement).hidden = gold !== null;

  const described = new Set(
    steps.flatMap(({ action, observation }) =>
      action.action_type === "DESCRIBE" && observation.result !== "" ? [observation.result.split(":")[0]!] : [],
    ),
  );
  const all = $("peek", HTMLInputElement).checked || done;
  const known = (name: string) => all || described.has(name) || described.has(JSON.stringify(name));
  drawSchema($("schema", HTMLElement), schema, {
    known,
    onTable: (name) => (chosenType() === "QUERY" ? editor.insert(name) : useTable(name)),
    onColumn: (name) => {
      choose(chosenType() === "ANSWER" ? "ANSWER" : "QUERY");
      editor.insert(name);
    },
  });
  editor.names = namesIn(schema, known);
  history.replaceState(null, "", `#${linkText(episode.link)}`);
}

function drawReplay({ list, index, at }: NonNullable<typeof episode.replay>): void {
  const { record } = list[index]!;
  $("asked", HTMLElement).textContent = record.question;
  $("about", HTMLElement).textContent = [record.question_id, record.difficulty, record.database_name, record.player]
    .filter(Boolean)
    .join(", ");
  const shown = record.steps.slice(0, at);
  const budget = shown.length > 0 ? shown.length + shown.at(-1)!.observation.budget_remaining : record.steps.length;
  drawMeter(
    at,
    Math.max(budget, record.steps.length),
    shown.reduce((sum, { observation }) => sum + (observation.reward ?? 0), 0),
  );
  drawTurns(shown.map(turnNode));
  fill($("verdict", HTMLElement), at === record.steps.length ? verdictNode(record, null) : null);
  const slider = $("replay-at", HTMLInputElement);
  slider.max = String(record.steps.length);
  slider.value = String(at);
  $("replay-back", HTMLButtonElement).disabled = at === 0;
  $("replay-on", HTMLButtonElement).disabled = at === record.steps.length;
  const select = $("replays", HTMLSelectElement);
  if (select.dataset.of !== String(list.length) || select.options[0]?.text !== list[0]!.title) {
    fillOptions(
      select,
      list.map(({ title }, i) => ({ value: String(i), text: title })),
    );
    select.dataset.of = String(list.length);
  }
  select.value = String(index);
}

function drawMeter(taken: number, budget: number, sum: number): void {
  $("budget-text", HTMLElement).textContent = `${taken} of ${budget} steps`;
  const bar = $("budget", HTMLProgressElement);
  [bar.max, bar.value] = [budget, taken];
  $("sum", HTMLElement).textContent = taken === 0 ? "" : `reward ${signed(Math.round(sum * 1e9) / 1e9)}`;
}

function drawTurns(turns: readonly HTMLElement[]): void {
  const list = $("turns", HTMLElement);
  list.hidden = turns.length === 0;
  fill(list, ...turns);
}

function drawPlayer(): void {
  const { name } = player();
  const playButton = $("play", HTMLButtonElement);
  playButton.textContent = episode.playing ? "Pause" : "Play";
  const waits = name === "model" && model.training;
  playButton.disabled = waits || (episode.busy && !episode.playing);
  $("move", HTMLButtonElement).disabled =
    waits || episode.busy || episode.playing || (episode.done && episode.by === name);
  $("decoding-label", HTMLElement).hidden = name !== "model";
  const startsOver = episode.steps.length > 0 && episode.by !== name ? " Starts the episode over." : "";
  $("player-note", HTMLElement).textContent = waits
    ? "The model is being trained; the other players are free."
    : `${PLAYER_NOTES[name]}${startsOver}`;
}

const PLAYER_NOTES: Readonly<Record<PlayerChoice["name"], string>> = {
  random: "Acts at random: the baseline.",
  looker: "Describes and samples one table, then answers a value from it.",
  keyword: "Matches the question's words with tables, columns and values.",
  oracle: "Knows the gold query: the upper bound.",
  model: "Reads what you read, and writes its own actions.",
};

// ---------------------------------------------------------------- acting

const types = [...document.querySelectorAll<HTMLInputElement>("input[name=type]")];

function chosenType(): LinkedAction["action_type"] {
  return types.find(({ checked }) => checked)!.value as LinkedAction["action_type"];
}

const HINTS: Readonly<Record<LinkedAction["action_type"], string>> = {
  DESCRIBE: "a table's columns",
  SAMPLE: "a table's first rows",
  QUERY: "one SELECT",
  ANSWER: "one value; a list a, b, c; or one row per line with cells separated by |",
};

function choose(type: LinkedAction["action_type"]): void {
  for (const input of types) input.checked = input.value === type;
  editor.isSql = type === "QUERY";
  $("hint", HTMLElement).textContent = HINTS[type];
}

function useTable(name: string): void {
  editor.text = name;
  editor.focus();
}

function step(): void {
  const argument = editor.text;
  if (episode.done || episode.busy || argument.trim() === "") return;
  const action_type = chosenType();
  run(async () => {
    await episode.act({ action_type, argument });
    if (episode.steps.at(-1)?.observation.error === null && action_type !== "QUERY") editor.text = "";
    $("turns", HTMLElement).lastElementChild?.scrollIntoView({ block: "nearest" });
  });
}

function player(): PlayerChoice {
  const name = $("player", HTMLSelectElement).value as PlayerChoice["name"];
  return {
    name,
    seed: episode.seed,
    temperature: name === "model" ? Number($("decoding", HTMLSelectElement).value) : 0,
  };
}

function playOneStep(): void {
  if (episode.busy || episode.playing) return;
  run(async () => {
    if (episode.replay) episode.show(null);
    if (player().name === "model") await model.ready();
    await episode.playStep(player());
  });
}

function play(): void {
  if (episode.playing) {
    episode.playing = false;
    draw();
    return;
  }
  run(async () => {
    if (episode.replay) episode.show(null);
    if (player().name === "model") await model.ready();
    await episode.play(player(), () => Number($("pace", HTMLSelectElement).value));
  });
}

for (const input of types) input.addEventListener("change", () => choose(chosenType()));
$("act", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  step();
});
$("argument", HTMLTextAreaElement).addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  step();
});
$("again", HTMLButtonElement).addEventListener("click", () =>
  run(() => episode.begin({ question_id: episode.started!.question.question_id })),
);
$("give-up", HTMLButtonElement).addEventListener("click", () => run(() => episode.reveal()));
$("peek", HTMLInputElement).addEventListener("change", draw);
$("move", HTMLButtonElement).addEventListener("click", playOneStep);
$("play", HTMLButtonElement).addEventListener("click", play);
$("player", HTMLSelectElement).addEventListener("change", drawPlayer);
fillOptions(
  $("player", HTMLSelectElement),
  PLAYERS.map((name) => ({ value: name, text: name })),
  "keyword",
);

// ---------------------------------------------------------------- replays

async function readFile(file: File): Promise<void> {
  const list = await client.call("read", { name: file.name, text: await file.text() });
  episode.show({ list, index: 0, at: list[0]!.record.steps.length });
}

function goTo(at: number): void {
  const { replay } = episode;
  if (!replay) return;
  const last = replay.list[replay.index]!.record.steps.length;
  episode.show({ ...replay, at: Math.max(0, Math.min(last, at)) });
}

$("file", HTMLInputElement).addEventListener("change", (event) => {
  const input = event.target as HTMLInputElement;
  const file = input.files?.[0];
  if (file) run(() => readFile(file));
  input.value = ""; // the same file may be chosen again
});
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  const file = event.dataTransfer?.files[0];
  if (file) run(() => readFile(file));
});
$("replays", HTMLSelectElement).addEventListener("change", (event) => {
  const index = Number((event.target as HTMLSelectElement).value);
  episode.show({ list: episode.replay!.list, index, at: episode.replay!.list[index]!.record.steps.length });
});
$("replay-at", HTMLInputElement).addEventListener("input", (event) =>
  goTo(Number((event.target as HTMLInputElement).value)),
);
$("replay-back", HTMLButtonElement).addEventListener("click", () => goTo(episode.replay!.at - 1));
$("replay-on", HTMLButtonElement).addEventListener("click", () => goTo(episode.replay!.at + 1));
$("replay-end", HTMLButtonElement).addEventListener("click", () => episode.show(null));

// ---------------------------------------------------------------- sharing

/** Copies text to the clipboard, and shows it in case the browser refuses. */
async function copy(text: string): Promise<void> {
  const shown = $("copied", HTMLTextAreaElement);
  shown.hidden = false;
  shown.value = text;
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = "Copied.";
  } catch {
    shown.select();
    status.textContent = "Copy it from the field.";
  }
}

const copies: Readonly<Record<string, () => string>> = {
  "copy-link": () => `${location.href.split("#")[0]}#${linkText(episode.link)}`,
  // Under `sqlenv serve` the environment has the page's own origin.
  "copy-curl": () => asCurl(episode.link, location.pathname.startsWith("/web/") ? location.origin : undefined),
  "copy-ts": () => asTypeScript(episode.link),
  "copy-json": () =>
    JSON.stringify(episode.replay ? episode.replay.list[episode.replay.index]!.record : episode.record),
};
for (const [id, text] of Object.entries(copies)) {
  $(id, HTMLButtonElement).addEventListener("click", () => run(() => copy(text())));
}

// ---------------------------------------------------------------- keys and start

document.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea")) return;
  const chosen = types.find(({ value }) => value[0]!.toLowerCase() === event.key);
  if (chosen) {
    choose(chosen.value as LinkedAction["action_type"]);
    editor.focus();
    event.preventDefault();
  } else if (event.key === "n") playOneStep();
  else if (event.key === "p") play();
  else if (event.key === "ArrowLeft" && episode.replay) goTo(episode.replay.at - 1);
  else if (event.key === "ArrowRight" && episode.replay) goTo(episode.replay.at + 1);
});
/** Restores the address's permalink; `data-ready` marks the end, for tests. */
async function follow(): Promise<void> {
  delete document.body.dataset.ready;
  try {
    await episode.follow(parseLink(location.hash));
  } finally {
    document.body.dataset.ready = "";
  }
}

window.addEventListener("hashchange", () => run(follow));
wireThemeButton($("theme", HTMLButtonElement));
choose("DESCRIBE");
run(async () => {
  status.textContent = "Starting SQLite…";
  const { player: named } = parseLink(location.hash);
  if (PLAYERS.some((name) => name === named)) $("player", HTMLSelectElement).value = named!;
  await follow();
  status.textContent = "";
});
