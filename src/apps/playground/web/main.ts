// The playground's page: draws what the game holds, and hands what a person does to it.
import { messageOf } from "../../../errors.ts";
import { signed } from "../../../gym/evaluation/transcript.ts";
import { startClient } from "./client.ts";
import { $, fill, h, options } from "./dom.ts";
import { createEditor } from "./editor.ts";
import { goldNode, turnNode, verdictNode } from "./episode.ts";
import { Game } from "./game.ts";
import { type LinkedAction, linkText, parseLink } from "./link.ts";
import { createPicker } from "./picker.ts";
import { PLAYERS, type PlayerChoice } from "./protocol.ts";
import { drawSchema, namesIn } from "./schema.ts";
import { asCurl, asTypeScript } from "./snippets.ts";
import { wireTheme } from "./theme.ts";
import { createModelPanel } from "./training.ts";

const status = $("status", HTMLElement);
const saying = $("saying", HTMLElement);
const client = startClient((news) => {
  if (news.news === "said") {
    saying.hidden = !game.busy;
    saying.textContent = news.text;
  } else model.hear(news);
});
const game = new Game(client, () => draw());
const picker = createPicker(game, run);
const model = createModelPanel(client, game, run, () => draw());
const editor = createEditor($("argument", HTMLTextAreaElement), $("colours", HTMLElement), $("offers", HTMLElement));

/** Does something, and says what went wrong. */
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
  const { started, replay } = game;
  if (!started) return;
  picker.draw();
  $("replay-bar", HTMLElement).hidden = replay === null;
  $("act", HTMLFormElement).hidden = replay !== null;
  saying.hidden = true;
  if (replay) drawReplay(replay);
  else drawGame();
  drawPlayer();
}

function drawGame(): void {
  const { question, budget, schema } = game.started!;
  const { steps, done, gold } = game;
  const place = question.seen ? "a database of the training" : "a database training never sees";
  $("asked", HTMLElement).textContent = question.question_text;
  $("about", HTMLElement).textContent =
    `${question.question_id}: ${question.difficulty}, ${question.database_name}, ${place}`;
  drawMeter(
    steps.length,
    budget,
    steps.reduce((sum, { observation }) => sum + (observation.reward ?? 0), 0),
  );
  drawTurns(steps.map(turnNode));
  fill(
    $("verdict", HTMLElement),
    game.stuck &&
      h("p", { class: "verdict none" }, "The player has no further move: what it was shown fills its context."),
    done ? verdictNode(game.record, gold) : gold && h("div", { class: "verdict none" }, goldNode(gold)),
  );
  $("step", HTMLButtonElement).disabled = done || game.busy || game.playing;
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
  history.replaceState(null, "", `#${linkText(game.link)}`);
}

function drawReplay({ list, index, at }: NonNullable<typeof game.replay>): void {
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
    options(
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
  playButton.textContent = game.playing ? "Pause" : "Play";
  const waits = name === "model" && model.training;
  playButton.disabled = waits || (game.busy && !game.playing);
  $("move", HTMLButtonElement).disabled = waits || game.busy || game.playing || (game.done && game.by === name);
  $("manner-label", HTMLElement).hidden = name !== "model";
  const startsOver = game.steps.length > 0 && game.by !== name ? " Starts the episode over." : "";
  $("player-note", HTMLElement).textContent = waits
    ? "The model is being trained; the others play."
    : `${PLAYER_NOTES[name]}${startsOver}`;
}

const PLAYER_NOTES: Readonly<Record<PlayerChoice["name"], string>> = {
  random: "Acts at random: the floor.",
  looker: "Looks at a table and answers what it saw.",
  keyword: "Matches the question's words with tables, columns and values.",
  oracle: "Knows the gold: the ceiling.",
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
  ANSWER: "one value; a, b, c; or a row a line, cells between |",
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
  if (game.done || game.busy || argument.trim() === "") return;
  const action_type = chosenType();
  run(async () => {
    await game.act({ action_type, argument });
    if (game.steps.at(-1)?.observation.error === null && action_type !== "QUERY") editor.text = "";
    $("turns", HTMLElement).lastElementChild?.scrollIntoView({ block: "nearest" });
  });
}

function player(): PlayerChoice {
  const name = $("player", HTMLSelectElement).value as PlayerChoice["name"];
  return { name, seed: game.seed, temperature: name === "model" ? Number($("manner", HTMLSelectElement).value) : 0 };
}

function move(): void {
  if (game.busy || game.playing) return;
  run(async () => {
    if (game.replay) game.show(null);
    if (player().name === "model") await model.ready();
    await game.move(player());
  });
}

function play(): void {
  if (game.playing) {
    game.playing = false;
    draw();
    return;
  }
  run(async () => {
    if (game.replay) game.show(null);
    if (player().name === "model") await model.ready();
    await game.play(player(), () => Number($("pace", HTMLSelectElement).value));
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
  run(() => game.begin({ question_id: game.started!.question.question_id })),
);
$("give-up", HTMLButtonElement).addEventListener("click", () => run(() => game.reveal()));
$("peek", HTMLInputElement).addEventListener("change", draw);
$("move", HTMLButtonElement).addEventListener("click", move);
$("play", HTMLButtonElement).addEventListener("click", play);
$("player", HTMLSelectElement).addEventListener("change", drawPlayer);
options(
  $("player", HTMLSelectElement),
  PLAYERS.map((name) => ({ value: name, text: name })),
  "keyword",
);

// ---------------------------------------------------------------- replays

async function readFile(file: File): Promise<void> {
  const list = await client.call("read", { name: file.name, text: await file.text() });
  game.show({ list, index: 0, at: list[0]!.record.steps.length });
}

function goTo(at: number): void {
  const { replay } = game;
  if (!replay) return;
  const last = replay.list[replay.index]!.record.steps.length;
  game.show({ ...replay, at: Math.max(0, Math.min(last, at)) });
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
  game.show({ list: game.replay!.list, index, at: game.replay!.list[index]!.record.steps.length });
});
$("replay-at", HTMLInputElement).addEventListener("input", (event) =>
  goTo(Number((event.target as HTMLInputElement).value)),
);
$("replay-back", HTMLButtonElement).addEventListener("click", () => goTo(game.replay!.at - 1));
$("replay-on", HTMLButtonElement).addEventListener("click", () => goTo(game.replay!.at + 1));
$("replay-end", HTMLButtonElement).addEventListener("click", () => game.show(null));

// ---------------------------------------------------------------- sharing

/** Puts text on the clipboard, and in sight for where a page may not. */
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
  "copy-link": () => `${location.href.split("#")[0]}#${linkText(game.link)}`,
  // Served by `sqlenv serve`, the environment is at the same address.
  "copy-curl": () => asCurl(game.link, location.pathname.startsWith("/web/") ? location.origin : undefined),
  "copy-ts": () => asTypeScript(game.link),
  "copy-json": () => JSON.stringify(game.replay ? game.replay.list[game.replay.index]!.record : game.record),
};
for (const [id, text] of Object.entries(copies)) {
  $(id, HTMLButtonElement).addEventListener("click", () => run(() => copy(text())));
}

// ---------------------------------------------------------------- keys, and the beginning

document.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea")) return;
  const chosen = types.find(({ value }) => value[0]!.toLowerCase() === event.key);
  if (chosen) {
    choose(chosen.value as LinkedAction["action_type"]);
    editor.focus();
    event.preventDefault();
  } else if (event.key === "n") move();
  else if (event.key === "p") play();
  else if (event.key === "ArrowLeft" && game.replay) goTo(game.replay.at - 1);
  else if (event.key === "ArrowRight" && game.replay) goTo(game.replay.at + 1);
});
/** Goes where the address points; `data-ready` tells who waits for it. */
async function follow(): Promise<void> {
  delete document.body.dataset.ready;
  try {
    await game.follow(parseLink(location.hash));
  } finally {
    document.body.dataset.ready = "";
  }
}

window.addEventListener("hashchange", () => run(follow));
wireTheme();
choose("DESCRIBE");
run(async () => {
  status.textContent = "Starting SQLite…";
  const { player: named } = parseLink(location.hash);
  if (PLAYERS.some((name) => name === named)) $("player", HTMLSelectElement).value = named!;
  await follow();
  status.textContent = "";
});
